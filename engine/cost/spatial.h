// Spatial mapping: which loops a core's array unrolls over which of its dimensions (ZigZag, arXiv 2007.11360;
// COST_MODEL section 2, "Spatial mapping"), given by a mapping file, by the core's dataflow, or generated.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/hardware/accelerator.h"
#include "engine/workload/layer.h"

namespace monet {

// As in files: array dimension -> {(loop, unrolling)}. Loops that the layer lacks are passed over.
using Dataflow = std::map<std::string, std::vector<std::pair<std::string, int64_t>>>;

// One loop over one array dimension. A loop of size S unrolled U-fold in all runs T = ceil(S / U) times; where U does
// not divide S, S / T units work on average, which is what energy counts, and int(S / T) is what cycles are counted
// with.
struct Unrolling {
  int loop = 0;       // index into Layer::loops
  int dimension = 0;  // index into Core::dimensions
  // Units at work, numerator / denominator: a whole number except for the outermost unrolling of a loop that its
  // unrollings do not divide.
  int64_t numerator = 1, denominator = 1;
  int64_t whole = 1;  // the same, rounded down (at least 1)
  double units() const { return static_cast<double>(numerator) / static_cast<double>(denominator); }
};

struct SpatialMapping {
  std::vector<Unrolling> unrollings;  // by array dimension, in the order of the dataflow
  std::vector<int64_t> temporal;      // iterations that remain of each loop of the layer: ceil(S / U)
};

// Caps every unrolling by what is left of its array dimension and of its loop.
SpatialMapping resolve(const Dataflow& dataflow, const Layer& layer, const Core& core);

// For layers without a dataflow: for each array dimension one loop (or none), unrolled as far as both allow, no loop
// twice. Those that leave the fewest iterations, i.e. keep most units at work, come first; of equals those that take
// earlier loops. Never empty.
std::vector<SpatialMapping> generate_spatial(const Layer& layer, const Core& core);

}  // namespace monet
