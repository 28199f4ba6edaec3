// Operators on the gradients' way that have no rule: how they are reported, and how the backward pass goes on around
// them when the user prefers that to a refusal (TrainingOptions::unsupported).
#pragma once

#include <set>
#include <vector>

#include "engine/ir/diagnostic.h"
#include "engine/training/differentiate.h"
#include "engine/training/training_graph.h"

namespace monet {

// One problem ("no-gradient") per operator and reason: how many nodes, the first of them, and what the user can do.
std::vector<Diagnostic> missing_rules(const Graph& graph, const std::vector<MissingRule>& missing);

// The same as warnings ("gradient-stopped", "gradient-passed") that state what is assumed.
std::vector<Diagnostic> gap_warnings(const Graph& graph, const std::vector<MissingRule>& missing, Unsupported choice);

// What differentiate() is told about such nodes.
struct Gaps {
  std::set<NodeId> opaque;
  StoppedInputs stopped;

  // `choice` is stop or pass.
  void add(const Graph& graph, const std::vector<MissingRule>& missing, Unsupported choice);
};

}  // namespace monet
