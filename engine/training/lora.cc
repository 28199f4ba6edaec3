#include "engine/training/lora.h"

#include <map>
#include <set>
#include <utility>

#include "engine/ir/names.h"

namespace monet {

namespace {

class Adapter {
 public:
  Adapter(const Graph& forward, int64_t rank, const std::vector<TensorId>& weights)
      : forward_(forward), rank_(rank), weights_(weights.begin(), weights.end()) {
    for (const Tensor& tensor : forward.tensors) names_.add(tensor.name);
  }

  Adapted run() {
    Graph& graph = result_.graph;
    graph = forward_;
    graph.nodes.clear();
    graph.units.clear();
    for (Node node : forward_.nodes) {
      node.unit = kNone;
      TensorId weight = adapted_weight(node);
      if (weight == kNone) {
        graph.add(node);
      } else {
        adapt(node, weight);
      }
    }
    return std::move(result_);
  }

 private:
  // The chosen weight that the node multiplies by, or kNone.
  TensorId adapted_weight(const Node& node) const {
    if (!node.domain.empty() || (node.op != "Conv" && node.op != "Gemm" && node.op != "MatMul")) return kNone;
    TensorId weight = node.inputs[1];
    if (node.op != "Conv" && forward_.tensors[weight].shape.size() != 2) return kNone;
    NodeId producer = forward_.tensors[weight].producer;
    if (producer != kNone && forward_.nodes[producer].op == "Transpose") weight = forward_.nodes[producer].inputs[0];
    return weights_.count(weight) ? weight : kNone;
  }

  void adapt(Node node, TensorId weight) {
    TensorId y = node.outputs[0];
    Graph& graph = result_.graph;
    Tensor base = graph.tensors[y];
    base.name = names_.unique(base.name + "_base");
    node.outputs[0] = graph.add(std::move(base));
    graph.add(node);
    TensorId path = node.op == "Conv" ? convolution(node, weight, y) : product(node, weight, y);
    graph.add(Node{.op = "Add", .inputs = {node.outputs[0], path}, .outputs = {y}});
  }

  TensorId convolution(const Node& node, TensorId weight, TensorId y) {
    const Shape& kernel = forward_.tensors[weight].shape;
    Shape output = forward_.tensors[y].shape, narrow = kernel, wide(kernel.size(), 1), middle = output;
    int64_t group = attribute(node, "group", int64_t{1});
    narrow[0] = middle[1] = rank_ * group;
    wide[0] = kernel[0];
    wide[1] = rank_;
    auto [a, b] = pair(weight, narrow, wide);
    TensorId down = emit("Conv", {node.inputs[0], a}, weight, middle, node.attributes);
    std::vector<Attribute> pointwise;
    if (group > 1) pointwise.push_back({"group", group});
    return emit("Conv", {down, b}, weight, output, std::move(pointwise));
  }

  TensorId product(const Node& node, TensorId weight, TensorId y) {
    Shape operand = forward_.tensors[node.inputs[1]].shape, output = forward_.tensors[y].shape, middle = output;
    if (attribute(node, "transB", int64_t{0})) std::swap(operand[0], operand[1]);
    middle.back() = rank_;
    auto [a, b] = pair(weight, {operand[0], rank_}, {rank_, operand[1]});
    std::vector<Attribute> attributes;  // of the data operand: the weight's layout is the adapters' own
    for (const Attribute& attribute : node.attributes)
      if (attribute.name == "transA" || attribute.name == "alpha") attributes.push_back(attribute);
    TensorId down = emit(node.op.c_str(), {node.inputs[0], a}, weight, middle, std::move(attributes));
    return emit(node.op.c_str(), {down, b}, weight, output, {});
  }

  std::pair<TensorId, TensorId> pair(TensorId weight, const Shape& a, const Shape& b) {
    auto [at, added] = pairs_.try_emplace({weight, a}, kNone, kNone);
    if (added) at->second = {parameter(weight, ".lora_A", a), parameter(weight, ".lora_B", b)};
    return at->second;
  }

  TensorId parameter(TensorId weight, const char* suffix, const Shape& shape) {
    const Tensor& w = forward_.tensors[weight];
    Graph& graph = result_.graph;
    TensorId t = graph.add(Tensor{
        .name = names_.unique(w.name + suffix), .dtype = w.dtype, .shape = shape, .kind = TensorKind::parameter});
    graph.inputs.push_back(t);
    result_.adapters.push_back(t);
    return t;
  }

  TensorId emit(const char* op, std::vector<TensorId> inputs, TensorId weight, const Shape& shape,
                std::vector<Attribute> attributes) {
    Graph& graph = result_.graph;
    const Tensor& w = forward_.tensors[weight];
    TensorId output = graph.add(Tensor{.name = names_.unique(w.name + ".lora"), .dtype = w.dtype, .shape = shape});
    graph.add(Node{.op = op, .inputs = std::move(inputs), .outputs = {output}, .attributes = std::move(attributes)});
    return output;
  }

  const Graph& forward_;
  int64_t rank_;
  std::set<TensorId> weights_;
  std::map<std::pair<TensorId, Shape>, std::pair<TensorId, TensorId>> pairs_;  // by weight and the shape of A
  Names names_;
  Adapted result_;
};

}  // namespace

Adapted add_adapters(const Graph& forward, int64_t rank, const std::vector<TensorId>& weights) {
  return Adapter(forward, rank, weights).run();
}

}  // namespace monet
