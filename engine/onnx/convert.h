// Brings a model to opset 22 with ONNX's version converter, around which some care is needed (DESIGN decision 1): it
// fails on training-mode BatchNormalization below opset 14 (five outputs), on is_test = 0, and loses types of inputs
// that are no tensors; some of its adapters (Softmax 12 -> 13, broadcasting 6 -> 7) need shapes, so they are inferred
// first. BatchNormalization in training mode comes out with training_mode = 1 and 3 outputs.
//
// A model newer than opset 22 is read as 22, with a warning: an operator that 22 does not have is refused by name.
// Requires sorted, normalised, inlined nodes, and no tensors without values.
#pragma once

#include <vector>

#include "engine/onnx/proto.h"

namespace monet {

// Outputs that training-mode BatchNormalizations had, taken away before sorting and given back after conversion.
struct TrainingNorm {
  std::string output;                      // output 0: the tensor that identifies the node
  std::string mean, variance;              // outputs 1 and 2: updated running statistics
  std::vector<std::string> graph_outputs;  // those of the former that the graph returned
};

// Below opset 14: cuts BatchNormalizations with several outputs to one, and drops is_test and the like.
std::vector<TrainingNorm> cut_training_norms(::onnx::ModelProto& model);

// Throws Refusal "not-convertible". Appends to `warnings`: "newer-opset".
void convert(::onnx::ModelProto& model, const std::vector<TrainingNorm>& norms, std::vector<Diagnostic>& warnings);

}  // namespace monet
