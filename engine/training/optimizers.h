// Optimizer updates as nodes: one unit per parameter, states as graph inputs and outputs, learning rate and step count
// as scalars given for each step. Constants are PyTorch's defaults.
#pragma once

#include <vector>

#include "engine/training/builder.h"
#include "engine/training/training_graph.h"

namespace monet {

// A unit that adds a micro-batch's gradient to the sum kept for its parameter; returns the new sum, a graph output.
TensorId add_to_sum(Builder& b, TensorId parameter, TensorId gradient);

// Appends the updates; returns the updated parameters and states, parameter by parameter, as graph outputs. `gradients`
// are parallel to `parameters`: of one batch, or sums over options.micro_batches of them. With options.clip_norm a unit
// that computes the norm of all gradients comes before.
std::vector<TensorId> add_updates(Builder& b, const TrainingOptions& options, const std::vector<TensorId>& parameters,
                                  const std::vector<TensorId>& gradients);

}  // namespace monet
