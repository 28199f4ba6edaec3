// The payload-free form of a model (what links hold and examples/models are), from what skim kept.
#pragma once

#include <string>

#include "engine/onnx/proto.h"

namespace monet {

// Drops what import does not read: declared shapes of inner tensors, which are inferred, except those that foreign
// operators make.
void strip(::onnx::ModelProto& model);

// Gives inner tensors the shortest names that are free, and nodes none (they are then called by their first output).
// Graph inputs, outputs and stored tensors keep their names.
void shorten_names(::onnx::ModelProto& model);

}  // namespace monet
