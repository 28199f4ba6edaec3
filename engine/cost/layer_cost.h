// The cost of a layer on one core: the best mapping of its loops, its cycles and its energy. What ZigZag computes
// (arXiv 2007.11360 for the model, 2101.05234 for the search by loop orders; version 3.8.5's results, quirks included:
// COST_MODEL section 2), by the same exhaustive search: nothing is pruned, so the mapping is the best of all orders.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/cost/mapping.h"
#include "engine/hardware/accelerator.h"
#include "engine/workload/layer.h"

namespace monet {

// What the mapping kept has least of. Equal cycles: least energy; equal energy: fewest cycles; then the first found.
enum class Objective : uint8_t { latency, energy, edp };
constexpr Objective kObjectives[] = {Objective::latency, Objective::energy, Objective::edp};
const char* name(Objective objective);

struct CostOptions {
  Objective objective = Objective::latency;
  int factor_limit = 6;        // temporal loops per layer (ZigZag's lpf_limit); one per loop if these are more
  int spatial_candidates = 3;  // generated spatial mappings tried where none is given
  // Of so many equal tiles that run side by side (0: not asked): what has the least cycles times the times that the
  // off-chip memory's bandwidth is asked for is kept, the first of equals, in place of `objective`. Stream's choice of
  // mappings: one input, of the operands with most levels, counts once for all tiles.
  int parallel_tiles = 0;

  // ZigZag's results come with six faults, which are the default. The corrected model:
  // - Transfers that happen once are shortened by what a port has to spare during computation, but never below the
  //   first tile's transfer, without which nothing starts. (ZigZag lets a later transfer take more off an earlier one.)
  bool hold_floors = false;
  // - Onloads over half-shared pairs of levels (one of whose ports serves both inputs) add up. (ZigZag keeps the last
  //   of one input, and lets both inputs load at once.)
  bool add_half_shared = false;
  // - A memory takes no more loops than the memories above can hold for all its instances, so an order fits if single
  //   tiles do. (ZigZag lets it take what it can itself hold, and skips orders that then overflow above: where
  //   registers together hold more than the memory that feeds them, none may be left.)
  bool leave_room_above = false;
  // - What a port has to spare for transfers that happen once is what all others leave. (ZigZag drops fractions of a
  //   bit a cycle, and partial sums that come back.)
  bool count_all_traffic = false;
  // - Accesses count parts of words. (ZigZag drops them at the end, so that tiny tensors move for nothing.)
  bool count_partial_words = false;
  // - A loop that its unrolling does not divide moves tiles of its average size, in cycles as in energy. (ZigZag counts
  //   cycles with that size rounded down, and rounds what windows span and how many elements that makes.)
  bool count_uneven_tiles = false;
};

// One operand at one memory level.
struct LevelCost {
  int memory = 0;                      // index into Core::memories
  std::vector<Unrolling> spatial;      // over array dimensions that this memory serves and no lower one of the operand
  std::vector<TemporalLoop> temporal;  // innermost first
  double bits = 0;                     // held by one instance, on average over instances
  bool double_buffered = false;        // room to load the next tile while this one is used
  // Accesses of full words (bandwidth_max), all instances.
  double reads_to_low = 0, writes_by_low = 0, reads_to_high = 0, writes_by_high = 0;
  double energy = 0;  // pJ
};

struct OperandCost {
  std::string name;               // as in the layer
  std::string memory_operand;     // I1, I2, O
  std::vector<LevelCost> levels;  // lowest first
  // Bits per cycle that leave the highest level (an input) or reach it (the output) while they move: a period's share
  // in what of the period is left for it, whole numbers (ZigZag's instantaneous bandwidth, which Stream holds the
  // off-chip link with).
  int64_t top_bandwidth = 0;
};

// A port that keeps the array waiting. All work side by side, so the longest stall is the layer's.
struct PortStall {
  int memory = 0;  // index into Core::memories
  std::string port;
  double cycles = 0;
};

struct LayerCost {
  // Cycles. ideal: MACs / PEs, rounded up; temporal: the iterations that the spatial mapping leaves. Halves occur:
  // spare bandwidth is divided among transfers.
  double ideal_cycles = 0, temporal_cycles = 0, stall = 0, onload = 0, offload = 0;
  double cycles() const { return temporal_cycles + stall + onload + offload; }
  double spatial_utilisation() const { return ideal_cycles / temporal_cycles; }
  double utilisation() const { return ideal_cycles / cycles(); }

  double mac_energy = 0;  // pJ
  double energy = 0;      // pJ: MACs and all memory accesses

  std::vector<PortStall> stalls;
  SpatialMapping spatial;
  std::vector<TemporalLoop> order;    // innermost first
  std::vector<OperandCost> operands;  // as in the layer
  int64_t orders = 0;                 // tried, of all spatial candidates
};

// `core`: with the memory that closes its hierarchy (with_offchip). Throws Refusal:
//   "no-mapping" when no order fits the core's memories; "bad-mapping" when links or a temporal ordering do not fit the
//   layer; "no-memory", "no-port" when the core has no memory for an operand or no port for a direction it needs;
//   "too-many-loops" beyond 10 temporal loops (3,628,800 orders).
LayerCost cost_layer(const Layer& layer, const Core& core, const LayerMapping& mapping,
                     const CostOptions& options = {});

// The cost of one given order of loops, innermost first; it must make up the iterations that the mapping's dataflow
// leaves. Throws as cost_layer does.
LayerCost cost_order(const Layer& layer, const Core& core, const LayerMapping& mapping,
                     const std::vector<TemporalLoop>& order, const CostOptions& options = {});

// A core of the accelerator as ZigZag describes one: the off-chip memory, if any, on top of its own.
Core with_offchip(const Accelerator& accelerator, size_t core);
// The same for some of I1, I2 and O only: the others stay in the core.
Core with_offchip(const Accelerator& accelerator, size_t core, const std::vector<std::string>& memory_operands);

// The operands (I1, I2, O) that do not fit the core's highest memories, as Stream decides it: of those that share one,
// the smallest stay, as long as room is left for what all instances of the others' lowest memories hold. `links`: from
// the layer's operands.
std::vector<std::string> operands_offchip(const Layer& layer, const Core& core,
                                          const std::map<std::string, std::string>& links);

// Remembers costs by what they depend on: loops, operands, precisions, core, mapping and options; names do not matter.
class CostCache {
 public:
  // Throws Refusal as cost_layer does; of equal layers the first is named. What it returns stays where it is.
  const LayerCost& cost(const Layer& layer, const Core& core, const LayerMapping& mapping,
                        const CostOptions& options = {});
  size_t size() const { return costs_.size(); }

 private:
  struct Entry {
    LayerCost cost;
    std::vector<Diagnostic> problems;  // in place of a cost
  };
  std::map<std::string, Entry> costs_;
};

}  // namespace monet
