// What is fixed about a layer's mapping before the search: ZigZag's and Stream's mapping files (COST_MODEL section 1).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "engine/cost/loop_order.h"
#include "engine/cost/spatial.h"
#include "engine/ir/diagnostic.h"
#include "engine/workload/layer.h"

namespace monet {

// A loop cut into parts, over cores or over time.
struct LoopParts {
  std::string loop;
  int64_t parts = 0;  // 0: as many as it has iterations ("all")
};

struct LayerMapping {
  std::string name = "default";              // a layer's name, an operator type, or "default"
  Dataflow spatial;                          // empty: the core's dataflow, or else generated
  std::map<std::string, std::string> links;  // layer operand -> memory operand I1, I2 or O
  std::vector<FixedLoop> temporal_ordering;  // innermost first; loops beyond it are free
  // For the scheduler: ids of the cores that may run it (none: any that can), and how it is cut.
  std::vector<int> core_allocation;
  std::vector<LoopParts> intra_core_tiling, inter_core_tiling;
};

// ZigZag's links: I -> I1, W -> I2, O -> O. Of other names, the first input I1, the second I2.
std::map<std::string, std::string> default_links(const Layer& layer);

struct MappingFile {
  std::vector<LayerMapping> mappings;
  std::vector<Diagnostic> warnings;  // unknown fields

  // The entry named after the layer, else after its operator type, else "default"; an empty mapping if there is none.
  // Links that the entry does not give are the default ones.
  LayerMapping of(const Layer& layer) const { return of(layer.name, layer.op); }
  LayerMapping of(const std::string& layer_name, const std::string& op) const;
};

// `text`: JSON of a mapping file: an array of entries with `name` and optionally `spatial_mapping`
// ({"D1": ["K, 8"]}), `memory_operand_links` ({"W": "I2"}), `temporal_ordering` ([["OX", 112], ["C", "*"]]), and
// Stream's `core_allocation` ([0, 1]), `intra_core_tiling` and `inter_core_tiling` (["OY, all"], ["K, 4"]).
//
// Throws Refusal with every problem found (the first hundred), each naming its field by path:
//   "0.spatial_mapping.D1.0: must be a loop and its unrolling, as "K, 8", is "K"".
MappingFile parse_mapping(const std::string& text);

}  // namespace monet
