#include "engine/fusion/baselines.h"

#include <algorithm>

#include "engine/workload/operations.h"

namespace monet {

namespace {

using Set = std::vector<UnitId>;

// Groups so far, and whether another one would wait for itself.
class Groups {
 public:
  explicit Groups(const UnitGraph& graph) : graph_(graph), group_of_(graph.size(), kNone) {}

  bool taken(UnitId u) const { return group_of_[u] != kNone; }
  // Whether a way leaves the set and comes back, groups run as wholes.
  bool closes_cycle(const Set& set) const {
    std::vector<char> reached(graph_.size(), 0);
    Set queue;
    auto reach = [&](UnitId u) {
      if (reached[u]) return;
      for (UnitId v : group_of_[u] == kNone ? Set{u} : made_[group_of_[u]]) {
        reached[v] = 1;
        queue.push_back(v);
      }
    };
    for (UnitId u : set)
      for (UnitId v : graph_.readers(u))
        if (!std::binary_search(set.begin(), set.end(), v)) reach(v);
    for (size_t i = 0; i < queue.size(); ++i)
      for (UnitId v : graph_.readers(queue[i])) {
        if (std::binary_search(set.begin(), set.end(), v)) return true;
        reach(v);
      }
    return false;
  }
  void add(const Set& set) {
    for (UnitId u : set) group_of_[u] = static_cast<int32_t>(made_.size());
    made_.push_back(set);
  }
  const std::vector<Set>& made() const { return made_; }

 private:
  const UnitGraph& graph_;
  std::vector<int32_t> group_of_;
  std::vector<Set> made_;
};

}  // namespace

std::vector<Set> manual_groups(const CandidateCosts& candidates) {
  const Graph& graph = candidates.planner().graph();
  const std::vector<Work>& works = candidates.planner().works();
  const UnitGraph& units = candidates.graph();
  const std::vector<UnitTraits>& traits = candidates.traits();
  CandidateSearch rules(units, traits, candidates.rules());
  Groups groups(units);

  auto contraction = [&](UnitId u) { return graph.units[u].contraction != kNone; };
  // Each output element depends on its place in the inputs and on statistics: normalisations and their gradients as
  // well.
  auto pointwise = [&](UnitId u) {
    return !works[u].view && !contraction(u) && graph.units[u].role != Role::update &&
           (is_elementwise(graph.units[u].op) || is_normalization(graph.units[u].op));
  };
  // The units that read what u makes in its own phase.
  auto next = [&](UnitId u) {
    Set found;
    for (UnitId v : units.readers(u))
      if (graph.units[v].phase == graph.units[u].phase) found.push_back(v);
    return found;
  };
  auto legal = [&](const Set& set) { return rules.limit(set) == Limit::none && !groups.closes_cycle(set); };
  auto add = [&](Set chain) {  // the longest beginning that the rules allow
    for (; chain.size() > 1; chain.pop_back()) {
      Set set = chain;
      std::sort(set.begin(), set.end());
      if (legal(set)) return groups.add(set);
    }
  };
  auto follow = [&](Set& chain) {
    for (Set after = next(chain.back()); after.size() == 1 && pointwise(after[0]) && !groups.taken(after[0]);
         after = next(chain.back()))
      chain.push_back(after[0]);
  };

  // Attention: from a softmax up to the product before it and down to the one after.
  for (UnitId u = 0; u < static_cast<UnitId>(graph.units.size()); ++u) {
    if (graph.units[u].op != "Softmax" || graph.units[u].role != Role::forward) continue;
    Set group = {u};
    UnitId at = u;
    while (at != kNone && !contraction(at)) {
      UnitId before = kNone;
      for (UnitId v : units.sources(at))
        if ((contraction(v) || pointwise(v)) && !groups.taken(v)) before = v;
      if (before != kNone) group.push_back(before);
      at = before;
    }
    if (at == kNone) continue;
    Set after = {u};
    follow(after);
    Set last = next(after.back());
    if (last.size() != 1 || !contraction(last[0])) continue;
    group.insert(group.end(), after.begin() + 1, after.end());
    group.push_back(last[0]);
    std::sort(group.begin(), group.end());
    if (legal(group)) groups.add(group);
  }
  auto chains = [&](auto&& starts) {
    for (UnitId u = 0; u < static_cast<UnitId>(graph.units.size()); ++u) {
      if (!starts(u) || groups.taken(u)) continue;
      Set chain = {u};
      follow(chain);
      add(std::move(chain));
    }
  };
  chains([&](UnitId u) { return contraction(u) && graph.units[u].phase == Phase::forward; });

  // Backward, the gradients of what is one group forward.
  std::vector<int32_t> forward_group(graph.nodes.size(), kNone);
  std::vector<Set> gradients(groups.made().size());
  for (size_t g = 0; g < gradients.size(); ++g)
    for (UnitId u : groups.made()[g])
      for (NodeId n : graph.units[u].nodes) forward_group[n] = static_cast<int32_t>(g);
  for (UnitId u = 0; u < static_cast<UnitId>(graph.units.size()); ++u)
    if (const Unit& unit = graph.units[u]; unit.phase == Phase::backward && unit.origin != kNone && !works[u].view &&
                                           forward_group[unit.origin] != kNone && !groups.taken(u))
      gradients[forward_group[unit.origin]].push_back(u);
  for (Set& set : gradients) add(std::move(set));

  chains(pointwise);
  return groups.made();
}

std::vector<Set> greedy_groups(const CandidateCosts& candidates, FusionObjective objective) {
  const std::vector<CandidateCosts::Candidate>& all = candidates.all();
  PlanCost alone;
  for (const CandidateCosts::Candidate& c : all)
    if (c.units.size() == 1) alone.add(CandidateCosts::best(c, objective));
  // Of the energy-delay product: of both sums' logarithms.
  auto value = [&](const GroupCost& way) {
    double cycles = static_cast<double>(way.cycles), all_cycles = static_cast<double>(alone.cycles);
    switch (objective) {
      case FusionObjective::groups:
        return 1 + cycles / all_cycles;
      case FusionObjective::latency:
        return cycles;
      case FusionObjective::energy:
        return way.energy;
      case FusionObjective::edp:
        return cycles / all_cycles + way.energy / alone.energy;
      case FusionObjective::traffic:
        return static_cast<double>(way.offchip_bits);
    }
    return 0.0;
  };
  std::vector<std::pair<double, size_t>> by_saving;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].units.size() < 2) continue;
    double saving = -value(CandidateCosts::best(all[i], objective));
    for (UnitId u : all[i].units) saving += value(CandidateCosts::best(*candidates.find({u}), objective));
    if (saving > 0) by_saving.push_back({-saving, i});
  }
  std::sort(by_saving.begin(), by_saving.end());
  Groups groups(candidates.graph());
  for (const auto& [less, i] : by_saving) {
    const Set& units = all[i].units;
    if (std::none_of(units.begin(), units.end(), [&](UnitId u) { return groups.taken(u); }) &&
        !groups.closes_cycle(units))
      groups.add(units);
  }
  return groups.made();
}

}  // namespace monet
