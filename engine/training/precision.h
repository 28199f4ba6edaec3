// Element types per class of tensor: what a training recipe stores in which width. The graph keeps the model's own
// types; a Precision says how many bytes a tensor takes when the recipe is applied (mixed precision: Micikevicius et
// al., ICLR 2018: 16-bit parameters, gradients and activations, fp32 master weights and optimizer state).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/ir/graph.h"

namespace monet {

struct Precision {
  // DType::undefined: as the model declares it.
  DType parameters = DType::undefined;
  DType gradients = DType::undefined;    // of parameters
  DType activations = DType::undefined;  // floats between operators, forward and backward, inputs included
  DType optimizer_state = DType::undefined;
  bool master_weights = false;  // an fp32 copy of every trained parameter beside the working one
};

Precision uniform_precision(DType type);  // every class of this type, no master weights
// "model", "fp32", "fp16", "bf16", "mixed_fp16", "mixed_bf16"; nothing for another name.
std::optional<Precision> precision_named(const std::string& name);
// "fp32", "fp16", "bf16", "model" -> float32, float16, bfloat16, undefined; nothing for another name.
std::optional<DType> dtype_named(const std::string& name);

// The element type that the tensor is stored in under the recipe. Integer and bool tensors keep theirs, and so do
// buffers (running statistics), constants and scalars.
DType stored_type(const Graph& graph, TensorId tensor, const Precision& precision);
// Bytes of the tensor in that type.
int64_t bytes(const Graph& graph, TensorId tensor, const Precision& precision);

}  // namespace monet
