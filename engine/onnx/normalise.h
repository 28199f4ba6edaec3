// First stage after skimming: one spelling for what ONNX allows in several, and a check of every node against its
// operator's schema, so that the stages after this one (and ONNX's converter, inliner and inference, which trust their
// input) see only well-formed nodes.
//
// Cases: domain "ai.onnx" is ""; a missing opset import (IR < 3) is opset 1; attributes without a type (IR 1) get it
// from the field that is set; initializers that are also inputs (IR <= 3) are weights, no inputs; sparse tensors become
// dense ones without values (their cost is counted as if dense); node names, op types and arities are checked.
// Nothing is required before.
#pragma once

#include <vector>

#include "engine/onnx/proto.h"

namespace monet {

// Appends what is wrong to `problems`: "bad-model", "bad-node", "bad-attribute", "unknown-operator".
void normalise(::onnx::ModelProto& model, std::vector<Diagnostic>& problems);

// Version of ai.onnx that the model imports; 0 when none. Requires normalised domains.
int opset_of(const ::onnx::ModelProto& model);

// Checks every node (subgraphs included) of a graph against its schema at the model's opset; for after conversion.
void check_nodes(const ::onnx::ModelProto& model, std::vector<Diagnostic>& problems);

}  // namespace monet
