// Lower bounds of time and energy: what no mapping and no schedule can beat. Node alone: cycles >= max(operations / peak,
// compulsory bytes / off-chip bandwidth); energy >= operations x unit energy + compulsory traffic. In total only bytes
// that must cross the chip's edge count, once each (DESIGN decision 7).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/hardware/accelerator.h"
#include "engine/ir/graph.h"
#include "engine/training/precision.h"
#include "engine/workload/work.h"

namespace monet {

struct Bound {
  double compute_cycles = 0;
  double traffic_cycles = 0;
  double compute_energy = 0;  // pJ
  double traffic_energy = 0;  // pJ
  int64_t traffic_bytes = 0;
  double cycles() const { return compute_cycles > traffic_cycles ? compute_cycles : traffic_cycles; }
  double energy() const { return compute_energy + traffic_energy; }
};

// A unit run alone: everything it reads and writes crosses the edge once.
Bound unit_bound(const Graph& graph, const Work& work, const Accelerator& accelerator, const Precision& precision);

// The units given, run as one: compute of all of them; traffic of parameters, optimizer state, inputs, labels read and
// of outputs, updated parameters and states written, once each.
Bound total_bound(const Graph& graph, const std::vector<Work>& works, const Accelerator& accelerator,
                  const Precision& precision);

}  // namespace monet
