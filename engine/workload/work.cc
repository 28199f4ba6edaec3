#include "engine/workload/work.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "engine/ir/saturating.h"
#include "engine/workload/layer.h"
#include "engine/workload/operations.h"

namespace monet {

namespace {

// Facts about the whole graph that every unit's work needs.
struct Context {
  std::vector<TensorId> storage;
  // Per storage tensor: whether a graph output shares it, and the units that read it.
  std::vector<char> output;
  std::vector<std::vector<UnitId>> readers;
};

// Operators that give out elements of operand 0: they read no more of it than they give out.
bool selects(const Node& node) {
  const std::string& op = node.op;
  return node.domain.empty() && (op == "Gather" || op == "GatherElements" || op == "GatherND" || op == "Slice" ||
                                 op == "Split" || op == "Compress" || op == "CenterCropPad");
}

bool asks_shape_only(const Node& node) {
  return node.domain.empty() &&
         (node.op == "Shape" || node.op == "Size" || node.op == "ConstantOfShape" || node.op == "EyeLike" ||
          node.op == "RandomUniformLike" || node.op == "RandomNormalLike");
}

bool reads(const Node& node) { return !is_view(node) && !asks_shape_only(node); }

Context make_context(const Graph& graph) {
  Context context;
  context.storage = storage(graph);
  size_t n = graph.tensors.size();
  context.output.assign(n, 0);
  context.readers.resize(n);
  for (TensorId t : graph.outputs) context.output[context.storage[t]] = 1;
  for (const Node& node : graph.nodes) {
    if (!reads(node)) continue;
    for (TensorId t : node.inputs)
      if (t != kNone) context.readers[context.storage[t]].push_back(node.unit);
  }
  return context;
}

Work work_in(const Graph& graph, const Context& context, const Unit& unit) {
  Work work;
  work.view = std::all_of(unit.nodes.begin(), unit.nodes.end(), [&](NodeId n) { return is_view(graph.nodes[n]); });
  if (unit.contraction != kNone) work.macs = loop_nest(graph, unit).macs();
  std::set<TensorId> inside;
  for (NodeId id : unit.nodes)
    for (TensorId t : graph.nodes[id].outputs)
      if (t != kNone && context.storage[t] == t) inside.insert(t);
  // The tensor that a convolution (forward, or its weight's gradient) reads through windows.
  TensorId windowed = kNone;
  if (unit.contraction != kNone && unit.origin != kNone && graph.nodes[unit.origin].op == "Conv" &&
      unit.role != Role::input_gradient)
    windowed = context.storage[graph.nodes[unit.origin].inputs[0]];
  std::map<TensorId, size_t> place;
  for (NodeId id : unit.nodes) {
    const Node& node = graph.nodes[id];
    // The nest stands for all multiply-accumulates of the unit, however many nodes the export needs for them.
    if (!(unit.contraction != kNone && is_contraction(node)))
      work.operations = saturating_add(work.operations, operations(graph, id));
    if (!reads(node)) continue;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNone) continue;
      TensorId from = context.storage[node.inputs[i]];
      if (inside.count(from)) continue;
      int64_t touched = elements(graph.tensors[from].shape);
      if (i == 0 && selects(node)) {
        int64_t given = 0;
        for (TensorId t : node.outputs)
          if (t != kNone) given = saturating_add(given, elements(graph.tensors[t].shape));
        touched = std::min(touched, given);
      }
      if (from == windowed)
        if (std::optional<Layer> layer = layer_of(graph, unit))
          touched = std::min(touched, touched_elements(*layer, layer->operands.front()));
      auto [at, fresh] = place.emplace(from, work.reads.size());
      if (fresh) {
        work.reads.push_back(from);
        work.read_elements.push_back(touched);
      } else {
        work.read_elements[at->second] = std::max(work.read_elements[at->second], touched);
      }
    }
  }
  UnitId self = unit.nodes.empty() ? kNone : graph.nodes[unit.nodes.front()].unit;
  for (NodeId id : unit.nodes) {
    for (TensorId t : graph.nodes[id].outputs) {
      if (t == kNone || context.storage[t] != t) continue;
      const std::vector<UnitId>& readers = context.readers[t];
      bool outlives =
          context.output[t] || std::any_of(readers.begin(), readers.end(), [&](UnitId u) { return u != self; });
      if (outlives) work.writes.push_back(t);
    }
  }
  return work;
}

}  // namespace

Work work(const Graph& graph, const Unit& unit) { return work_in(graph, make_context(graph), unit); }

std::vector<Work> works(const Graph& graph) {
  Context context = make_context(graph);
  std::vector<Work> result;
  result.reserve(graph.units.size());
  for (const Unit& unit : graph.units) {
    result.push_back(work_in(graph, context, unit));
    if (unit.phase != Phase::optimizer) result.back().times = graph.micro_batches;
  }
  return result;
}

std::vector<UnitEdge> unit_edges(const Graph& graph, const std::vector<Work>& works) {
  std::vector<UnitId> maker(graph.tensors.size(), kNone);
  for (size_t u = 0; u < works.size(); ++u)
    for (TensorId t : works[u].writes) maker[t] = static_cast<UnitId>(u);
  std::vector<UnitEdge> edges;
  for (size_t u = 0; u < works.size(); ++u) {
    if (works[u].view) continue;
    for (TensorId t : works[u].reads)
      if (maker[t] != kNone && maker[t] != static_cast<UnitId>(u))
        edges.push_back({maker[t], static_cast<UnitId>(u), elements(graph.tensors[t].shape) > 1});
  }
  // Of a pair with several tensors the first in falling order is kept: one with data, if there is any.
  std::sort(edges.begin(), edges.end(), std::greater<>());
  edges.erase(std::unique(edges.begin(), edges.end(),
                          [](const UnitEdge& a, const UnitEdge& b) { return a.from == b.from && a.to == b.to; }),
              edges.end());
  std::reverse(edges.begin(), edges.end());
  return edges;
}

}  // namespace monet
