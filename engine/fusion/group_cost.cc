#include "engine/fusion/group_cost.h"

#include <algorithm>
#include <limits>

#include "engine/ir/content_key.h"

namespace monet {

static ContentKey& operator<<(ContentKey& key, const AxisUse& use) {
  return key << use.axis << use.size << use.stride << use.divide << use.before << use.after;
}
static ContentKey& operator<<(ContentKey& key, const SliceAxis& axis) {
  return key << axis.kind << axis.size << axis.dim << axis.reads << axis.writes << axis.exchanged;
}

namespace {

constexpr int64_t kMostTiles = 64;
constexpr SliceAxis::Kind kAxes[] = {SliceAxis::Kind::batch, SliceAxis::Kind::rows, SliceAxis::Kind::channels};

}  // namespace

GroupCosts::GroupCosts(Planner& planner) : planner_(planner), scheduler_(planner) {
  const Graph& graph = planner.graph();
  std::unordered_map<std::string, int32_t> classes;
  for (size_t u = 0; u < graph.units.size(); ++u) {
    const Unit& unit = graph.units[u];
    const Work& work = planner.works()[u];
    const UnitParts& parts = planner.parts(static_cast<UnitId>(u));
    ContentKey key;
    key << unit.op << unit.role << (unit.phase == Phase::optimizer) << (unit.contraction != kNone) << work.view
        << work.operations << parts.axes << parts.second << parts.read_bits << parts.written_bits << parts.read_streams
        << parts.write_streams << parts.layer.has_value();
    if (parts.layer) key << *parts.layer;
    for (const std::vector<TensorId>* list : {&work.reads, &work.writes})
      for (TensorId t : *list) key << graph.tensors[t].shape << graph.tensors[t].kind << planner.region(t);
    // A mapping file may name a unit.
    if (!planner.mapping().mappings.empty()) key << unit_name(graph, unit);
    class_.push_back(classes.emplace(key.take(), static_cast<int32_t>(classes.size())).first->second);
  }
}

std::string GroupCosts::key(std::span<const UnitId> set) const {
  const std::vector<Work>& works = planner_.works();
  ContentKey key;
  std::vector<TensorId> met;  // numbered as they are met
  auto number = [&](TensorId t) {
    auto at = std::find(met.begin(), met.end(), t);
    if (at == met.end()) at = met.insert(met.end(), t);
    return at - met.begin();
  };
  for (UnitId u : set) {
    key << class_[u];
    for (TensorId t : works[u].reads) {
      UnitId maker = planner_.maker(t);
      key << number(t) << (maker != kNone);
    }
    for (TensorId t : works[u].writes) {
      const std::vector<UnitId>& readers = planner_.readers(t);
      bool crosses = std::any_of(readers.begin(), readers.end(),
                                 [&](UnitId reader) { return !std::binary_search(set.begin(), set.end(), reader); });
      key << number(t) << planner_.is_output(t) << crosses;
      // Its first reader has a say in how its maker is split.
      if (readers.empty()) continue;
      const std::vector<TensorId>& reads = works[readers.front()].reads;
      key << class_[readers.front()] << (std::find(reads.begin(), reads.end(), t) - reads.begin());
    }
  }
  return key.take();
}

TilingLimit GroupCosts::limit(const FusedGroup& group, int64_t* held, int64_t* capacity) {
  std::vector<Placement> placements = planner_.placed(group);
  std::vector<int64_t> tiles;
  for (const Placement& placement : placements) tiles.push_back(placement.tiles);
  std::sort(tiles.begin(), tiles.end());
  for (size_t i = 1; i < tiles.size(); ++i)
    if (tiles[i] % tiles[i - 1] != 0) return TilingLimit::tiles;

  const Stores& stores = planner_.stores();
  held_.resize(stores.all().size());
  for (auto& tensors : held_) tensors.clear();
  for (size_t i = 0; i < group.units.size(); ++i) {
    const Placement& placement = placements[i];
    const UnitParts& parts = planner_.parts(group.units[i]);
    const Work& work = planner_.works()[group.units[i]];
    auto cores = static_cast<int64_t>(placement.cores.size());
    auto add = [&](int operand, TensorId t, double bits) {
      for (int32_t core : placement.cores) {
        int store = stores.of(static_cast<size_t>(core), operand, planner_.region(t));
        if (store < 0) continue;
        auto& tensors = held_[static_cast<size_t>(store)];
        auto known = std::find_if(tensors.begin(), tensors.end(), [&](const auto& entry) { return entry.first == t; });
        if (known == tensors.end()) {
          tensors.push_back({t, bits});
        } else {
          known->second = std::max(known->second, bits);
        }
      }
    };
    for (size_t r = 0; r < parts.read_bits.size(); ++r)
      if (!parts.read_streams[r])
        add(parts.second[r] ? 1 : 0, work.reads[r],
            placement.share(parts, cores, &SliceAxis::reads, r) * static_cast<double>(parts.read_bits[r]));
    for (size_t w = 0; w < parts.written_bits.size(); ++w)
      if (!parts.write_streams[w])
        add(2, work.writes[w],
            placement.share(parts, cores, &SliceAxis::writes, w) * static_cast<double>(parts.written_bits[w]));
  }
  double fullest = 0;
  int64_t its_bits = 0, its_capacity = 0;
  for (size_t store = 0; store < held_.size(); ++store) {
    double bits = 0;
    for (const auto& [tensor, share] : held_[store]) bits += share;
    int64_t size = stores.all()[store].capacity;
    if (bits > fullest * static_cast<double>(size)) {
      fullest = bits / static_cast<double>(size);
      its_bits = static_cast<int64_t>(bits);
      its_capacity = size;
    }
  }
  if (held) *held = its_bits;
  if (capacity) *capacity = its_capacity;
  return fullest > 1 ? TilingLimit::memory : TilingLimit::none;
}

// Adds the way, unless another is at least as good in everything. False: it may not be, or has fewer tiles than asked.
bool GroupCosts::schedule(const FusedGroup& group, std::vector<GroupCost>& ways) {
  if (group.units.size() > 1 && limit(group) != TilingLimit::none) return false;
  GroupCost cost{group.tiles, group.axis};
  try {
    Program program = planner_.program({{group}});
    Scheduler::Totals totals = scheduler_.totals(program);
    ++scheduled_;
    cost.cycles = totals.latency;
    cost.energy = totals.energy;
    cost.offchip_bits = totals.offchip_bits;
  } catch (const Refusal& refusal) {
    // The rule leaves out what streams through a memory.
    if (group.units.size() > 1 && refusal.problems().front().code == "tile-too-large") return false;
    throw;
  }
  ways.push_back(cost);
  return true;
}

const std::vector<GroupCost>& GroupCosts::ways(std::span<const UnitId> set,
                                               const std::vector<const GroupCost*>& parts) {
  auto [at, fresh] = known_.emplace(key(set), std::vector<GroupCost>{});
  std::vector<GroupCost>& ways = at->second;
  if (!fresh) return ways;
  FusedGroup group{{set.begin(), set.end()}};
  schedule(group, ways);
  if (set.size() > 1) {
    for (const GroupCost* part : parts) {
      group.tiles = part->tiles;
      group.axis = part->axis;
      if (group.tiles > 1 && std::none_of(ways.begin(), ways.end(), [&](const GroupCost& way) {
            return way.tiles == group.tiles && way.axis == group.axis;
          }))
        schedule(group, ways);
    }
    if (set.size() == 2 || ways.empty())
      for (SliceAxis::Kind axis : kAxes) {
        int64_t least = std::numeric_limits<int64_t>::max();
        group.axis = axis;
        for (group.tiles = 2; group.tiles <= kMostTiles; group.tiles *= 2) {
          int64_t most = 1;  // how many the axis has room for
          for (const Placement& placement : planner_.placed(group)) most = std::max(most, placement.tiles);
          if (most < group.tiles) break;
          if (!schedule(group, ways)) continue;
          if (ways.back().cycles >= least) break;
          least = ways.back().cycles;
        }
      }
  }
  std::stable_sort(ways.begin(), ways.end(),
                   [](const GroupCost& a, const GroupCost& b) { return a.cycles < b.cycles; });
  std::vector<GroupCost> kept;
  for (const GroupCost& way : ways)
    if (std::none_of(kept.begin(), kept.end(), [&](const GroupCost& other) {
          return other.energy <= way.energy && other.offchip_bits <= way.offchip_bits;  // and no more cycles
        }))
      kept.push_back(way);
  ways = std::move(kept);
  return ways;
}

}  // namespace monet
