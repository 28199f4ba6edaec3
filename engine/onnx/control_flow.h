// If with a known condition becomes its taken branch; Loop and Scan with a known number of rounds become that many
// copies of their body, one after the other: loop-carried values run from copy to copy, names from outside stay what
// they are, what each round gives out is stacked. Weights stored in a body are hoisted, once for all copies.
//
// A Loop's number of rounds is known when its trip count is and its condition can be followed through the rounds: both
// may be computed from known values, such as counters, by operators that folding knows. Requires sorted bodies.
#pragma once

#include <string>
#include <vector>

#include "engine/onnx/emitter.h"
#include "engine/onnx/infer.h"
#include "engine/onnx/weights.h"

namespace monet {

bool is_control_flow(const ::onnx::NodeProto& n);

// Appends the equivalent of `n`, with the same output names, and returns ""; or appends nothing and returns why not
// ("its condition depends on the data"). At most `max_nodes` are appended. Initializers are added to `graph`, weights
// among them to `stored`.
std::string inline_control_flow(::onnx::GraphProto& graph, const ::onnx::NodeProto& n, const Inferred& inferred,
                                int64_t max_nodes, std::vector<Stored>& stored, Emitter& e);

}  // namespace monet
