#include "engine/fusion/candidates.h"

#include <algorithm>
#include <unordered_set>

#include "engine/workload/operations.h"

namespace monet {
std::vector<UnitTraits> unit_traits(const Graph& graph) {
  std::vector<UnitTraits> traits;
  for (const Unit& unit : graph.units) {
    UnitTraits t;
    t.weight_gradient = unit.role == Role::weight_gradient;
    if (unit.contraction != kNone) {
      const std::string& op = graph.nodes[unit.origin == kNone ? unit.contraction : unit.origin].op;
      t.kind = op == "Conv" || op == "ConvTranspose" ? UnitTraits::Kind::convolution : UnitTraits::Kind::product;
    } else if (unit.role == Role::update) {
      t.kind = UnitTraits::Kind::update;
    } else if (unit.role == Role::forward && is_activation(unit.op)) {
      t.kind = UnitTraits::Kind::activation;
    }
    traits.push_back(t);
  }
  return traits;
}

FusionRules one_contraction_rules() {
  FusionRules rules;
  rules.most_contractions = 1;
  return rules;
}

const char* name(Limit limit) {
  constexpr const char* kNames[] = {"none",    "units",       "convolutions", "products", "contractions",
                                    "updates", "activations", "convex",       "outputs",  "memory"};
  return kNames[static_cast<size_t>(limit)];
}

std::string explain(Limit limit, const FusionRules& rules) {
  switch (limit) {
    case Limit::none:
      return "the rules allow it";
    case Limit::units:
      return "it would have more than " + std::to_string(rules.most_units) + " units";
    case Limit::convolutions:
      return "it would have more than " + std::to_string(rules.most_convolutions) + " convolutions";
    case Limit::products:
      return "it would have more than " + std::to_string(rules.most_products) + " matrix products";
    case Limit::contractions:
      return "it would have more than " + std::to_string(rules.most_contractions) + " contractions";
    case Limit::updates:
      return "an optimizer's update would run with a weight's gradient";
    case Limit::activations:
      return "an activation would run with the matrix product that it reads";
    case Limit::convex:
      return "a unit outside would have to run in between";
    case Limit::outputs:
      return "more than one of its units would be read outside";
    case Limit::memory:
      return "its tiles, weights and intermediates do not fit a core's memory";
  }
  return "";
}

Limit CandidateSearch::limit(std::span<const UnitId> set) const {
  using Kind = UnitTraits::Kind;
  if (set.size() <= 1) return Limit::none;  // every unit may run alone
  if (rules_.most_units > 0 && set.size() > static_cast<size_t>(rules_.most_units)) return Limit::units;
  int convolutions = 0, products = 0;
  bool update = false, weight_gradient = false;
  for (UnitId u : set) {
    convolutions += traits_[u].kind == Kind::convolution;
    products += traits_[u].kind == Kind::product;
    update |= traits_[u].kind == Kind::update;
    weight_gradient |= traits_[u].weight_gradient;
  }
  if (convolutions > rules_.most_convolutions) return Limit::convolutions;
  if (products > rules_.most_products) return Limit::products;
  if (rules_.most_contractions > 0 && convolutions + products > rules_.most_contractions) return Limit::contractions;
  if (rules_.updates_apart && update && weight_gradient) return Limit::updates;
  if (rules_.activations_apart)
    for (UnitId u : set)
      if (traits_[u].kind == Kind::activation)
        for (UnitId from : graph_.sources(u))
          if (traits_[from].kind == Kind::product && std::binary_search(set.begin(), set.end(), from))
            return Limit::activations;
  if (!graph_.convex(set)) return Limit::convex;
  if (rules_.one_output && std::count_if(set.begin(), set.end(), [&](UnitId u) { return graph_.leaves(u, set); }) > 1)
    return Limit::outputs;
  return Limit::none;
}

// The rules before `outputs` hold of every part of a set that they hold of, and where all edges carry data every
// connected convex set of several has one that can go and leave it connected and convex (the units whose way to the
// rest is through one unit alone, a leaf of its blocks, include a first or a last one): growing by one unit at a time
// then finds all there are. Edges for scalars, which connect nothing but order it, can hide a few.
CandidateSearch::Found CandidateSearch::find() const {
  Found found;
  std::vector<std::vector<UnitId>> level, next;
  for (UnitId u = 0; u < static_cast<UnitId>(graph_.size()); ++u) level.push_back({u});
  found.sets = level;
  std::unordered_set<std::vector<UnitId>, UnitSetHash> seen;
  std::vector<UnitId> grown;
  while (!level.empty()) {
    found.grown += level.size();
    next.clear();
    seen.clear();
    size_t smaller = found.sets.size();
    for (const std::vector<UnitId>& set : level) {
      auto with = [&](UnitId v) {
        if (!found.complete || std::binary_search(set.begin(), set.end(), v)) return;
        grown = set;
        grown.insert(std::lower_bound(grown.begin(), grown.end(), v), v);
        if (!seen.insert(grown).second) return;
        Limit broken = limit(grown);
        if (broken != Limit::none && broken != Limit::outputs) return;
        if (found.grown + next.size() >= rules_.most_candidates) {
          found.complete = false;
          return;
        }
        next.push_back(grown);
        if (broken == Limit::none) found.sets.push_back(grown);
      };
      for (UnitId u : set)
        for (UnitId v : graph_.neighbours(u)) with(v);
    }
    std::sort(found.sets.begin() + static_cast<std::ptrdiff_t>(smaller), found.sets.end());
    std::swap(level, next);
  }
  return found;
}

}  // namespace monet
