#include "engine/schedule/memory.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "engine/workload/operations.h"
#include "engine/workload/work.h"

namespace monet {

const char* name(MemoryCategory category) {
  constexpr const char* kNames[kMemoryCategories] = {"parameters",           "master_weights", "buffers",
                                                     "optimizer_state",      "inputs",         "activations",
                                                     "activation_gradients", "gradients",      "workspace"};
  return kNames[static_cast<size_t>(category)];
}

int64_t total(const BytesByCategory& bytes) { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

MemoryCategory category_of(const Graph& graph, const Tensor& tensor) {
  switch (tensor.kind) {
    case TensorKind::input:
    case TensorKind::label:
      return MemoryCategory::inputs;
    case TensorKind::parameter:
      return MemoryCategory::parameters;
    case TensorKind::buffer:
    case TensorKind::constant:
    case TensorKind::scalar:
      return MemoryCategory::buffers;
    case TensorKind::state:
      return MemoryCategory::optimizer_state;
    case TensorKind::sum:
      return MemoryCategory::gradients;
    case TensorKind::computed:
      break;
  }
  const Node& producer = graph.nodes[tensor.producer];
  // The loss phase holds the loss and the first gradient.
  bool is_gradient = producer.phase == Phase::loss && graph.units[producer.unit].role == Role::gradient;
  bool is_forward =
      producer.phase == Phase::forward || producer.phase == Phase::loss || producer.phase == Phase::recompute;
  if (is_forward && !is_gradient) return MemoryCategory::activations;
  if (tensor.of != kNone && graph.tensors[tensor.of].kind == TensorKind::parameter) return MemoryCategory::gradients;
  return MemoryCategory::activation_gradients;
}

namespace {

int64_t& at(BytesByCategory& bytes, MemoryCategory category) { return bytes[static_cast<size_t>(category)]; }

// Where a tensor's bytes are: views resolved, and updated parameters, states, sums and running statistics to what they
// replace.
std::vector<TensorId> places(const Graph& graph) {
  std::vector<TensorId> place = storage(graph);
  for (TensorId t = 0; t < static_cast<TensorId>(graph.tensors.size()); ++t) {
    const Tensor& tensor = graph.tensors[t];
    if (tensor.kind != TensorKind::computed || tensor.of == kNone || tensor.producer == kNone) continue;
    TensorKind kind = graph.tensors[tensor.of].kind;
    Phase phase = graph.nodes[tensor.producer].phase;
    bool update = phase == Phase::optimizer && (kind == TensorKind::parameter || kind == TensorKind::state);
    bool statistic = phase == Phase::forward && kind == TensorKind::buffer;
    if (update || statistic || kind == TensorKind::sum) place[t] = tensor.of;
  }
  return place;
}

// When the bytes at a place are held: positions in the execution order.
struct Span {
  int32_t first = std::numeric_limits<int32_t>::max();
  int32_t last = -1;
  bool internal = true;  // touched by one unit only
};

// Bytes that one unit holds for tensors of its own, at most, over its nodes in order.
int64_t workspace(const Graph& graph, const Unit& unit, const std::vector<TensorId>& place,
                  const std::vector<Span>& spans, const std::vector<int64_t>& tensor_bytes,
                  std::vector<int32_t>& index_of /* scratch by tensor: kNone before and after */) {
  if (unit.nodes.size() < 2) {  // one node: only outputs that nobody reads
    int64_t held = 0;
    for (TensorId t : graph.nodes[unit.nodes[0]].outputs)
      if (t != kNone && place[t] == t && spans[t].internal) held += tensor_bytes[t];
    return held;
  }
  std::vector<TensorId> own;
  auto is_own = [&](TensorId t) {
    return t != kNone && graph.tensors[place[t]].kind == TensorKind::computed && spans[place[t]].internal;
  };
  // A stream is made and read by elementwise operators, reductions included on the reading side: no bytes.
  std::vector<bool> streams;
  for (NodeId n : unit.nodes)
    for (TensorId t : graph.nodes[n].outputs)
      if (is_own(t) && place[t] == t) {
        index_of[t] = static_cast<int32_t>(own.size());
        own.push_back(t);
        streams.push_back(is_elementwise(graph.nodes[n]));
      }
  std::vector<NodeId> last(own.size(), kNone);
  for (NodeId n : unit.nodes) {
    for (TensorId t : graph.nodes[n].inputs)
      if (is_own(t)) {
        int32_t i = index_of[place[t]];
        last[i] = n;
        if (!is_view(graph.nodes[n]) && !is_elementwise(graph.nodes[n]) && !is_reduction(graph.nodes[n]))
          streams[i] = false;
      }
    for (TensorId t : graph.nodes[n].outputs)
      if (is_own(t)) last[index_of[place[t]]] = std::max(last[index_of[place[t]]], n);
  }
  int64_t held = 0, most = 0;
  for (NodeId n : unit.nodes) {
    for (size_t i = 0; i < own.size(); ++i)
      if (graph.tensors[own[i]].producer == n && !streams[i]) held += tensor_bytes[own[i]];
    most = std::max(most, held);
    for (size_t i = 0; i < own.size(); ++i)
      if (last[i] == n && !streams[i]) held -= tensor_bytes[own[i]];
  }
  for (TensorId t : own) index_of[t] = kNone;
  return most;
}

// What does not depend on the tensors' sizes, computed once for the many evaluations of a batch search.
struct Liveness {
  std::vector<UnitId> order;
  std::vector<TensorId> place;
  std::vector<Span> spans;  // by place
};

Liveness liveness(const Graph& graph, const MemoryOptions& options) {
  Liveness result;
  result.order = execution_order(graph, options.update_immediately);
  result.place = places(graph);
  result.spans.resize(graph.tensors.size());
  auto touch = [&](TensorId t, int32_t position) {
    Span& span = result.spans[result.place[t]];
    if (span.last >= 0 && span.last != position) span.internal = false;
    span.first = std::min(span.first, position);
    span.last = std::max(span.last, position);
  };
  for (size_t i = 0; i < result.order.size(); ++i)
    for (NodeId n : graph.units[result.order[i]].nodes) {
      for (TensorId t : graph.nodes[n].inputs)
        if (t != kNone) touch(t, static_cast<int32_t>(i));
      for (TensorId t : graph.nodes[n].outputs)
        if (t != kNone) touch(t, static_cast<int32_t>(i));
    }
  int32_t end = static_cast<int32_t>(result.order.size()) - 1;
  for (TensorId t : graph.outputs) {
    const Tensor& tensor = graph.tensors[result.place[t]];
    if (tensor.kind != TensorKind::computed) continue;
    Span& span = result.spans[result.place[t]];
    span.internal = false;
    if (options.keep_outputs || category_of(graph, tensor) == MemoryCategory::gradients) span.last = end;
  }
  return result;
}

MemoryTimeline evaluate(const Graph& graph, const Liveness& live, const std::vector<int64_t>& tensor_bytes,
                        const MemoryOptions& options) {
  MemoryTimeline result;
  result.order = live.order;
  size_t steps = live.order.size();
  result.timeline.assign(steps, BytesByCategory{});
  if (!steps) return result;
  BytesByCategory held{};  // throughout
  std::vector<BytesByCategory> change(steps + 1, BytesByCategory{});
  for (TensorId t : options.master_weights)
    at(held, MemoryCategory::master_weights) += elements(graph.tensors[t].shape) * 4;
  for (TensorId t = 0; t < static_cast<TensorId>(graph.tensors.size()); ++t) {
    if (live.place[t] != t) continue;
    const Tensor& tensor = graph.tensors[t];
    const Span& span = live.spans[t];
    if (span.last < 0) continue;  // nobody touches it
    if (tensor.kind != TensorKind::computed) {
      at(held, category_of(graph, tensor)) += tensor_bytes[t];
      continue;
    }
    if (span.internal) continue;
    MemoryCategory category = category_of(graph, tensor);
    at(change[span.first], category) += tensor_bytes[t];
    at(change[span.last + 1], category) -= tensor_bytes[t];
  }
  std::vector<int32_t> scratch(graph.tensors.size(), kNone);
  for (size_t i = 0; i < steps; ++i) {
    for (int c = 0; c < kMemoryCategories; ++c) held[c] += change[i][c];
    result.timeline[i] = held;
    at(result.timeline[i], MemoryCategory::workspace) +=
        workspace(graph, graph.units[live.order[i]], live.place, live.spans, tensor_bytes, scratch);
    int64_t sum = total(result.timeline[i]);
    if (sum > result.peak) {
      result.peak = sum;
      result.peak_at = i;
    }
  }
  return result;
}

}  // namespace

std::vector<UnitId> execution_order(const Graph& graph, bool update_immediately) {
  std::vector<UnitId> order;
  order.reserve(graph.units.size());
  if (!update_immediately) {
    for (UnitId u = 0; u < static_cast<UnitId>(graph.units.size()); ++u) order.push_back(u);
    return order;
  }
  std::vector<std::vector<UnitId>> after(graph.units.size());  // updates that may run once the unit is done
  std::vector<bool> placed(graph.units.size(), false);
  std::vector<UnitId> last_reader(graph.tensors.size(), kNone);  // the optimizer's own reads left out
  for (const Node& node : graph.nodes)
    for (TensorId t : node.inputs)
      if (t != kNone && node.phase != Phase::optimizer) last_reader[t] = std::max(last_reader[t], node.unit);
  for (UnitId u = 0; u < static_cast<UnitId>(graph.units.size()); ++u) {
    if (graph.units[u].phase != Phase::optimizer) continue;
    UnitId latest = kNone;
    bool waits = false;
    for (NodeId n : graph.units[u].nodes)
      for (TensorId t : graph.nodes[n].inputs)
        if (t != kNone && graph.tensors[t].producer != kNone) {
          UnitId producer = graph.nodes[graph.tensors[t].producer].unit;
          if (producer == u) continue;
          waits = true;
          if (std::find(order.begin(), order.end(), producer) == order.end()) latest = std::max(latest, producer);
        }
    // A parameter may still be read by units that come after its gradient is complete (input gradients, tied uses).
    if (graph.units[u].target != kNone) latest = std::max(latest, last_reader[graph.units[u].target]);
    if (!waits) order.push_back(u);  // scalars of the step: first of all
    if (!waits || latest != kNone) placed[u] = true;
    if (waits && latest != kNone) after[latest].push_back(u);
  }
  for (UnitId u = 0; u < static_cast<UnitId>(graph.units.size()); ++u) {
    if (!placed[u]) order.push_back(u);
    order.insert(order.end(), after[u].begin(), after[u].end());
  }
  return order;
}

MemoryTimeline memory(const Graph& graph, const std::vector<int64_t>& tensor_bytes, const MemoryOptions& options) {
  return evaluate(graph, liveness(graph, options), tensor_bytes, options);
}

int64_t largest_batch(const Graph& graph, const TensorBytesAt& a, const TensorBytesAt& b, const MemoryOptions& options,
                      int64_t capacity) {
  Liveness live = liveness(graph, options);
  std::vector<int64_t> scaled(a.bytes.size());
  auto fits = [&](int64_t batch) {
    for (size_t t = 0; t < scaled.size(); ++t) {
      double slope = static_cast<double>(b.bytes[t] - a.bytes[t]) / static_cast<double>(b.batch - a.batch);
      scaled[t] = a.bytes[t] + static_cast<int64_t>(slope * static_cast<double>(batch - a.batch));
    }
    return evaluate(graph, live, scaled, options).peak <= capacity;
  };
  if (!fits(1)) return 0;
  if (a.bytes == b.bytes) return kEveryBatch;
  int64_t good = 1, bad = 2;
  while (bad <= kEveryBatch && fits(bad)) {
    good = bad;
    bad *= 2;
  }
  if (bad > kEveryBatch) return kEveryBatch;
  while (bad - good > 1) {
    int64_t middle = good + (bad - good) / 2;
    (fits(middle) ? good : bad) = middle;
  }
  return good;
}

}  // namespace monet
