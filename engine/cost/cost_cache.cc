// What a layer's cost depends on, as a key: every field that the search reads, lists with their lengths so that no two
// descriptions share a key.
#include <algorithm>
#include <string>
#include <utility>

#include "engine/cost/layer_cost.h"

namespace monet {

namespace {

class Key {
 public:
  Key& operator<<(const std::string& text) {
    *this << static_cast<int64_t>(text.size());
    bytes_ += text;
    return *this;
  }
  Key& operator<<(int64_t value) { return raw(value); }
  Key& operator<<(double value) { return raw(value); }
  template <typename Item>
  Key& operator<<(const std::vector<Item>& list) {
    *this << static_cast<int64_t>(list.size());
    for (const Item& item : list) *this << item;
    return *this;
  }
  template <typename Name, typename Value>
  Key& operator<<(const std::map<Name, Value>& map) {
    *this << static_cast<int64_t>(map.size());
    for (const auto& [name, value] : map) *this << name << value;
    return *this;
  }
  template <typename First, typename Second>
  Key& operator<<(const std::pair<First, Second>& pair) {
    return *this << pair.first << pair.second;
  }
  Key& operator<<(int value) { return raw(static_cast<int64_t>(value)); }
  Key& operator<<(bool value) { return raw(static_cast<int64_t>(value)); }
  Key& operator<<(const Loop& loop) { return *this << loop.dim << loop.size; }
  Key& operator<<(const FixedLoop& loop) { return *this << loop.loop << loop.size; }
  Key& operator<<(const WindowedAxis& axis) {
    return *this << axis.point << axis.tap << axis.stride << axis.dilation << axis.size;
  }
  Key& operator<<(const LayerOperand& operand) {
    return *this << operand.name << operand.loops << operand.windows << operand.bits;
  }
  Key& operator<<(const Port& port) { return *this << port.bandwidth_min << port.bandwidth_max << port.allocation; }
  Key& operator<<(const Memory& memory) {
    return *this << memory.size << memory.read_cost << memory.write_cost << memory.operands << memory.served_dimensions
                 << memory.ports;
  }

  std::string take() { return std::move(bytes_); }

 private:
  template <typename Value>
  Key& raw(Value value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  std::string bytes_;
};

}  // namespace

const LayerCost& CostCache::cost(const Layer& layer, const Core& core, const LayerMapping& mapping,
                                 const CostOptions& options) {
  Key key;
  key << layer.loops << layer.operands << layer.partial_bits;
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
