// The backward pass: reverse-mode differentiation of the forward nodes by the table of gradient rules.
#pragma once

#include <vector>

#include "engine/ir/diagnostic.h"
#include "engine/training/builder.h"

namespace monet {

struct BackwardPass {
  size_t forward_nodes = 0;          // the first nodes of the graph, to be differentiated
  TensorId from = kNone;             // the tensor whose gradient is given
  TensorId gradient = kNone;         // that gradient
  std::vector<TensorId> parameters;  // to be trained, all reached by gradients of `from`
  bool frozen_batch_norm = false;
};

// Emits the backward nodes, in reverse order of the forward ones, so that what was saved last is freed first. Returns
// the gradients parallel to `parameters`. Every operator without a rule on the path is added to `problems` (then the
// graph is of no use).
std::vector<TensorId> differentiate(Builder& builder, const BackwardPass& pass, std::vector<Diagnostic>& problems);

}  // namespace monet
