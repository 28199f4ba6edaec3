// Lower bounds of time and energy: what no mapping and no schedule can beat on the described accelerator (the roofline
// of Williams et al., CACM 2009, with every core's peak and the chip's edge as roofs).
//
// Unit alone: cycles >= max(operations / peak, compulsory bytes / off-chip bandwidth); energy >= operations x unit
// energy + compulsory traffic. In total only bytes that must cross the chip's edge count, once each (DESIGN decision
// 7); a unit's compulsory bytes bound that unit run alone and are not summed.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/hardware/accelerator.h"
#include "engine/ir/graph.h"
#include "engine/training/precision.h"
#include "engine/workload/work.h"

namespace monet {

struct Bound {
  // max(MACs / MAC units, (MACs + vector operations) / all units): a PE does one of either per cycle, and only cores
  // that run contractions do MACs.
  double compute_cycles = 0;
  double traffic_cycles = 0;  // traffic_bytes * 8 / off-chip bandwidth; 0 when no off-chip memory is described
  double compute_energy = 0;  // pJ: MACs and operations at the unit energy of the cheapest core that does them
  double traffic_energy = 0;  // pJ: at the cheaper of off-chip read and write
  int64_t traffic_bytes = 0;
  double cycles() const { return compute_cycles > traffic_cycles ? compute_cycles : traffic_cycles; }
  double energy() const { return compute_energy + traffic_energy; }
};

struct Traffic {
  int64_t read = 0, written = 0;  // bytes
};
// A unit run alone: everything it reads (only the selected elements for Gather, Slice and the like) and writes, once.
// Constants are part of the program and do not count.
Traffic unit_traffic(const Graph& graph, const Work& work, const Precision& precision);

// A unit run alone: its traffic crosses the edge once. Of a contraction that is what its loop nest touches, as in the
// cost model: no bias, and no zeros between the positions of a strided convolution's gradient.
Bound unit_bound(const Graph& graph, const Unit& unit, const Work& work, const Accelerator& accelerator,
                 const Precision& precision);

// The units given, run as one: compute of all of them; traffic of the tensors that come from outside the graph (inputs,
// labels, parameters, buffers, optimizer state, scalars) and that some unit reads, once each by the largest part that
// one unit touches, and of graph outputs that the units write: outputs, updated parameters, states and statistics. What
// passes between units may stay on the chip, and so may gradient sums between micro-batches; inputs and labels cross
// once for each of those. For inference give the forward graph and its works.
//
// With master weights an updated parameter is read as fp32 (the working copy follows from it) and written in both
// widths.
Bound total_bound(const Graph& graph, const std::vector<Work>& works, const Accelerator& accelerator,
                  const Precision& precision);

}  // namespace monet
