// Model-local functions: inlined by ONNX's own inliner, after checking that this ends and stays small (functions may
// call functions; a hostile file could recurse or double at every level). Requires normalised nodes.
#pragma once

#include <vector>

#include "engine/onnx/proto.h"

namespace monet {

// Throws Refusal: "recursive-function", "too-large", "bad-function" (what the inliner cannot do, with its reason).
void inline_functions(::onnx::ModelProto& model);

}  // namespace monet
