// Which units may run as one fused group: connected convex sets, grown unit by unit under rules (MONET, arXiv
// 2603.15002, section on layer fusion: breadth-first from every node under constraints).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/fusion/unit_graph.h"

namespace monet {

// What the rules ask of a unit.
struct UnitTraits {
  enum class Kind : uint8_t {
    convolution,  // Conv or ConvTranspose in any role
    product,      // Gemm, MatMul, an Einsum that is one, in any role
    activation,   // Relu, Gelu, ...: elementwise and not linear
    update,       // an optimizer's, of one tensor
    other,
  } kind = Kind::other;
  bool weight_gradient = false;
};
std::vector<UnitTraits> unit_traits(const Graph& graph);

struct FusionRules {
  int most_units = 6;         // 0: any number
  int most_convolutions = 3;  // of a group; gradients count like forward
  int most_products = 2;
  int most_contractions = 0;         // of both kinds together; 0: any number
  bool one_output = true;            // at most one of its units is used outside it
  bool updates_apart = false;        // an optimizer's update never with a weight's gradient
  bool activations_apart = false;    // an activation never with the product that it reads
  size_t most_candidates = 200'000;  // that are grown; beyond it the search ends and says so
};
// As MONET's released code has it: one contraction in all.
FusionRules one_contraction_rules();

// Why a set is no candidate.
enum class Limit : uint8_t {
  none,
  units,
  convolutions,
  products,
  contractions,
  updates,
  activations,
  convex,
  outputs,
  memory,  // however it is cut into tiles (group_cost.h)
};
const char* name(Limit limit);
std::string explain(Limit limit, const FusionRules& rules);  // a sentence

class CandidateSearch {
 public:
  // Both are kept by reference.
  CandidateSearch(const UnitGraph& graph, const std::vector<UnitTraits>& traits, const FusionRules& rules)
      : graph_(graph), traits_(traits), rules_(rules) {}

  // The first rule that a set breaks, in the order of Limit. `set`: ascending. All but the last are kept by every set
  // on the way to a larger one, so that a set that breaks them need not be grown; `outputs` may be mended by growing.
  Limit limit(std::span<const UnitId> set) const;

  struct Found {
    std::vector<std::vector<UnitId>> sets;  // each ascending; units alone first, then by size and by units
    size_t grown = 0;                       // sets that were looked at, those with several outputs included
    bool complete = true;                   // false: `most_candidates` ended the search
  };
  // Every candidate of at least one unit.
  Found find() const;

 private:
  const UnitGraph& graph_;
  const std::vector<UnitTraits>& traits_;
  FusionRules rules_;
};

}  // namespace monet
