// Training graphs made by ONNX Runtime (its training artifacts, and tools that build on them): recognised, and analysed
// as they are. Nothing in such a file says what a node is for; here phases, units, origins and kinds of tensors are
// inferred from data flow, and from the names that ONNX Runtime's gradient builder gives ("X_grad" is the gradient of
// X, nodes of the gradient of node N have "N_Grad/" in their names or outputs).
//
// - The forward pass is what the first gradient node (SoftmaxCrossEntropyLossGrad) depends on.
// - The optimizer begins with the first node named after one, and lasts to the end; gradient accumulation in between
//   belongs to it. What lies between forward pass and optimizer is the backward pass.
// - Data inputs are those listed up to the labels; further ones are parameters if the forward pass reads them and
//   optimizer state (accumulated gradients included) if the optimizer does.
// - The gradient of a contraction is the unit of its matrix product with the layout moves around it, so that it is
//   costed by the loop nest of its forward node.
#pragma once

#include "engine/onnx/proto.h"

namespace monet {

bool is_training_artifact(const ::onnx::GraphProto& graph);

// Requires the graph of such a file as to_ir made it, all its nodes kept; sets phases, units, origins and kinds.
void recognise_training(Graph& graph);

}  // namespace monet
