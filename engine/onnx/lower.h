// Operators that hold a computation of many steps are replaced by those steps, in standard operators that have gradient
// rules: If, Loop and Scan (control_flow.h), LSTM, GRU and RNN (recurrent.h); and GlobalLpPool, which ONNX Runtime does
// not run at opset 22, by the LpPool that it is. GroupNormalization's scale and bias of one value a group (opsets 18 to
// 20) are repeated for the channels.
//
// What cannot be replaced stays one node, which has no gradient; `kept` says why. Requires an Inferred of
// the same model; afterwards it is stale.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/onnx/infer.h"
#include "engine/onnx/value.h"
#include "engine/onnx/weights.h"

namespace monet {

// Nodes that lowering may add to one model: an LSTM of 1,000 steps in both directions has some 24,000, the largest real
// graphs some 10,000; beyond, building and showing the training graph takes seconds.
constexpr int64_t kMaxLowered = int64_t{1} << 16;

struct Lowered {
  struct Kept {
    std::string reason;   // "it clips its gates"
    bool opaque = false;  // what it computes is not counted: control flow
  };
  std::map<std::string, int> replaced;  // nodes by operator
  int64_t nodes = 0;                    // that they became
  std::map<std::string, Kept> kept;     // by name_of(node)
};

// Returns whether anything changed: bodies may hold further ones, so infer and call again until it is false.
bool lower(::onnx::ModelProto& model, const Inferred& inferred, std::vector<Stored>& stored, Lowered& lowered);

// What `lower` needs of an operator to replace it ("constant sequence_lens, ..."); null when it never does.
const char* lowering_condition(const std::string& op);

// The value of a tensor of the main graph, where it is known: folded, or an initializer that kept it.
std::optional<Value> known_value(const ::onnx::GraphProto& graph, const Inferred& inferred, const std::string& name);

}  // namespace monet
