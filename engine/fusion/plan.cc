#include "engine/fusion/plan.h"

#include <algorithm>

namespace monet {

const char* name(FusionObjective objective) {
  constexpr const char* kNames[] = {"groups", "latency", "energy", "edp", "traffic"};
  return kNames[static_cast<size_t>(objective)];
}

void PlanCost::add(const GroupCost& group) {
  ++groups;
  cycles += group.cycles;
  energy += group.energy;
  offchip_bits += group.offchip_bits;
}

double PlanCost::of(FusionObjective objective) const {
  switch (objective) {
    case FusionObjective::groups:
      return groups;
    case FusionObjective::latency:
      return static_cast<double>(cycles);
    case FusionObjective::energy:
      return energy;
    case FusionObjective::edp:
      return energy * static_cast<double>(cycles);
    case FusionObjective::traffic:
      return static_cast<double>(offchip_bits);
  }
  return 0;
}

Partition FusionPlan::partition(const Graph& graph) const {
  Partition partition{groups};
  std::vector<char> taken(graph.units.size(), 0);
  for (const FusedGroup& group : groups)
    for (UnitId u : group.units) taken[u] = 1;
  for (UnitId u = 0; u < static_cast<UnitId>(taken.size()); ++u)
    if (!taken[u]) partition.groups.push_back({{u}});
  std::stable_sort(partition.groups.begin(), partition.groups.end(),
                   [](const FusedGroup& a, const FusedGroup& b) { return a.units.front() < b.units.front(); });
  return partition;
}

CandidateCosts::CandidateCosts(Planner& planner, const FusionRules& rules)
    : planner_(planner),
      rules_(rules),
      graph_(planner.graph(), planner.works()),
      traits_(unit_traits(planner.graph())),
      search_(graph_, traits_, rules),
      found_(search_.find()),
      costs_(planner) {}

double CandidateCosts::done() const {
  return found_.sets.empty() ? 1 : static_cast<double>(next_) / static_cast<double>(found_.sets.size());
}

const CandidateCosts::Candidate* CandidateCosts::find(const std::vector<UnitId>& units) const {
  auto at = index_.find(units);
  return at == index_.end() ? nullptr : &candidates_[at->second];
}

const std::vector<GroupCost>& CandidateCosts::ways(const std::vector<UnitId>& set) {
  // Tilings that are good for a part are tried for the whole.
  std::vector<const GroupCost*> parts;
  if (set.size() > 2)
    for (size_t i = 0; i < set.size(); ++i) {
      std::vector<UnitId> part = set;
      part.erase(part.begin() + static_cast<std::ptrdiff_t>(i));
      if (const Candidate* known = find(part)) parts.push_back(&known->ways->front());
    }
  return costs_.ways(set, parts);
}

bool CandidateCosts::step(size_t count) {
  for (size_t i = 0; i < count && next_ < found_.sets.size(); ++i, ++next_) {
    std::vector<UnitId>& set = found_.sets[next_];
    if (set.size() == 1 && planner_.works()[set.front()].view) continue;
    const std::vector<GroupCost>& ways = this->ways(set);
    if (ways.empty()) {
      ++without_way_;
      continue;
    }
    index_.emplace(set, candidates_.size());
    candidates_.push_back({std::move(set), &ways});
  }
  return next_ < found_.sets.size();
}

const GroupCost& CandidateCosts::best(const Candidate& candidate, FusionObjective objective) {
  auto of = [&](const GroupCost& way) {
    PlanCost cost;
    cost.add(way);
    return objective == FusionObjective::groups ? static_cast<double>(way.cycles) : cost.of(objective);
  };
  return *std::min_element(candidate.ways->begin(), candidate.ways->end(),
                           [&](const GroupCost& a, const GroupCost& b) { return of(a) < of(b); });
}

FusionPlan CandidateCosts::plan(const std::vector<std::vector<UnitId>>& groups, FusionObjective objective) {
  FusionPlan plan;
  std::vector<char> taken(graph_.size(), 0);
  auto add = [&](const std::vector<UnitId>& units) {
    Candidate candidate{units, &ways(units)};
    if (candidate.ways->empty()) return;
    const GroupCost& way = best(candidate, objective);
    plan.groups.push_back({units, way.tiles, way.axis});
    plan.cost.add(way);
    for (UnitId u : units) taken[u] = 1;
  };
  for (const std::vector<UnitId>& units : groups) add(units);
  for (UnitId u = 0; u < static_cast<UnitId>(taken.size()); ++u)
    if (!taken[u] && !planner_.works()[u].view) add({u});
  std::sort(plan.groups.begin(), plan.groups.end(),
            [](const FusedGroup& a, const FusedGroup& b) { return a.units.front() < b.units.front(); });
  return plan;
}

Limit CandidateCosts::limit(const std::vector<UnitId>& set, std::string* why) {
  Limit broken = search_.limit(set);
  if (broken == Limit::none && set.size() > 1 && ways(set).empty()) {
    broken = Limit::memory;
    int64_t held = 0, capacity = 0;
    if (costs_.limit({set, 1}, &held, &capacity) == TilingLimit::memory && why)
      *why = "in one tile it holds " + std::to_string(held / 8) + " bytes in a memory of " +
             std::to_string(capacity / 8) + ", and no number of tiles that its units share brings that down enough";
    return broken;
  }
  if (why) *why = explain(broken, rules_);
  return broken;
}

}  // namespace monet
