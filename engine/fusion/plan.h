// Candidates with what they cost, and plans made of them: a way of running every unit in exactly one group.
#pragma once

#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/fusion/candidates.h"
#include "engine/fusion/group_cost.h"
#include "engine/fusion/unit_graph.h"
#include "engine/schedule/partition.h"

namespace monet {

enum class FusionObjective : uint8_t { groups, latency, energy, edp, traffic };
const char* name(FusionObjective objective);

// Sums over the groups of a plan, each alone (group_cost.h): an estimate of its schedule.
struct PlanCost {
  int groups = 0;  // views are in none
  int64_t cycles = 0;
  double energy = 0;         // pJ
  int64_t offchip_bits = 0;  // read and written
  void add(const GroupCost& group);
  double of(FusionObjective objective) const;  // edp: pJ * cycles of the whole plan
};

struct FusionPlan {
  std::vector<FusedGroup> groups;  // by their first unit; every unit but views in exactly one
  PlanCost cost;
  Partition partition(const Graph& graph) const;  // views alone
};

// Every candidate that the rules allow, with the ways of running it. Step by step, because it takes as long as solving.
class CandidateCosts {
 public:
  // Throws Refusal where a unit cannot run at all. `planner` is kept by reference.
  CandidateCosts(Planner& planner, const FusionRules& rules);

  // Costs so many more; false once all are. Throws Refusal "no-mapping", ....
  bool step(size_t count);
  double done() const;  // share of the candidates costed, 0 to 1

  struct Candidate {
    std::vector<UnitId> units;  // ascending
    const std::vector<GroupCost>* ways = nullptr;
  };
  // Those that have a way: units alone first, then by size and by units.
  const std::vector<Candidate>& all() const { return candidates_; }
  const Candidate* find(const std::vector<UnitId>& units) const;
  // The candidate's way that has least; of `groups` the one with fewest cycles.
  static const GroupCost& best(const Candidate& candidate, FusionObjective objective);

  // A plan of these groups and all other units alone, each group in its best way. Groups that are no candidate are
  // costed as well; those that no way fits run as units alone.
  FusionPlan plan(const std::vector<std::vector<UnitId>>& groups, FusionObjective objective);

  // Why the unit is not in one group with the set: the first rule that both together break; none where they may be.
  // `why`: a sentence for people.
  Limit limit(const std::vector<UnitId>& set, std::string* why = nullptr);

  const UnitGraph& graph() const { return graph_; }
  const std::vector<UnitTraits>& traits() const { return traits_; }
  const FusionRules& rules() const { return rules_; }
  Planner& planner() const { return planner_; }
  size_t grown() const { return found_.grown; }
  bool complete() const { return found_.complete; }
  size_t without_way() const { return without_way_; }  // break the rule of memory or of tiles however they are cut
  size_t scheduled() const { return costs_.scheduled(); }

 private:
  const std::vector<GroupCost>& ways(const std::vector<UnitId>& set);

  Planner& planner_;
  FusionRules rules_;
  UnitGraph graph_;
  std::vector<UnitTraits> traits_;
  CandidateSearch search_;
  CandidateSearch::Found found_;
  GroupCosts costs_;
  std::vector<Candidate> candidates_;
  std::unordered_map<std::vector<UnitId>, size_t, UnitSetHash> index_;
  size_t next_ = 0, without_way_ = 0;
};

}  // namespace monet
