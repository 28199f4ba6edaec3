// Gives every dimension of the data inputs a number. Requires weights to be told apart from data (weights.h).
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "engine/onnx/model.h"
#include "engine/onnx/proto.h"

namespace monet {

// Open dimensions are those with a name, without anything, and with a number below 1 (older exporters wrote 0 or -1).
// A name has one value throughout. Appends to `problems`: "missing-shape", "unsupported-type", "unknown-dim",
// "bad-dim".
std::vector<BoundDim> bind_dims(::onnx::GraphProto& graph, const std::unordered_set<std::string>& stored,
                                const BindOptions& options, std::vector<Diagnostic>& problems);

}  // namespace monet
