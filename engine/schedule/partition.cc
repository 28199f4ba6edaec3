#include "engine/schedule/partition.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

#include "engine/ir/fields.h"

namespace monet {

std::string unit_name(const Graph& graph, const Unit& unit) {
  if (unit.origin != kNone) return label(graph, unit.origin);
  if (unit.target != kNone) return graph.tensors[unit.target].name;
  return label(graph, unit.nodes.front());
}

Partition layer_by_layer(const Graph& graph) {
  Partition partition;
  for (UnitId u = 0; u < static_cast<UnitId>(graph.units.size()); ++u) partition.groups.push_back({{u}});
  return partition;
}

Partition all_fused(const Graph& graph) {
  FusedGroup all;
  for (UnitId u = 0; u < static_cast<UnitId>(graph.units.size()); ++u) all.units.push_back(u);
  return {{all}};
}

Partition parse_partition(const std::string& text, const Graph& graph) {
  Findings findings;
  Partition partition;
  std::optional<Json> document = read_json(text, "the partition", "", findings);
  if (document && !document->is_object())
    findings.problem("not-a-partition", "", "the partition must be an object with `groups`, is " + describe(*document));
  std::multimap<std::string, UnitId> by_name;
  std::vector<char> taken(graph.units.size(), 0);
  if (document && document->is_object()) {
    for (UnitId u = 0; u < static_cast<UnitId>(graph.units.size()); ++u)
      by_name.emplace(unit_name(graph, graph.units[u]), u);
    Fields top(*document, "", findings);
    const Json* groups = top.array("groups");
    top.finish();
    for (size_t i = 0; groups && i < groups->size(); ++i) {
      std::string path = "groups." + std::to_string(i);
      if (!(*groups)[i].is_object()) {
        findings.problem("bad-field", path, "must be an object with `units`, is " + describe((*groups)[i]));
        continue;
      }
      Fields entry((*groups)[i], path, findings);
      FusedGroup group;
      const Json* units = entry.array("units");
      group.tiles = entry.integer("tiles", 1, 1 << 20).value_or(1);
      std::string axis = entry.text("axis").value_or("batch");
      group.axis = axis == "rows"       ? SliceAxis::Kind::rows
                   : axis == "channels" ? SliceAxis::Kind::channels
                                        : SliceAxis::Kind::batch;
      if (axis != "batch" && axis != "rows" && axis != "channels")
        findings.problem("bad-field", path + ".axis", "must be batch, rows or channels, is \"" + axis + "\"");
      entry.finish();
      for (size_t k = 0; units && k < units->size(); ++k) {
        const Json& value = (*units)[k];
        std::string at = path + ".units." + std::to_string(k);
        UnitId unit = kNone;
        if (value.is_string()) {
          auto [first, last] = by_name.equal_range(value.get<std::string>());
          if (first == last) {
            findings.problem("unknown-unit", at, "no layer is called " + describe(value));
          } else if (std::next(first) != last) {
            findings.problem("unknown-unit", at, describe(value) + " is the name of several layers",
                             "give the layer's id instead");
          } else {
            unit = first->second;
          }
        } else if (std::optional<int64_t> id = integer_in(value);
                   id && *id >= 0 && *id < static_cast<int64_t>(graph.units.size())) {
          unit = static_cast<UnitId>(*id);
        } else {
          findings.problem("unknown-unit", at,
                           "must be the name or the id (0 to " + std::to_string(graph.units.size() - 1) +
                               ") of a layer, is " + describe(value));
        }
        if (unit == kNone) continue;
        if (taken[unit]++) {
          findings.problem("unit-twice", at, describe(value) + " is in two groups");
        } else {
          group.units.push_back(unit);
        }
      }
      std::sort(group.units.begin(), group.units.end());
      if (!group.units.empty()) partition.groups.push_back(std::move(group));
    }
  }
  if (!findings.problems.empty()) throw Refusal(std::move(findings.problems));
  for (UnitId u = 0; u < static_cast<UnitId>(taken.size()); ++u)
    if (!taken[u]) partition.groups.push_back({{u}});
  std::stable_sort(partition.groups.begin(), partition.groups.end(),
                   [](const FusedGroup& a, const FusedGroup& b) { return a.units.front() < b.units.front(); });
  return partition;
}

std::vector<size_t> group_order(const Graph& graph, const std::vector<UnitEdge>& edges, const Partition& partition) {
  constexpr size_t kOutside = static_cast<size_t>(-1);
  std::vector<size_t> group_of(graph.units.size(), kOutside);
  for (size_t g = 0; g < partition.groups.size(); ++g)
    for (UnitId u : partition.groups[g].units) group_of[u] = g;
  size_t n = partition.groups.size();
  std::vector<std::vector<size_t>> readers(n);
  std::vector<int> waits(n, 0);
  for (const UnitEdge& edge : edges) {
    size_t from = group_of[edge.from], to = group_of[edge.to];
    if (from == to || from == kOutside || to == kOutside) continue;
    readers[from].push_back(to);
    ++waits[to];
  }
  // The first group that waits for none, each time: a heap on the index.
  std::vector<size_t> ready, order;
  auto later = [](size_t a, size_t b) { return a > b; };
  for (size_t g = 0; g < n; ++g)
    if (waits[g] == 0) ready.push_back(g);
  std::make_heap(ready.begin(), ready.end(), later);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end(), later);
    size_t g = ready.back();
    ready.pop_back();
    order.push_back(g);
    for (size_t to : readers[g])
      if (--waits[to] == 0) {
        ready.push_back(to);
        std::push_heap(ready.begin(), ready.end(), later);
      }
  }
  if (order.size() < n) {
    // From a group that waits for ever, back over one it waits for, until one comes twice: that one is on a cycle.
    std::vector<size_t> reads_from(n, n);
    for (size_t g = 0; g < n; ++g)
      for (size_t to : readers[g])
        if (waits[g] > 0 && waits[to] > 0) reads_from[to] = g;
    size_t at = 0;
    while (waits[at] == 0) ++at;
    for (size_t i = 0; i < n; ++i) at = reads_from[at];
    auto called = [&](size_t g) {
      return "the group of " + unit_name(graph, graph.units[partition.groups[g].units.front()]);
    };
    throw Refusal({"cyclic-groups", called(at) + " and " + called(reads_from[at]) + " wait for each other",
                   unit_name(graph, graph.units[partition.groups[at].units.front()]), "",
                   "a group must not read what another made from its results"});
  }
  return order;
}

}  // namespace monet
