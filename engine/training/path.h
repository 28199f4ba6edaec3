// Where gradients can flow: reachability through differentiable positions of the forward graph.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "engine/ir/graph.h"

namespace monet {

// Inputs of nodes (by position) that no gradient goes into, whatever the rules say.
using StoppedInputs = std::set<std::pair<NodeId, size_t>>;

// One flag per tensor. Tensors that gradients of `from` would flow into, `from` included.
std::vector<bool> reached_backward(const Graph& graph, const std::vector<TensorId>& from,
                                   const StoppedInputs& stopped = {});
// Tensors whose value depends on `from` in a differentiable way, themselves included.
std::vector<bool> reached_forward(const Graph& graph, const std::vector<TensorId>& from,
                                  const StoppedInputs& stopped = {});
// Tensors whose value depends on the step's data, in whatever way.
std::vector<bool> depends_on_data(const Graph& graph);

}  // namespace monet
