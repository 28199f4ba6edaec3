// Shapes, types and known values of every tensor, in one pass over the sorted nodes: ONNX's own inference per node,
// strictly, and folding in step with it (which covers what ONNX's data propagation would: that indexes without
// looking), so that a shape computed by operators is known by the time it is needed. This reaches the fixed point that
// repeated whole-model passes would.
//
// Folding never goes through weights: float initializers are no known values, except beside a value that was computed
// from shapes (a Resize whose size is shape times a stored scale). Requires nodes that passed their schemas, inputs
// whose dimensions are numbers, opset 22.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/onnx/proto.h"

namespace monet {

struct Inferred {
  std::unordered_map<std::string, ::onnx::TypeProto> types;     // by tensor name; complete for all that nodes produce
  std::unordered_map<std::string, ::onnx::TensorProto> values;  // folded results: constants from here on
  std::unordered_set<std::string> from_shapes;                  // those values that depend on a tensor's shape
  std::vector<Diagnostic> problems;  // "shape-error", "unknown-shape", "unsupported-type", in node order
  std::vector<int> failed;           // nodes that `problems` are about
};

// Nodes that ONNX infers through their function body get their default attributes written down (the body refers to
// them); nothing else is changed. `fold_nodes`: false leaves values alone (training graphs read back keep every node).
Inferred infer(::onnx::ModelProto& model, bool fold_nodes);

// Adds value_info for what can be said while dimensions are still open, at whatever opset the model is of; nodes whose
// inputs do not fit stay without.
void add_ranks(::onnx::ModelProto& model);

// The tensor's shape when type and every dimension are known.
bool known_shape(const ::onnx::TypeProto& type, Shape& shape);

}  // namespace monet
