// Plans that need no solver: what practitioners fuse by hand, and the best saving first.
#pragma once

#include <vector>

#include "engine/fusion/plan.h"

namespace monet {

// Forward: a convolution or matrix product with the normalisation, activation and elementwise units that follow it in a
// chain; attention (product, elementwise, softmax, product) as one group. Backward: the gradients of what is one group
// forward. Everywhere: what is left of chains of elementwise units and normalisations. Groups end where a rule is
// broken.
std::vector<std::vector<UnitId>> manual_groups(const CandidateCosts& candidates);

// The candidate that saves most against its units alone, then the next that overlaps none and closes no cycle, and so
// on. By `groups` those with most units save most.
std::vector<std::vector<UnitId>> greedy_groups(const CandidateCosts& candidates, FusionObjective objective);

}  // namespace monet
