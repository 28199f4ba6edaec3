// Activation recomputation (gradient checkpointing; Chen et al., arXiv 1604.06174): a training graph that keeps less
// from the forward pass and computes it again in the backward pass.
#pragma once

#include <string>
#include <vector>

#include "engine/ir/diagnostic.h"
#include "engine/ir/graph.h"

namespace monet {

// Whether a tensor of the forward pass comes out the same when it is computed again, given its inputs.
bool is_recomputable(const Graph& training, TensorId t);

// Rewrites the graph so that the tensors named are not saved: backward nodes read copies of them, made by copies of
// forward nodes (Phase::recompute, origin the forward node) from the nearest tensors that are kept. Copies stand before
// their first use and serve all uses. A Dropout is copied with the mask that it drew; what else is random, or has a
// subgraph, is kept instead of copied. Numbers do not change. Adds a problem for every name that is not among
// saved_for_backward(training), or is random itself.
void recompute(Graph& training, const std::vector<std::string>& dropped, std::vector<Diagnostic>& problems);

}  // namespace monet
