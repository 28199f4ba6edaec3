#include "engine/fusion/unit_graph.h"

#include <algorithm>

namespace monet {
namespace {

std::vector<char> leaves_of(const Graph& graph) {
  std::vector<TensorId> storage = monet::storage(graph);
  std::vector<char> leaves(graph.units.size(), 0);
  for (TensorId t : graph.outputs)
    if (NodeId producer = graph.tensors[storage[t]].producer; producer != kNone) leaves[graph.nodes[producer].unit] = 1;
  return leaves;
}

bool has(std::span<const UnitId> set, UnitId u) { return std::binary_search(set.begin(), set.end(), u); }

}  // namespace

UnitGraph::UnitGraph(const Graph& graph, const std::vector<Work>& works)
    : UnitGraph(unit_edges(graph, works), leaves_of(graph)) {}

UnitGraph::Lists UnitGraph::lists(size_t units, std::vector<std::pair<UnitId, UnitId>> pairs) {
  Lists made;
  std::sort(pairs.begin(), pairs.end());
  made.first.assign(units + 1, 0);
  for (const auto& [u, v] : pairs) {
    made.of.push_back(v);
    ++made.first[u + 1];
  }
  for (size_t u = 0; u < units; ++u) made.first[u + 1] += made.first[u];
  return made;
}

UnitGraph::UnitGraph(const std::vector<UnitEdge>& edges, std::vector<char> leaves)
    : leaves_(std::move(leaves)), words_((leaves_.size() + 63) / 64) {
  size_t units = leaves_.size();
  std::vector<std::pair<UnitId, UnitId>> down, up, either;
  for (const UnitEdge& edge : edges) {
    down.push_back({edge.from, edge.to});
    up.push_back({edge.to, edge.from});
    if (!edge.data) continue;
    either.push_back(down.back());
    either.push_back(up.back());
  }
  readers_ = lists(units, std::move(down));
  sources_ = lists(units, std::move(up));
  neighbours_ = lists(units, std::move(either));

  after_.assign(units * words_, 0);
  before_.assign(units * words_, 0);
  auto add = [&](std::vector<uint64_t>& rows, size_t to, size_t from) {
    rows[to * words_ + from / 64] |= uint64_t{1} << from % 64;
    for (size_t w = 0; w < words_; ++w) rows[to * words_ + w] |= rows[from * words_ + w];
  };
  for (size_t u = 0; u < units; ++u)
    for (UnitId from : sources(static_cast<UnitId>(u))) add(before_, u, static_cast<size_t>(from));
  for (size_t u = units; u-- > 0;)
    for (UnitId to : readers(static_cast<UnitId>(u))) add(after_, u, static_cast<size_t>(to));
}

bool UnitGraph::convex(std::span<const UnitId> set) const {
  // What comes after one and before another lies between them by number as well.
  size_t first = static_cast<size_t>(set.front()) / 64, last = static_cast<size_t>(set.back()) / 64;
  for (size_t w = first; w <= last; ++w) {
    uint64_t after = 0, before = 0, own = 0;
    for (UnitId u : set) {
      after |= after_[static_cast<size_t>(u) * words_ + w];
      before |= before_[static_cast<size_t>(u) * words_ + w];
      if (static_cast<size_t>(u) / 64 == w) own |= uint64_t{1} << u % 64;
    }
    if (after & before & ~own) return false;
  }
  return true;
}

bool UnitGraph::leaves(UnitId u, std::span<const UnitId> set) const {
  std::span<const UnitId> to = readers(u);
  return leaves_[u] || to.empty() ||
         std::any_of(to.begin(), to.end(), [&](UnitId reader) { return !has(set, reader); });
}

std::vector<UnitGraph::GroupEdge> UnitGraph::group_edges(const std::vector<int32_t>& group_of) const {
  std::vector<GroupEdge> edges;
  for (UnitId u = 0; u < static_cast<UnitId>(size()); ++u)
    for (UnitId v : readers(u))
      if (group_of[u] != kNone && group_of[v] != kNone && group_of[u] != group_of[v])
        edges.push_back({group_of[u], group_of[v], u, v});
  auto before = [](const GroupEdge& a, const GroupEdge& b) {
    return std::pair{a.from, a.to} < std::pair{b.from, b.to};
  };
  std::stable_sort(edges.begin(), edges.end(), before);
  edges.erase(std::unique(edges.begin(), edges.end(),
                          [](const GroupEdge& a, const GroupEdge& b) { return a.from == b.from && a.to == b.to; }),
              edges.end());
  return edges;
}

}  // namespace monet
