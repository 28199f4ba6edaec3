// Losses: the nodes that turn an output into a scalar, and those of its gradient.
#pragma once

#include <vector>

#include "engine/training/builder.h"
#include "engine/training/training_graph.h"

namespace monet {

struct LossNodes {
  Loss kind = Loss::sum;
  TensorId value = kNone;           // scalar
  TensorId reads = kNone;           // the forward tensor that the value is computed from
  TensorId differentiated = kNone;  // the forward tensor that `gradient` belongs to: `reads`, or the logits before it
  TensorId gradient = kNone;
  std::vector<TensorId> labels;  // graph inputs added
};

// What `automatic` stands for: cross entropy for logits over at least two classes, else mean squared error.
Loss choose_loss(const Graph& graph, TensorId output, Loss asked);

// Cross entropy: classes are the last axis of outputs of rank 2 and 3 ([N, C], [N, sequence, C]) and axis 1 from rank 4
// on ([N, C, H, W]); an output made by Softmax or LogSoftmax says its axis itself. Labels: int64, the output's shape
// without that axis; the mean over all labels is taken. Mean squared error: a target of the output's shape.
LossNodes add_loss(Builder& b, TensorId output, Loss loss, std::vector<Diagnostic>& warnings);

}  // namespace monet
