#include "engine/training/existing.h"

#include <algorithm>

namespace monet {

TrainingGraph read_training_graph(const Graph& graph) {
  TrainingGraph result;
  result.graph = graph;
  result.loss = Loss::sum;
  for (const Tensor& t : graph.tensors)
    if (t.kind == TensorKind::label) result.loss = is_float(t.dtype) ? Loss::mse : Loss::cross_entropy;
  auto is_forward = [&](TensorId t) {
    NodeId producer = graph.tensors[t].producer;
    return producer != kNone && graph.nodes[producer].phase == Phase::forward;
  };
  for (const Node& node : graph.nodes) {
    if (node.phase == Phase::forward || result.loss_output != kNone) continue;
    for (TensorId t : node.inputs)
      if (t != kNone && is_forward(t)) result.loss_output = t;
  }
  std::vector<TensorId> gradient(graph.tensors.size(), kNone);  // the last one made by the backward pass is complete
  for (TensorId t = 0; t < static_cast<TensorId>(graph.tensors.size()); ++t) {
    const Tensor& tensor = graph.tensors[t];
    if (tensor.of == kNone || tensor.producer == kNone || graph.nodes[tensor.producer].phase != Phase::backward)
      continue;
    TensorId& known = gradient[tensor.of];
    if (known == kNone || graph.tensors[known].producer < tensor.producer) known = t;
  }
  for (const Unit& unit : graph.units) {
    if (unit.role != Role::update || unit.target == kNone || graph.tensors[unit.target].kind != TensorKind::parameter ||
        gradient[unit.target] == kNone ||
        std::find(result.parameters.begin(), result.parameters.end(), unit.target) != result.parameters.end())
      continue;
    result.parameters.push_back(unit.target);
    result.gradients.push_back(gradient[unit.target]);
  }
  return result;
}

Graph forward_part(const Graph& training) {
  std::vector<bool> read(training.tensors.size()), used(training.tensors.size());
  for (const Node& node : training.nodes) {
    if (node.phase != Phase::forward) continue;
    for (TensorId t : node.inputs)
      if (t != kNone) read[t] = used[t] = true;
    for (TensorId t : node.outputs)
      if (t != kNone) used[t] = true;
  }
  Graph forward;
  forward.name = training.name;
  forward.opset = training.opset;
  forward.opsets = training.opsets;
  std::vector<TensorId> moved(training.tensors.size(), kNone);
  for (TensorId t = 0; t < static_cast<TensorId>(training.tensors.size()); ++t) {
    if (!used[t]) continue;
    Tensor tensor = training.tensors[t];
    tensor.producer = tensor.of = kNone;
    moved[t] = forward.add(std::move(tensor));
  }
  for (const Node& node : training.nodes) {
    if (node.phase != Phase::forward) continue;
    Node copy = node;
    for (auto* list : {&copy.inputs, &copy.outputs})
      for (TensorId& t : *list) t = t == kNone ? kNone : moved[t];
    copy.unit = copy.origin = kNone;
    forward.add(std::move(copy));
    for (TensorId t : node.outputs)
      if (t != kNone && !read[t]) forward.outputs.push_back(moved[t]);
  }
  for (TensorId t : training.inputs)
    if (moved[t] != kNone) forward.inputs.push_back(moved[t]);
  assign_single_units(forward);
  return forward;
}

std::string optimizer_of(const Graph& training) {
  for (const Unit& unit : training.units)
    if (unit.role == Role::update && unit.target != kNone) return unit.op;
  return "";
}

}  // namespace monet
