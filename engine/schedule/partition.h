// Which units run together as a fused group: tile by tile, so that what passes between them need not be held whole. A
// group of one unit runs layer by layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/workload/slicing.h"
#include "engine/workload/work.h"

namespace monet {

struct FusedGroup {
  std::vector<UnitId> units;  // in execution order
  // How many tiles every unit is cut into, along the axis of that kind (weights' gradients along their output channels,
  // updates along their first axis): where the axis is shorter, the largest divisor that it has room for. A unit
  // without such an axis runs whole.
  int64_t tiles = 1;
  SliceAxis::Kind axis = SliceAxis::Kind::batch;
};

struct Partition {
  // Every unit in exactly one. A program can be made of some groups alone (schedule/program.h).
  std::vector<FusedGroup> groups;
};

Partition layer_by_layer(const Graph& graph);
// All units in one group: Stream's fused runs, whose tiles a mapping file gives.
Partition all_fused(const Graph& graph);

// `text`: JSON {"groups": [{"units": [3, "conv1"], "tiles": 8, "axis": "rows"}]}; units by their id in a report's
// `layers` or by name, each at most once; those not named run alone. Throws Refusal with every problem found.
Partition parse_partition(const std::string& text, const Graph& graph);

// The groups in an order in which each comes after those it reads from; as given where that leaves a choice. `edges`:
// of the graph's units (workload/work.h). Throws Refusal "cyclic-groups" that names two groups which wait for each
// other.
std::vector<size_t> group_order(const Graph& graph, const std::vector<UnitEdge>& edges, const Partition& partition);

// The name that people call a unit by: as in a report's `layers`.
std::string unit_name(const Graph& graph, const Unit& unit);

}  // namespace monet
