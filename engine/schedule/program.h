// What is to run, before it is known when: units cut into tiles, tensors into pieces, in an order in which every tile
// comes after those it reads from (Stream's computation nodes and their edges; COST_MODEL section 3).
//
// A step is one time slice of a unit: up to one tile on each of its cores. Pieces are cut where tiles of the producer
// or of a reader end, so that a tile needs whole pieces; only where windows overlap does it need a part of a neighbour.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/cost/mapping.h"
#include "engine/hardware/accelerator.h"
#include "engine/ir/graph.h"
#include "engine/schedule/interconnect.h"
#include "engine/schedule/memory.h"
#include "engine/schedule/partition.h"
#include "engine/schedule/stores.h"
#include "engine/schedule/tile_cost.h"
#include "engine/training/precision.h"
#include "engine/workload/slicing.h"
#include "engine/workload/work.h"

namespace monet {

constexpr int kMaxCores = 128;

// Tiles of a step, by their place in it.
struct TileSet {
  std::array<uint64_t, 2> bits{};
  void add(int i) { bits[static_cast<size_t>(i >> 6)] |= uint64_t{1} << (i & 63); }
  bool has(int i) const { return bits[static_cast<size_t>(i >> 6)] >> (i & 63) & 1; }
};

struct Piece {
  TensorId tensor = kNone;
  int64_t bits = 0;
  MemoryCategory category = MemoryCategory::activations;
  int region = Stores::kNoRegion;  // of a core's memory, that it belongs into if there is one
  bool stored = false;             // off the chip from the start
  bool output = false;             // off the chip in the end
  bool crossing = false;           // read by another group than the one that makes it
  // Off the chip it takes no place of its own: it is written over what it updates, or is another group's piece of a
  // tensor that lies there.
  bool has_place = false;
};

struct Need {
  int32_t piece = 0;
  TileSet tiles;          // of the step, that read it
  int64_t bits = 0;       // moved to each: less than the piece's where windows reach into it, or part of it is selected
  bool streamed = false;  // read from off the chip while the tile runs
  bool partial = false;   // kept only while the tile runs
  bool second = false;    // the second operand (I2) of a contraction
};

struct Tile {
  int32_t core = 0;                  // index into Accelerator::cores
  int32_t first_made = 0, made = 0;  // of Program::made
  const TileCost* cost = nullptr;    // kept by the planner
};

struct Step {
  UnitId unit = kNone;
  int32_t slot = 0;   // its time slice
  int32_t group = 0;  // index into the partition
  int32_t first_tile = 0, tiles = 0;
  int32_t first_need = 0, needs = 0;
  int64_t exchanged_bits = 0;    // of partial sums, from each of its tiles to all others
  std::array<bool, 2> shared{};  // inputs (I1, I2) that all its tiles read in whole: a stream then serves all at once
};

struct ScheduleOptions {
  // Tensors that cross groups go off the chip, as Stream has it: units alone in their group stream all operands.
  // Otherwise they stay until their next use, if they fit.
  bool write_back = false;
  // As Stream of 2025-06 does it, for comparison: cores wait for each other before each layer, outputs stay where they
  // were made, streams cost no link energy, and everything that is no contraction costs as a loop nest
  // (workload/stream_layer.h).
  bool as_stream = false;
  // A parameter's gradient is added to the sum of earlier micro-batches where that lies; otherwise both are read and
  // the new sum is written.
  bool accumulate_in_place = true;
};

// What the scheduler knows of a unit without the partition.
struct UnitParts {
  std::vector<SliceAxis> axes;
  std::vector<char> second;           // by read
  std::vector<int64_t> read_bits;     // by read: moved when it is read in whole; 0 for constants
  std::vector<int64_t> written_bits;  // by write
  // By read, by write: it always streams, as an optimizer's states do.
  std::vector<char> read_streams, write_streams;
  std::optional<Layer> layer;  // of a contraction
};

// Where a unit's tiles run.
struct Placement {
  std::vector<int32_t> cores;  // one per slice
  int split = kNone;           // the axis divided among them: index into UnitParts::axes
  int tiled = kNone;           // the axis divided over time
  int64_t tiles = 1;
  // The share of its i-th read or write that the largest tile takes, with `parts` slices at a time.
  double share(const UnitParts& unit, int64_t parts, const std::vector<AxisUse> SliceAxis::*uses, size_t i) const;
};

struct Program {
  std::vector<Step> steps;
  std::vector<Tile> tiles;
  std::vector<Need> needs;
  std::vector<Piece> pieces;
  std::vector<int32_t> made;          // pieces that tiles make
  std::vector<Placement> placements;  // by unit
  int64_t state_bits = 0;             // of optimizer states: off the chip throughout, in no pieces
};

// Makes programs of one graph on one accelerator. Keeps what does not depend on the partition, tiles' costs included,
// so that searches ask it again and again.
class Planner {
 public:
  // Everything is kept by reference. Throws Refusal "no-core" for units that no core can run, "too-many-cores".
  Planner(const Graph& graph, const std::vector<Work>& works, const Accelerator& accelerator,
          const Precision& precision, const MappingFile& mapping, const CostOptions& costs,
          const ScheduleOptions& options, CostCache& cache);

  // `progress`: told the share of units placed; may throw to end it. Throws Refusal "cyclic-groups", "no-mapping",
  // "bad-mapping" with the problems of all units. Of a partition that leaves units out, only its groups are run: what
  // others make is off the chip before it starts, and what others read counts as read by another group.
  Program program(const Partition& partition, const std::function<void(double done)>& progress = {});
  // Where the units of a group run, in their order; views nowhere. Throws Refusal "no-core", "no-mapping".
  std::vector<Placement> placed(const FusedGroup& group);

  const Graph& graph() const { return graph_; }
  const std::vector<Work>& works() const { return works_; }
  const Accelerator& accelerator() const { return accelerator_; }
  const MappingFile& mapping() const { return mapping_; }
  const std::vector<UnitEdge>& edges() const { return edges_; }
  const Interconnect& interconnect() const { return interconnect_; }
  const Stores& stores() const { return stores_; }
  const ScheduleOptions& options() const { return options_; }
  const UnitParts& parts(UnitId unit) const { return parts_[static_cast<size_t>(unit)]; }
  int region(TensorId tensor) const;  // that it belongs into, or Stores::kNoRegion
  const std::vector<UnitId>& readers(TensorId tensor) const { return readers_[static_cast<size_t>(tensor)]; }
  UnitId maker(TensorId tensor) const { return maker_[static_cast<size_t>(tensor)]; }
  bool is_output(TensorId tensor) const { return is_output_[static_cast<size_t>(tensor)]; }

 private:
  struct Held;
  struct Build;
  bool streams(const FusedGroup& group) const;
  void hold(std::vector<Held>& held, UnitId unit, const Placement& placement) const;
  const TileCost& tile_cost(UnitId unit, int32_t core, const Placement& placement, int64_t parts, bool stream);
  Placement place(UnitId unit, const FusedGroup& group, bool stream, const std::vector<Held>& held);

  const Graph& graph_;
  const std::vector<Work>& works_;
  const Accelerator& accelerator_;
  const MappingFile& mapping_;
  ScheduleOptions options_;
  Interconnect interconnect_;
  int64_t offchip_bandwidth_ = 0;  // bit/cycle
  Stores stores_;
  TileCosts costs_;
  std::vector<TensorId> storage_;
  std::vector<int64_t> element_bits_;  // by tensor
  std::vector<UnitParts> parts_;
  std::vector<UnitEdge> edges_;
  // By tensor: the unit that makes it; the units that read it; whether it is an output; made forward and read backward.
  std::vector<UnitId> maker_;
  std::vector<std::vector<UnitId>> readers_;
  std::vector<char> is_output_, saved_;
  int64_t state_bits_ = 0;
  std::vector<std::vector<int32_t>> arrays_, vectors_, poolers_;  // one list of cores each, if there are any
  std::unordered_map<uint64_t, size_t> known_;
  std::deque<TileCost> tile_costs_;
};

}  // namespace monet
