#include "engine/training/gradient_rules.h"

#include <map>
#include <string_view>
#include <utility>
#include <vector>

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
    {"", "Neg", neg_gradient, first(1)},
    {"", "Abs", abs_gradient, first(1)},
    {"", "Exp", exp_gradient, first(1)},
    {"", "Log", log_gradient, first(1)},
    {"", "Sqrt", sqrt_gradient, first(1)},
    {"", "Reciprocal", reciprocal_gradient, first(1)},
    {"", "Pow", pow_gradient, first(2)},
    {"", "Erf", erf_gradient, first(1)},
    {"", "Sin", sin_gradient, first(1)},
    {"", "Cos", cos_gradient, first(1)},
    {"", "Tan", tan_gradient, first(1)},
    {"", "Asin", asin_gradient, first(1)},
    {"", "Acos", acos_gradient, first(1)},
    {"", "Atan", atan_gradient, first(1)},
    {"", "Sinh", sinh_gradient, first(1)},
    {"", "Cosh", cosh_gradient, first(1)},
    {"", "Tanh", tanh_gradient, first(1)},
    {"", "Asinh", asinh_gradient, first(1)},
    {"", "Acosh", acosh_gradient, first(1)},
    {"", "Atanh", atanh_gradient, first(1)},
    {"", "Relu", relu_gradient, first(1)},
    {"", "Clip", clip_gradient, first(1)},  // never its bounds
    {"", "Sigmoid", sigmoid_gradient, first(1)},
    {"", "Gelu", gelu_gradient, first(1)},
    {"", "Elu", elu_gradient, first(1)},
    {"", "Selu", selu_gradient, first(1)},
    {"", "Celu", celu_gradient, first(1)},
    {"", "LeakyRelu", leaky_relu_gradient, first(1)},
    {"", "PRelu", prelu_gradient, first(2)},
    {"", "HardSigmoid", hard_sigmoid_gradient, first(1)},
    {"", "HardSwish", hard_swish_gradient, first(1)},
    {"", "Mish", mish_gradient, first(1)},
    {"", "Softplus", softplus_gradient, first(1)},
    {"", "Softsign", softsign_gradient, first(1)},
    {"", "ThresholdedRelu", thresholded_relu_gradient, first(1)},
    {"", "Shrink", shrink_gradient, first(1)},
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
    {"", "AffineGrid", affine_grid_gradient, first(1)},
    {"", "Col2Im", col2im_gradient, first(1)},
    {"", "GridSample", grid_sample_gradient, first(2)},
    {"", "RoiAlign", roi_align_gradient, first(1)},  // never its regions
    {"", "DFT", dft_gradient, first(1)},
    {"", "STFT", stft_gradient, at(0) | at(2)},  // signal and window
    {"", "Add", add_gradient, first(2)},
    {"", "Sub", sub_gradient, first(2)},
    {"", "Mul", mul_gradient, first(2)},
    {"", "Div", div_gradient, first(2)},
    {"", "Mod", mod_gradient, first(2)},
    {"", "Sum", sum_gradient, kAll},
    {"", "Mean", mean_gradient, kAll},
    {"", "Max", max_gradient, kAll},
    {"", "Min", min_gradient, kAll},
    {"", "Where", where_gradient, at(1) | at(2)},
    {"", "Cast", cast_gradient, first(1)},
    {"", "CastLike", cast_gradient, first(1)},  // never the tensor that names the type
    {"", "Identity", identity_gradient, first(1)},
    {"", "Reshape", reshape_gradient, first(1)},
    {"", "Flatten", reshape_gradient, first(1)},
    {"", "Squeeze", reshape_gradient, first(1)},
    {"", "Unsqueeze", reshape_gradient, first(1)},
    {"", "Transpose", transpose_gradient, first(1)},
    {"", "Concat", concat_gradient, kAll},
    {"", "Split", split_gradient, first(1), kAll},
    {"", "Slice", slice_gradient, first(1)},
    {"", "Expand", expand_gradient, first(1)},
    {"", "Tile", tile_gradient, first(1)},
    {"", "DepthToSpace", depth_to_space_gradient, first(1)},
    {"", "SpaceToDepth", space_to_depth_gradient, first(1)},
    {"", "Trilu", trilu_gradient, first(1)},
    {"", "ReverseSequence", reverse_sequence_gradient, first(1)},
    {"", "Gather", gather_gradient, first(1)},
    {"", "GatherElements", gather_elements_gradient, first(1)},
    {"", "GatherND", gather_nd_gradient, first(1)},
    {"", "ScatterElements", scatter_elements_gradient, at(0) | at(2)},
    {"", "ScatterND", scatter_nd_gradient, at(0) | at(2)},
    {"", "Compress", compress_gradient, first(1)},
    {"", "TopK", top_k_gradient, first(1)},   // of the values, not of their indices
    {"", "OneHot", one_hot_gradient, at(2)},  // the two values; indices and depth are none
    {"", "Pad", pad_gradient, first(1)},
    {"", "Gemm", gemm_gradient, first(3)},
    {"", "MatMul", matmul_gradient, first(2)},
    {"", "Det", det_gradient, first(1)},
    {"", "Einsum", einsum_gradient, kAll},
    {"", "ReduceMean", reduce_mean_gradient, first(1)},
    {"", "ReduceSum", reduce_sum_gradient, first(1)},
    {"", "ReduceMax", reduce_max_gradient, first(1)},
    {"", "ReduceMin", reduce_max_gradient, first(1)},
    {"", "ReduceProd", reduce_prod_gradient, first(1)},
    {"", "ReduceL1", reduce_l1_gradient, first(1)},
    {"", "ReduceL2", reduce_l2_gradient, first(1)},
    {"", "ReduceLogSum", reduce_log_sum_gradient, first(1)},
    {"", "ReduceLogSumExp", reduce_log_sum_exp_gradient, first(1)},
    {"", "ReduceSumSquare", reduce_sum_square_gradient, first(1)},
    {"", "CumSum", cum_sum_gradient, first(1)},
    {"", "LpNormalization", lp_normalization_gradient, first(1)},
    // Straight through the rounding: scales and zero points are settings of the quantiser.
    {"", "QuantizeLinear", quantize_linear_gradient, first(1)},
    {"", "DequantizeLinear", dequantize_linear_gradient, first(1)},
    {"", "SoftmaxCrossEntropyLoss", softmax_cross_entropy_loss_gradient, first(1), first(2)},
    {"", "NegativeLogLikelihoodLoss", negative_log_likelihood_loss_gradient, first(1)},
};

// Operators through which no gradient flows by definition, grouped by why. An operator that has a derivative and no
// rule does not belong here: it must be refused by name.
struct GradientStop {
  const char* reason;
  std::vector<const char*> operators;
};

const std::vector<GradientStop>& stops() {
  static const std::vector<GradientStop> kStops = {
      {"its output is piecewise constant", {"Sign", "Floor", "Ceil", "Round", "Hardmax"}},
      {"its output is a truth value",
       {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "Not", "IsNaN", "IsInf",
        "OptionalHasElement", "RegexFullMatch"}},
      {"its output is an index or a count",
       {"ArgMax", "ArgMin", "NonZero", "NonMaxSuppression", "Shape", "Size", "SequenceLength"}},
      {"its output depends on no element's value", {"Constant", "ConstantOfShape", "EyeLike", "SequenceEmpty"}},
      {"its inputs are settings, numbers in every framework",
       {"Range", "HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix"}},
      {"its output is drawn at random",
       {"RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial"}},
      {"it computes in integers",
       {"BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor", "ConvInteger", "MatMulInteger",
        "QLinearConv", "QLinearMatMul", "DynamicQuantizeLinear"}},
      {"it reads text or an encoded image",
       {"StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer", "ImageDecoder"}},
  };
  return kStops;
}

// Floats, and the integers that QuantizeLinear makes: they stand for real numbers, and DequantizeLinear gives them
// back, so that a gradient passes from one to the other in floats (the straight-through estimator).
bool can_have_gradient(const Graph& graph, TensorId t) {
  if (t == kNone) return false;
  if (is_float(graph.tensors[t].dtype)) return true;
  NodeId producer = graph.tensors[t].producer;
  return producer != kNone && graph.nodes[producer].op == "QuantizeLinear" && graph.nodes[producer].domain.empty();
}

}  // namespace

const GradientRule* find_gradient_rule(const std::string& domain, const std::string& op) {
  using Key = std::pair<std::string_view, std::string_view>;
  static const std::map<Key, const GradientRule*> kIndex = [] {
    std::map<Key, const GradientRule*> index;
    for (const GradientRule& rule : kRules) index[{rule.domain, rule.op}] = &rule;
    return index;
  }();
  auto found = kIndex.find({domain, op});
  return found == kIndex.end() ? nullptr : found->second;
}

const char* gradient_stops(const std::string& domain, const std::string& op) {
  static const std::map<std::string_view, const char*> kIndex = [] {
    std::map<std::string_view, const char*> index;
    for (const GradientStop& stop : stops())
      for (const char* name : stop.operators) index[name] = stop.reason;
    return index;
  }();
  if (!domain.empty()) return nullptr;
  auto found = kIndex.find(op);
  return found == kIndex.end() ? nullptr : found->second;
}

bool has_gradient_rule(const std::string& domain, const std::string& op) {
  return find_gradient_rule(domain, op) || gradient_stops(domain, op);
}

bool differentiable_input(const Graph& graph, const Node& node, size_t input) {
  if (!can_have_gradient(graph, node.inputs[input])) return false;
  if (const GradientRule* rule = find_gradient_rule(node.domain, node.op)) return has(rule->inputs, input);
  return !gradient_stops(node.domain, node.op);
}

bool differentiable_output(const Graph& graph, const Node& node, size_t output) {
  if (!can_have_gradient(graph, node.outputs[output])) return false;
  const GradientRule* rule = find_gradient_rule(node.domain, node.op);
  return !rule || has(rule->outputs, output);
}

}  // namespace monet
