#include "engine/workload/stream_layer.h"

#include <algorithm>
#include <set>
#include <string_view>

namespace monet {

namespace {

std::optional<Layer> elementwise(const Graph& graph, const Node& node) {
  static const std::set<std::string_view> ops = {"Add",       "Clip",      "Div",  "Elu", "Exp", "Gelu", "HardSigmoid",
                                                 "HardSwish", "LeakyRelu", "Max",  "Min", "Mul", "Pow",  "Relu",
                                                 "Sigmoid",   "Softmax",   "Sqrt", "Sub", "Sum", "Tanh"};
  if (!node.domain.empty() || !ops.count(node.op)) return {};
  const Shape& shape = graph.tensors[node.outputs[0]].shape;
  constexpr const char* kDims[] = {"B", "H", "D", "K"};
  if (shape.empty() || shape.size() > std::size(kDims)) return {};
  size_t inputs = 0;
  for (TensorId t : node.inputs)
    inputs += t != kNone && graph.tensors[t].kind != TensorKind::constant && graph.tensors[t].shape == shape;
  Layer layer;
  LayerOperand all{"I", {}, {}, 8}, one{"W", {}, {}, 8};
  for (size_t i = 0; i < shape.size(); ++i) {
    layer.loops.push_back({kDims[i], shape[i]});
    all.loops.push_back(static_cast<int>(i));
  }
  if (inputs > 1) one.loops = all.loops;
  LayerOperand out = all;
  out.name = "O";
  layer.operands = {all, one, out};
  return layer;
}

std::optional<Layer> pooling(const Graph& graph, const Node& node) {
  const Shape &x = graph.tensors[node.inputs[0]].shape, &y = graph.tensors[node.outputs[0]].shape;
  if (x.size() != 4 || y.size() != 4) return {};
  std::vector<int64_t> kernel = attribute(node, "kernel_shape", std::vector<int64_t>{x[2], x[3]});
  std::vector<int64_t> strides = attribute(node, "strides", std::vector<int64_t>{1, 1});
  std::vector<int64_t> dilations = attribute(node, "dilations", std::vector<int64_t>{1, 1});
  if (kernel.size() != 2 || strides.size() != 2 || dilations.size() != 2) return {};
  Layer layer;
  layer.loops = {{"B", y[0]}, {"K", y[1]},       {"OX", y[3]},     {"OY", y[2]},
                 {"C", y[1]}, {"FX", kernel[1]}, {"FY", kernel[0]}};
  enum { kB, kK, kOx, kOy, kC, kFx, kFy };
  LayerOperand in{"I", {kB, kK}, {}, 8}, window{"W", {kFx, kFy}, {}, 0}, out{"O", {kB, kK, kOx, kOy}, {}, 8};
  in.windows = {{kOx, kFx, strides[1], dilations[1], x[3]}, {kOy, kFy, strides[0], dilations[0], x[2]}};
  layer.operands = {in, window, out};
  layer.partial_bits = 8;
  return layer;
}

}  // namespace

std::optional<Layer> stream_layer_of(const Graph& graph, const Unit& unit) {
  if (unit.contraction != kNone) return layer_of(graph, unit);
  if (unit.nodes.size() != 1) return {};
  const Node& node = graph.nodes[unit.nodes.front()];
  if (node.inputs.empty() || node.inputs[0] == kNone || node.outputs.empty() || node.outputs[0] == kNone) return {};
  bool pools =
      node.op == "MaxPool" || node.op == "AveragePool" || node.op == "GlobalAveragePool" || node.op == "GlobalMaxPool";
  std::optional<Layer> layer = pools ? pooling(graph, node) : elementwise(graph, node);
  if (!layer) return {};
  layer->name = label(graph, unit.nodes.front());
  layer->op = node.op;
  return layer;
}

}  // namespace monet
