// Who reads from whom among the units of a graph: what fusion searches over. Units are numbered in execution order, so
// every reader has a higher number than what it reads from.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/ir/graph.h"

namespace monet {

class UnitGraph {
 public:
  explicit UnitGraph(const Graph& graph);
  // `edges`: (read from, reader), in any order, equal ones once or more. `leaves[u]`: u makes an output of the graph.
  UnitGraph(size_t units, std::vector<std::pair<UnitId, UnitId>> edges, std::vector<char> leaves);

  size_t size() const { return leaves_.size(); }
  std::span<const UnitId> readers(UnitId u) const { return list(readers_, first_reader_, u); }
  std::span<const UnitId> sources(UnitId u) const { return list(sources_, first_source_, u); }

  // `set`: ascending. No unit outside is on a way from one of the set to another: a group of them waits for nobody who
  // waits for it.
  bool convex(std::span<const UnitId> set) const;
  // Whether what u makes is used outside the set: by another unit, as an output of the graph, or by nobody at all.
  bool leaves(UnitId u, std::span<const UnitId> set) const;

 private:
  static std::span<const UnitId> list(const std::vector<UnitId>& of, const std::vector<int32_t>& first, UnitId u) {
    return {of.data() + first[u], of.data() + first[u + 1]};
  }

  std::vector<UnitId> readers_, sources_;  // of unit 0, of unit 1, ..., each ascending
  std::vector<int32_t> first_reader_, first_source_;
  std::vector<char> leaves_;
  // Bit v of row u: v comes after (before) u on some way.
  size_t words_ = 0;
  std::vector<uint64_t> after_, before_;
};

}  // namespace monet
