// The loop nest that Stream (arXiv 2212.10612, as of June 2025) gives an operator of an inference graph: what is no
// contraction costs as a nest there, too. For comparisons with it; our own schedules cost such operators by the vector
// rule (cost/vector_cost.h).
#pragma once

#include <optional>

#include "engine/ir/graph.h"
#include "engine/workload/layer.h"

namespace monet {

// Contractions: layer_of with 8-bit operands. Operators on tensors of one shape (one or two inputs that are no
// constants): loops B, H, D, K, as many as there are axes; of one input, W is a single element. Poolings: loops B, K,
// OX, OY, C, FX, FY with a W of 0 bits; C stands beside K although a pooling sums over no channel, so every window is
// iterated C times, as in Stream. Nothing for operators that Stream leaves free: views, Concat, Transpose, Gather, ...
std::optional<Layer> stream_layer_of(const Graph& graph, const Unit& unit);

}  // namespace monet
