#include "engine/training/gradient_rules.h"

#include "engine/training/training_graph.h"

namespace monet {

namespace {

constexpr GradientRule kRules[] = {
    {"", "Conv", conv_gradient, first(3)},
    {"", "ConvTranspose", conv_transpose_gradient, first(3)},
    {"", "BatchNormalization", batch_normalization_gradient, first(3)},  // X, scale, bias; never running statistics
    {"", "LayerNormalization", layer_normalization_gradient, first(3)},
    {"", "GroupNormalization", group_normalization_gradient, first(3)},
    {"", "InstanceNormalization", instance_normalization_gradient, first(3)},
    {"", "MeanVarianceNormalization", mean_variance_normalization_gradient, first(1)},
    {"", "LRN", lrn_gradient, first(1)},
    {"", "Relu", relu_gradient, first(1)},
    {"", "Clip", clip_gradient, first(1)},  // never its bounds
    {"", "Sigmoid", sigmoid_gradient, first(1)},
    {"", "Softmax", softmax_gradient, first(1)},
    {"", "LogSoftmax", log_softmax_gradient, first(1)},
    {"", "Dropout", dropout_gradient, first(1)},
    {"", "MaxPool", max_pool_gradient, first(1)},
    {"", "AveragePool", average_pool_gradient, first(1)},
    {"", "GlobalAveragePool", global_average_pool_gradient, first(1)},
    {"", "GlobalMaxPool", global_max_pool_gradient, first(1)},
    {"", "LpPool", lp_pool_gradient, first(1)},
    {"", "MaxUnpool", max_unpool_gradient, first(1)},
    {"", "Resize", resize_gradient, first(1)},
    {"", "Add", add_gradient, first(2)},
    {"", "Sub", sub_gradient, first(2)},
    {"", "Mul", mul_gradient, first(2)},
    {"", "Div", div_gradient, first(2)},
    {"", "Identity", identity_gradient, first(1)},
    {"", "Reshape", reshape_gradient, first(1)},
    {"", "Flatten", reshape_gradient, first(1)},
    {"", "Squeeze", reshape_gradient, first(1)},
    {"", "Unsqueeze", reshape_gradient, first(1)},
    {"", "Transpose", transpose_gradient, first(1)},
    {"", "Concat", concat_gradient, kAll},
    {"", "Pad", pad_gradient, first(1)},
    {"", "Gemm", gemm_gradient, first(3)},
    {"", "MatMul", matmul_gradient, first(2)},
    {"", "ReduceMean", reduce_mean_gradient, first(1)},
    {"", "ReduceSum", reduce_sum_gradient, first(1)},
};

bool is_float_tensor(const Graph& graph, TensorId t) { return t != kNone && is_float(graph.tensors[t].dtype); }

}  // namespace

const GradientRule* find_gradient_rule(const std::string& domain, const std::string& op) {
  for (const GradientRule& rule : kRules)
    if (op == rule.op && domain == rule.domain) return &rule;
  return nullptr;
}

bool has_gradient_rule(const std::string& domain, const std::string& op) {
  return find_gradient_rule(domain, op) != nullptr;
}

bool differentiable_input(const Graph& graph, const Node& node, size_t input) {
  if (!is_float_tensor(graph, node.inputs[input])) return false;
  const GradientRule* rule = find_gradient_rule(node.domain, node.op);
  return !rule || has(rule->inputs, input);
}

bool differentiable_output(const Graph& graph, const Node& node, size_t output) {
  if (!is_float_tensor(graph, node.outputs[output])) return false;
  const GradientRule* rule = find_gradient_rule(node.domain, node.op);
  return !rule || has(rule->outputs, output);
}

}  // namespace monet
