// Recognises models exported for inference (DESIGN decision 16): their BatchNormalizations are folded into
// convolutions, so that a training analysis would keep about half the activations it should.
//
// A Conv counts as folded when it has a bias and the graph has no normalisation at all, and the bias carries a name
// that only a tool gives (PyTorch's "onnx::Conv_194" or "194", tf2onnx's "const_fold_opt", anything with "BatchNorm" or
// "_bn"). A bias that keeps its module's name ("conv1.bias") was there before: LeNet, AlexNet and VGG are no inference
// exports.
#pragma once

#include <unordered_set>
#include <vector>

#include "engine/onnx/proto.h"
#include "engine/onnx/weights.h"

namespace monet {

// Indices of the Convs that a BatchNormalization was folded into. Requires opset 22 and classified weights.
std::vector<int> folded_convs(const ::onnx::GraphProto& graph, const std::vector<Stored>& stored);

Diagnostic inference_export_warning(int convs);

// Takes the bias away from each of these Convs and puts a training-mode BatchNormalization after it: scale and bias
// parameters, mean and variance buffers, named after the Conv's output, which the normalisation now writes.
void assume_batch_norms(::onnx::GraphProto& graph, const std::vector<int>& convs, std::vector<Stored>& stored);

}  // namespace monet
