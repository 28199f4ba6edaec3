// Reads the structure of an ONNX file without its weights (DESIGN decision 2): walks the protobuf wire format through a
// block cache and transcribes every message except payloads into a ModelProto.
//
// Kept of a tensor: name, dims, element type; its values when they take at most 1 KiB (of any type), or when they are
// at most 4,096 integers (shapes, indices: folding needs them). Of float initializers only at most 64 bytes (Clip
// bounds, Resize scales): larger ones are weights, and a structure link must not carry a BatchNormalization's numbers.
// Kept values are always in raw_data (strings excepted) and have exactly the size that dims and type ask for. Values in
// external files, segments and larger ones are dropped. Dropped everywhere: doc_string, metadata (our own keys
// excepted), training_info, quantization_annotation, unknown fields.
//
// Hostile input: memory is bounded by kMaxStructure, nesting by kMaxNesting, time by the file's size.
#pragma once

#include <string>

#include "engine/onnx/block_cache.h"
#include "engine/onnx/proto.h"

namespace monet {

// Throws Refusal: "empty-file", "not-onnx" (says what it looks like), "truncated", "corrupt", "too-large".
::onnx::ModelProto skim(BlockCache& file, const std::string& name);

}  // namespace monet
