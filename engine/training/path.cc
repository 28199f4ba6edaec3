#include "engine/training/path.h"

#include "engine/training/gradient_rules.h"

namespace monet {

std::vector<bool> reached_backward(const Graph& graph, const std::vector<TensorId>& from,
                                   const StoppedInputs& stopped) {
  std::vector<bool> reached(graph.tensors.size());
  for (TensorId t : from) reached[t] = true;
  for (size_t id = graph.nodes.size(); id-- > 0;) {
    const Node& node = graph.nodes[id];
    bool any = false;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      any = any || (node.outputs[i] != kNone && reached[node.outputs[i]] && differentiable_output(graph, node, i));
    if (!any) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      if (differentiable_input(graph, node, i) && !stopped.count({static_cast<NodeId>(id), i}))
        reached[node.inputs[i]] = true;
  }
  return reached;
}

std::vector<bool> reached_forward(const Graph& graph, const std::vector<TensorId>& from, const StoppedInputs& stopped) {
  std::vector<bool> reached(graph.tensors.size());
  for (TensorId t : from) reached[t] = true;
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph.nodes[id];
    bool any = false;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      any = any || (node.inputs[i] != kNone && reached[node.inputs[i]] && differentiable_input(graph, node, i) &&
                    !stopped.count({static_cast<NodeId>(id), i}));
    if (!any) continue;
    for (size_t i = 0; i < node.outputs.size(); ++i)
      if (differentiable_output(graph, node, i)) reached[node.outputs[i]] = true;
  }
  return reached;
}

std::vector<bool> depends_on_data(const Graph& graph) {
  std::vector<bool> depends(graph.tensors.size());
  for (size_t t = 0; t < depends.size(); ++t) depends[t] = graph.tensors[t].kind == TensorKind::input;
  for (const Node& node : graph.nodes) {
    bool any = false;
    for (TensorId t : node.inputs) any = any || (t != kNone && depends[t]);
    if (!any) continue;
    for (TensorId t : node.outputs)
      if (t != kNone) depends[t] = true;
  }
  return depends;
}

}  // namespace monet
