// LSTM, GRU and RNN as the plain operators that define them (ONNX's equations; Hochreiter and Schmidhuber, Neural
// Computation 9, 1997; Cho et al., arXiv 1406.1078), one copy of the cell per step: so training differentiates them by
// its ordinary rules, and what backward keeps is what the steps make. The inputs of all steps and gates meet their
// weights in one Gemm; each step has one more (GRU: up to two) for the recurrent weights.
//
// Cases: all directions and layouts, initial states, peepholes, input_forget, linear_before_reset. Requires inferred
// shapes of X, W and R.
#pragma once

#include <string>

#include "engine/onnx/emitter.h"
#include "engine/onnx/infer.h"

namespace monet {

bool is_recurrent(const ::onnx::NodeProto& n);

// Appends the equivalent of `n`, with the same output names, and returns ""; or appends nothing and returns why not
// ("its clip is ..."). At most `max_nodes` are appended.
std::string unroll_recurrent(const ::onnx::GraphProto& graph, const ::onnx::NodeProto& n, const Inferred& inferred,
                             int64_t max_nodes, Emitter& e);

}  // namespace monet
