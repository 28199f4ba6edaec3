// Operators that training has no rule for, but that ONNX defines by a function of simpler operators, are replaced by
// that function (the last resort of DESIGN decision 1). Our part: choose the body, bring it to opset 22, give the call
// its default attributes; ONNX's inliner does the rest.
//
// Left alone: operators with a rule, folded nodes, nodes whose first output is no float (nothing to differentiate), and
// bodies with subgraphs (Range is a Loop). Requires an Inferred of the same model; afterwards it is stale.
#pragma once

#include <map>
#include <string>

#include "engine/onnx/infer.h"
#include "engine/onnx/model.h"

namespace monet {

// Returns whether anything changed; bodies may hold further functions: infer and call again until it is false.
// `expanded` counts nodes by operator.
bool expand_functions(::onnx::ModelProto& model, const Inferred& inferred, const BindOptions& options,
                      std::map<std::string, int>& expanded);

}  // namespace monet
