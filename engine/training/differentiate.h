// The backward pass: reverse-mode differentiation of the forward nodes by the table of gradient rules.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "engine/training/builder.h"
#include "engine/training/path.h"

namespace monet {

// A node on the gradients' way whose operator has no rule, or that is a variant which the rule refuses.
struct MissingRule {
  NodeId node = kNone;
  std::string reason;  // why the rule refuses; empty: there is none
  std::string hint;
};

struct BackwardPass {
  size_t forward_nodes = 0;          // the first nodes of the graph, to be differentiated
  TensorId from = kNone;             // the tensor whose gradient is given
  TensorId gradient = kNone;         // that gradient
  std::vector<TensorId> parameters;  // to be trained, all reached by gradients of `from`
  bool frozen_batch_norm = false;
  std::set<NodeId> opaque;  // nodes whose gradient is that of their first output, unchanged, for every input that
                            // is not stopped; those inputs must have the output's shape
  StoppedInputs stopped;
  // Called for each parameter as soon as its gradient is complete, in the midst of the backward nodes; may be empty.
  std::function<void(TensorId parameter, TensorId gradient)> complete;
};

// Emits the backward nodes, in reverse order of the forward ones, so that what was saved last is freed first. Returns
// the gradients parallel to `parameters`. Every node on the path that has no rule and is not opaque is added to
// `missing`, the last one first (then the graph is of no use).
std::vector<TensorId> differentiate(Builder& builder, const BackwardPass& pass, std::vector<MissingRule>& missing);

}  // namespace monet
