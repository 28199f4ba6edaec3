// What a layer's cost depends on, as a key: every field that the search reads.
#include <algorithm>
#include <string>
#include <utility>

#include "engine/cost/layer_cost.h"
#include "engine/ir/content_key.h"

namespace monet {

static ContentKey& operator<<(ContentKey& key, const FixedLoop& loop) { return key << loop.loop << loop.size; }
static ContentKey& operator<<(ContentKey& key, const Port& port) {
  return key << port.bandwidth_min << port.bandwidth_max << port.allocation;
}
static ContentKey& operator<<(ContentKey& key, const Memory& memory) {
  return key << memory.size << memory.read_cost << memory.write_cost << memory.operands << memory.served_dimensions
             << memory.ports;
}

const LayerCost& CostCache::cost(const Layer& layer, const Core& core, const LayerMapping& mapping,
                                 const CostOptions& options) {
  ContentKey key;
  key << layer;
  key << core.memories << core.dimensions << core.sizes << core.unit_energy << core.dataflows;
  key << mapping.spatial << mapping.links << mapping.temporal_ordering;
  key << static_cast<int>(options.objective) << options.factor_limit << options.spatial_candidates
      << options.parallel_tiles << options.hold_floors << options.add_half_shared << options.leave_room_above
      << options.count_all_traffic << options.count_partial_words << options.count_uneven_tiles;
  std::string bytes = key.take();
  auto known = costs_.find(bytes);
  if (known == costs_.end()) {
    Entry entry;
    try {
      entry.cost = cost_layer(layer, core, mapping, options);
    } catch (const Refusal& refusal) {
      entry.problems = refusal.problems();
    }
    known = costs_.emplace(std::move(bytes), std::move(entry)).first;
  }
  if (!known->second.problems.empty()) throw Refusal(known->second.problems);
  return known->second.cost;
}

}  // namespace monet
