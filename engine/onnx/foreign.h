// Operators of domains that ONNX does not define. Those that ONNX Runtime's training graphs hold (com.microsoft) are
// registered with ONNX's own registry, by the few shape rules in foreign.cc. Any other one is kept as an opaque node if
// the file declares type and shape of all its outputs (as value_info or graph outputs); its cost is then assumed to be
// one operation for each element it makes.
#pragma once

#include <string>
#include <unordered_map>

#include "engine/onnx/proto.h"

namespace monet {

constexpr const char* kMicrosoft = "com.microsoft";

// Must be called before operators are looked up; calls after the first do nothing.
void register_foreign_schemas();

// Whether the domain is neither ONNX's own nor that of one of the model's functions.
bool is_foreign(const ::onnx::ModelProto& model, const std::string& domain);

// Types that the file declares for tensors: a type with a shape of known rank, by name.
std::unordered_map<std::string, const ::onnx::TypeProto*> declared_types(const ::onnx::GraphProto& graph);

}  // namespace monet
