// Values of small tensors: computes a node whose inputs are known (DESIGN decision 1: exporters compute shapes with
// operators, and shape inference alone stops at some of them). This is evaluation, not a shape rule.
//
// Cases: shape arithmetic as exporters write it (the table in fold.cc). Only operators whose results are exact in IEEE
// arithmetic, so that native and WASM agree; anything else, and anything that goes wrong, is left to the graph.
// Requires a node that passed its schema, at opset 22.
#pragma once

#include <optional>
#include <vector>

#include "engine/onnx/value.h"

namespace monet {

// Whether fold knows the operator at all.
bool can_fold(const ::onnx::NodeProto& node);

// The node's outputs, or nothing. `inputs` has one entry for each of the node's inputs; nullptr: absent.
std::optional<std::vector<Value>> fold(const ::onnx::NodeProto& node, const std::vector<const Value*>& inputs);

}  // namespace monet
