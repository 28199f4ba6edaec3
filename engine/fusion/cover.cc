#include "engine/fusion/cover.h"

#include <algorithm>
#include <optional>

namespace monet {

namespace {

// All ways to split a set in two are tried up to this size; of larger ones those that take one unit off.
constexpr size_t kAllSplits = 8;
// Costs in a program are scaled so that all units alone cost so much: solvers' tolerances are absolute.
constexpr double kScaled = 1e5;
// Sums in floating point count as equal within this, relatively.
constexpr double kEqual = 1e-9;

bool contains(const std::vector<UnitId>& set, UnitId u) { return std::binary_search(set.begin(), set.end(), u); }

}  // namespace

double FusionCover::Weights::of(const GroupCost& way) const {
  return groups + cycles * static_cast<double>(way.cycles) + energy * way.energy +
         bits * static_cast<double>(way.offchip_bits);
}
double FusionCover::Weights::of(const PlanCost& cost) const {
  return groups * cost.groups + cycles * static_cast<double>(cost.cycles) + energy * cost.energy +
         bits * static_cast<double>(cost.offchip_bits);
}

FusionCover::FusionCover(CandidateCosts& candidates, FusionObjective objective, int most_units,
                         const std::vector<std::vector<UnitId>>& start)
    : candidates_(candidates), objective_(objective), most_units_(most_units) {
  best_ = candidates.plan({}, objective);
  std::vector<std::vector<UnitId>> allowed;
  for (const std::vector<UnitId>& group : start)
    if (most_units == 0 || group.size() <= static_cast<size_t>(most_units)) allowed.push_back(group);
  take(candidates.plan(allowed, objective));
  formulate({.groups = objective == FusionObjective::groups ? 1.0 : 0.0,
             .cycles = objective == FusionObjective::latency || objective == FusionObjective::edp ? 1.0 : 0.0,
             .energy = objective == FusionObjective::energy ? 1.0 : 0.0,
             .bits = objective == FusionObjective::traffic ? 1.0 : 0.0});
}

bool FusionCover::take(FusionPlan plan) {
  if (plan.cost.of(objective_) >= value()) return false;
  best_ = std::move(plan);
  return true;
}

double FusionCover::gap() const { return value() > 0 ? std::max(0.0, value() - bound_) / value() : 0; }

void FusionCover::formulate(const Weights& weights) {
  weights_ = weights;
  columns_.clear();
  columns_of_.assign(candidates_.graph().size(), {});
  dominated_ = 0;
  program_ = {};
  const std::vector<CandidateCosts::Candidate>& all = candidates_.all();

  // The least that each candidate's units cost, in one group or in several, and the two parts that cost it. Parts of a
  // convex set that do not wait for each other can stand wherever it could.
  struct Least {
    double cost = 0;
    const CandidateCosts::Candidate *one = nullptr, *other = nullptr;
  };
  std::vector<Least> least(all.size());
  std::vector<const GroupCost*> way(all.size());
  auto index = [&](const CandidateCosts::Candidate* c) { return static_cast<size_t>(c - all.data()); };
  double alone = 0;
  std::vector<UnitId> one, other;
  for (size_t i = 0; i < all.size(); ++i) {
    const CandidateCosts::Candidate& candidate = all[i];
    const std::vector<UnitId>& units = candidate.units;
    if (most_units_ > 0 && units.size() > static_cast<size_t>(most_units_)) continue;
    way[i] = &*std::min_element(candidate.ways->begin(), candidate.ways->end(),
                                [&](const GroupCost& a, const GroupCost& b) { return weights.of(a) < weights.of(b); });
    least[i].cost = weights.of(*way[i]);
    if (units.size() == 1) alone += least[i].cost;
    if (units.size() == 1 || objective_ == FusionObjective::groups) continue;
    auto split = [&](uint32_t bits) {
      one.clear();
      other.clear();
      for (size_t k = 0; k < units.size(); ++k) (bits >> k & 1 ? one : other).push_back(units[k]);
      const CandidateCosts::Candidate* a = candidates_.find(one);
      const CandidateCosts::Candidate* b = a ? candidates_.find(other) : nullptr;
      if (!b || least[index(a)].cost + least[index(b)].cost > least[i].cost) return;
      bool forth = false, back = false;
      for (UnitId u : one)
        for (UnitId v : candidates_.graph().readers(u)) forth |= contains(other, v);
      for (UnitId u : other)
        for (UnitId v : candidates_.graph().readers(u)) back |= contains(one, v);
      if (!forth || !back) least[i] = {least[index(a)].cost + least[index(b)].cost, a, b};
    };
    if (units.size() <= kAllSplits) {
      for (uint32_t bits = 1; bits < (1u << units.size()) - 1; bits += 2) split(bits);
    } else {
      for (size_t k = 0; k < std::min<size_t>(units.size(), 32); ++k) split(1u << k);
    }
  }
  scale_ = objective_ == FusionObjective::groups || alone == 0 ? 1 : kScaled / alone;
  std::vector<int32_t> column(all.size(), kNone);
  for (size_t i = 0; i < all.size(); ++i) {
    if (!way[i]) continue;
    if (least[i].one) {
      ++dominated_;
      continue;
    }
    column[i] = program_.add_column(scale_ * weights.of(*way[i]), 0, 1, true);
    columns_.push_back({&all[i], way[i]});
    for (UnitId u : all[i].units) columns_of_[u].push_back(column[i]);
  }
  for (const std::vector<int32_t>& columns : columns_of_)
    if (!columns.empty()) program_.add_row(1, 1, columns);
  for (const std::vector<std::pair<UnitId, UnitId>>& passages : passages_) add_cut(passages);

  // The best plan so far, dominated groups in their parts.
  start_.assign(columns_.size(), 0);
  auto set = [&](auto&& self, const CandidateCosts::Candidate* c) -> bool {
    if (!c || !way[index(c)]) return false;
    const Least& l = least[index(c)];
    if (l.one) return self(self, l.one) && self(self, l.other);
    start_[column[index(c)]] = 1;
    return true;
  };
  for (const FusedGroup& group : best_.groups)
    if (!set(set, candidates_.find(group.units)))  // no candidate: its units alone
      for (UnitId u : group.units) set(set, candidates_.find({u}));
}

std::vector<size_t> FusionCover::chosen(const std::vector<double>& x) const {
  std::vector<size_t> columns;
  for (size_t i = 0; i < x.size(); ++i)
    if (x[i] > 0.5) columns.push_back(i);
  return columns;
}

FusionPlan FusionCover::plan_of(const std::vector<size_t>& columns) const {
  FusionPlan plan;
  for (size_t i : columns) {
    plan.groups.push_back({columns_[i].candidate->units, columns_[i].way->tiles, columns_[i].way->axis});
    plan.cost.add(*columns_[i].way);
  }
  std::sort(plan.groups.begin(), plan.groups.end(),
            [](const FusedGroup& a, const FusedGroup& b) { return a.units.front() < b.units.front(); });
  return plan;
}

namespace {

// Cycles of groups that share no group, each a list of edges in order; shortest ones first from each group.
std::vector<std::vector<UnitGraph::GroupEdge>> cycles(size_t groups, const std::vector<UnitGraph::GroupEdge>& edges) {
  std::vector<std::vector<size_t>> out(groups);
  std::vector<int> waits(groups, 0);
  for (size_t e = 0; e < edges.size(); ++e) {
    out[edges[e].from].push_back(e);
    ++waits[edges[e].to];
  }
  // What runs without waiting for a cycle is in none.
  std::vector<size_t> ready;
  std::vector<char> gone(groups, 0);
  for (size_t g = 0; g < groups; ++g)
    if (waits[g] == 0) ready.push_back(g);
  while (!ready.empty()) {
    size_t g = ready.back();
    ready.pop_back();
    gone[g] = 1;
    for (size_t e : out[g])
      if (--waits[edges[e].to] == 0) ready.push_back(static_cast<size_t>(edges[e].to));
  }
  std::vector<std::vector<UnitGraph::GroupEdge>> found;
  for (size_t start = 0; start < groups; ++start) {
    if (gone[start]) continue;
    // Breadth first: by which edge a group was reached.
    std::vector<int64_t> by(groups, -1);
    std::vector<size_t> queue = {start};
    int64_t last = -1;
    for (size_t i = 0; i < queue.size() && last < 0; ++i)
      for (size_t e : out[queue[i]]) {
        auto to = static_cast<size_t>(edges[e].to);
        if (to == start) {
          last = static_cast<int64_t>(e);
          break;
        }
        if (gone[to] || by[to] >= 0) continue;
        by[to] = static_cast<int64_t>(e);
        queue.push_back(to);
      }
    if (last < 0) continue;  // only leads to a cycle
    std::vector<UnitGraph::GroupEdge> cycle;
    for (int64_t e = last; e >= 0;
         e = static_cast<size_t>(edges[e].from) == start ? -1 : by[static_cast<size_t>(edges[e].from)])
      cycle.push_back(edges[e]);
    std::reverse(cycle.begin(), cycle.end());
    for (const UnitGraph::GroupEdge& edge : cycle) gone[edge.from] = 1;
    found.push_back(std::move(cycle));
  }
  return found;
}

}  // namespace

// Every choice of groups that hold these passages (a unit that reads from the group before and one that the next group
// reads from), a group for each, is a cycle: not all of them. Columns that hold units of two passages are left out,
// since there a cycle may close inside a group.
void FusionCover::add_cut(const std::vector<std::pair<UnitId, UnitId>>& passages) {
  std::vector<int32_t> row;
  for (const std::pair<UnitId, UnitId>& passage : passages)
    for (int32_t c : columns_of_[passage.first]) {
      const std::vector<UnitId>& units = columns_[c].candidate->units;
      if (!contains(units, passage.second)) continue;
      bool another = std::any_of(passages.begin(), passages.end(), [&](const auto& p) {
        return &p != &passage && (contains(units, p.first) || contains(units, p.second));
      });
      if (!another) row.push_back(c);
    }
  std::sort(row.begin(), row.end());
  program_.add_row(-kUnbounded, static_cast<double>(passages.size()) - 1, row);
}

int FusionCover::cut(const std::vector<size_t>& columns) {
  std::vector<int32_t> group_of(candidates_.graph().size(), kNone);
  for (size_t g = 0; g < columns.size(); ++g)
    for (UnitId u : columns_[columns[g]].candidate->units) group_of[u] = static_cast<int32_t>(g);
  auto found = cycles(columns.size(), candidates_.graph().group_edges(group_of));
  for (const std::vector<UnitGraph::GroupEdge>& cycle : found) {
    std::vector<std::pair<UnitId, UnitId>> passages;
    for (size_t i = 0; i < cycle.size(); ++i) {
      const UnitGraph::GroupEdge& before = cycle[i == 0 ? cycle.size() - 1 : i - 1];
      passages.push_back({before.reader, cycle[i].unit});
    }
    add_cut(passages);
    passages_.push_back(std::move(passages));
    ++cuts_;
  }
  return static_cast<int>(found.size());
}

void FusionCover::incumbent(const Solution& solution) {
  if (solution.x.empty()) return;
  std::vector<size_t> columns = chosen(solution.x);
  FusionPlan plan = plan_of(columns);
  if (plan.cost.of(objective_) >= value()) return;
  std::vector<int32_t> group_of(candidates_.graph().size(), kNone);
  for (size_t g = 0; g < columns.size(); ++g)
    for (UnitId u : columns_[columns[g]].candidate->units) group_of[u] = static_cast<int32_t>(g);
  if (cycles(columns.size(), candidates_.graph().group_edges(group_of)).empty()) take(std::move(plan));
}

void FusionCover::answer(const Solution& solution) {
  ++solves_;
  nodes_ += solution.nodes;
  bool proven = solution.status == Solution::Status::optimal;
  bool edp = objective_ == FusionObjective::edp;
  if (!edp) bound_ = std::max(bound_, solution.bound / scale_);
  std::optional<FusionPlan> plan;
  if (!solution.x.empty()) {
    std::vector<size_t> columns = chosen(solution.x);
    if (cut(columns) == 0) {
      plan = plan_of(columns);
      take(*plan);
    }
  }
  if (!proven || solution.x.empty()) {
    status_ = solution.status == Solution::Status::optimal ? Solution::Status::failed : solution.status;
    if (edp) bound_ = least_cycles_ * least_energy_;
    done_ = true;
    return;
  }
  if (!plan) {
    start_.clear();
    return;
  }
  if (!edp) {
    done_ = true;
    // Sums in another order than the solver's.
    if (solution.gap() <= kEqual) bound_ = value();
    return;
  }
  bool exact = solution.gap() <= kEqual;
  switch (stage_) {
    case Stage::cycles:
      least_cycles_ = solution.bound / scale_;
      corners_ = {plan->cost};
      exact_ = exact;
      stage_ = Stage::energy;
      return formulate({.energy = 1});
    case Stage::energy:
      least_energy_ = solution.bound / scale_;
      corners_.push_back(plan->cost);
      exact_ = exact_ && exact;
      between_.push_back({corners_[0], corners_[1]});
      stage_ = Stage::between;
      break;
    case Stage::between: {
      exact_ = exact_ && exact;
      auto [p, q] = between_.back();
      between_.pop_back();
      if (weights_.of(plan->cost) < weights_.of(p) * (1 - kEqual)) {
        between_.push_back({p, plan->cost});
        between_.push_back({plan->cost, q});
      }
      break;
    }
  }
  while (!between_.empty()) {
    const auto& [p, q] = between_.back();
    // Nothing between them is better than the corner of both.
    if (p.cycles < q.cycles && p.energy > q.energy && static_cast<double>(p.cycles) * q.energy < value() * (1 - kEqual))
      return formulate({.cycles = p.energy - q.energy, .energy = static_cast<double>(q.cycles - p.cycles)});
    between_.pop_back();
  }
  bound_ = exact_ ? value() : least_cycles_ * least_energy_;
  done_ = true;
}

}  // namespace monet
