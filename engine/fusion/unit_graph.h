// Who reads from whom among the units of a graph: what fusion searches over. Units are numbered in execution order, so
// every reader has a higher number than what it reads from. Views are no part of it: what is read through them counts
// as read itself.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/workload/work.h"

namespace monet {

struct UnitSetHash {
  size_t operator()(const std::vector<UnitId>& set) const {
    uint64_t hash = 1469598103934665603u;  // FNV-1a, over whole numbers
    for (UnitId u : set) hash = (hash ^ static_cast<uint64_t>(u)) * 1099511628211u;
    return static_cast<size_t>(hash ^ hash >> 32);
  }
};

class UnitGraph {
 public:
  UnitGraph(const Graph& graph, const std::vector<Work>& works);
  // `edges`: sorted, each pair once. `leaves[u]`: u makes an output of the graph.
  UnitGraph(const std::vector<UnitEdge>& edges, std::vector<char> leaves);

  size_t size() const { return leaves_.size(); }
  std::span<const UnitId> readers(UnitId u) const { return list(readers_, u); }
  std::span<const UnitId> sources(UnitId u) const { return list(sources_, u); }
  // Those of both that more than a scalar passes to or from: what gives a reason to run together.
  std::span<const UnitId> neighbours(UnitId u) const { return list(neighbours_, u); }

  // `set`: ascending. No unit outside is on a way from one of the set to another: a group of them waits for nobody who
  // waits for it.
  bool convex(std::span<const UnitId> set) const;
  // Whether what u makes is used outside the set: by another unit, as an output of the graph, or by nobody at all.
  bool leaves(UnitId u, std::span<const UnitId> set) const;
  // Units of group a that are read by units of group b, with these, one for each pair of groups: `group_of` by unit,
  // kNone for units in no group.
  struct GroupEdge {
    int32_t from, to;     // groups
    UnitId unit, reader;  // an edge between them
  };
  std::vector<GroupEdge> group_edges(const std::vector<int32_t>& group_of) const;

 private:
  struct Lists {
    std::vector<UnitId> of;      // of unit 0, of unit 1, ..., each ascending
    std::vector<int32_t> first;  // by unit, and the end
  };
  static Lists lists(size_t units, std::vector<std::pair<UnitId, UnitId>> pairs);
  static std::span<const UnitId> list(const Lists& lists, UnitId u) {
    return {lists.of.data() + lists.first[u], lists.of.data() + lists.first[u + 1]};
  }

  Lists readers_, sources_, neighbours_;
  std::vector<char> leaves_;
  // Bit v of row u: v comes after (before) u on some way.
  size_t words_ = 0;
  std::vector<uint64_t> after_, before_;
};

}  // namespace monet
