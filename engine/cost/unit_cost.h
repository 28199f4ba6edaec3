// What every unit of a graph costs on an accelerator with one core for contractions, each unit run alone, its operands
// coming from and going to the memory that closes the core's hierarchy: contractions by the mapping search
// (layer_cost.h), everything else by the vector rule (vector_cost.h). Units run one after the other, so their costs add
// up. Accelerators with several such cores need a schedule; until then they have bounds alone.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/cost/layer_cost.h"
#include "engine/hardware/accelerator.h"
#include "engine/ir/graph.h"
#include "engine/training/precision.h"
#include "engine/workload/layer.h"
#include "engine/workload/work.h"

namespace monet {

struct LevelEnergy {
  std::string level;  // "compute", or the memory's name
  double energy = 0;  // pJ
};

struct UnitCost {
  enum class Rule : uint8_t {
    nothing,  // a view
    mapping,  // the mapping search
    vector,   // the vector rule
    bound,    // the lower bound, for a contraction that finds no mapping (named among the warnings)
  };
  Rule rule = Rule::nothing;
  double cycles = 0, energy = 0;  // pJ; of one run
  double utilisation = 0;         // of the PEs by multiply-accumulates; mapping only
  std::string bound_by;           // "compute", or the memory that is waited for; "loading": first and last transfers
  std::vector<LevelEnergy> levels;
  int mapping = kNone;  // index into GraphCost::mappings
};
const char* name(UnitCost::Rule rule);

// A mapping that one or more units of equal layers share.
struct Mapping {
  Layer layer;  // of the first of them
  LayerCost cost;
};

struct GraphCost {
  std::vector<UnitCost> units;    // by unit
  std::vector<Mapping> mappings;  // distinct, in order of first use
  Core core;                      // that runs the contractions, with the memory that closes its hierarchy
  std::vector<Diagnostic> warnings;
};

// Index of the one core that runs contractions; nothing if there are several.
std::optional<size_t> only_compute_core(const Accelerator& accelerator);

// `works`: of the graph's units. `precision`: the widths that elements are counted with. `options`: where they find no
// mapping because memories leave no room for those above, leave_room_above is tried.
// The vector rule runs on the core of type "pooling" for poolings, "simd" or "vector" for the rest, where there are
// such; else on the core of the contractions. `progress`: told the share of units costed; may throw to end it. Throws
// Refusal ("bad-mapping") with the problems of all layers.
GraphCost graph_cost(const Graph& graph, const std::vector<Work>& works, const Accelerator& accelerator,
                     const Precision& precision, const MappingFile& mapping, const CostOptions& options,
                     CostCache& cache, const std::function<void(double done)>& progress = {});

// Cycles and energy of units, each as often as it runs.
struct CostSum {
  double cycles = 0, energy = 0;
  std::vector<LevelEnergy> levels;
  void add(const UnitCost& unit, const Work& work);
};

}  // namespace monet
