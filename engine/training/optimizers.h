// Optimizer updates as nodes: one unit per parameter, states as graph inputs and outputs, learning rate and step count
// as scalars given for each step.
#pragma once

#include <vector>

#include "engine/training/builder.h"
#include "engine/training/training_graph.h"

namespace monet {

// Appends the updates; returns the updated parameters and states, parameter by parameter, as graph outputs.
std::vector<TensorId> add_updates(Builder& b, Optimizer optimizer, const std::vector<TensorId>& parameters,
                                  const std::vector<TensorId>& gradients);

}  // namespace monet
