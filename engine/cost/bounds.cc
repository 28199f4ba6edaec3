#include "engine/cost/bounds.h"

#include <algorithm>
#include <map>
#include <set>

#include "engine/ir/saturating.h"
#include "engine/workload/layer.h"

namespace monet {

namespace {

constexpr int64_t kMasterBytes = 4;  // fp32

bool is_updated_parameter(const Graph& graph, TensorId tensor) {
  const Tensor& t = graph.tensors[tensor];
  return t.of != kNone && graph.tensors[t.of].kind == TensorKind::parameter && t.producer != kNone &&
         graph.nodes[t.producer].phase == Phase::optimizer;
}

// Bytes of the first `count` of the tensor's elements.
int64_t bytes_of(const Graph& graph, TensorId tensor, int64_t count, const Precision& precision) {
  int64_t all = bytes(graph, tensor, precision), total = elements(graph.tensors[tensor].shape);
  if (count >= total || total == 0) return all;
  // Rounded down, so that the bound stays one; no overflow for a count below the total.
  return static_cast<int64_t>(static_cast<double>(all) / static_cast<double>(total) * static_cast<double>(count));
}

// Bytes that cross the edge when the tensors given are read (tensor -> elements) and written.
Traffic traffic(const Graph& graph, const std::map<TensorId, int64_t>& reads, const std::set<TensorId>& writes,
                const Precision& precision) {
  std::set<TensorId> masters;  // parameters whose update is among the writes
  Traffic sum;
  for (TensorId t : writes) {
    sum.written = saturating_add(sum.written, bytes(graph, t, precision));
    if (!precision.master_weights || !is_updated_parameter(graph, t)) continue;
    masters.insert(graph.tensors[t].of);
    sum.written = saturating_add(sum.written, saturating_multiply(elements(graph.tensors[t].shape), kMasterBytes));
  }
  for (const auto& [t, count] : reads) {
    if (graph.tensors[t].kind == TensorKind::constant) continue;
    sum.read =
        saturating_add(sum.read, masters.count(t) ? saturating_multiply(elements(graph.tensors[t].shape), kMasterBytes)
                                                  : bytes_of(graph, t, count, precision));
  }
  return sum;
}

Bound bound(double macs, double operations, int64_t bytes, const Accelerator& accelerator) {
  Bound result;
  // A description without units of a kind gives no bound for what needs them, rather than infinity.
  if (accelerator.mac_units() > 0) result.compute_cycles = macs / accelerator.mac_units();
  if (accelerator.vector_units() > 0)
    result.compute_cycles = std::max(result.compute_cycles, (macs + operations) / accelerator.vector_units());
  result.compute_energy = macs * accelerator.mac_energy() + operations * accelerator.vector_energy();
  result.traffic_bytes = bytes;
  double bits = static_cast<double>(bytes) * 8;
  if (accelerator.offchip_bandwidth() > 0) result.traffic_cycles = bits / accelerator.offchip_bandwidth();
  result.traffic_energy = bits * accelerator.offchip_energy();
  return result;
}

}  // namespace

Traffic unit_traffic(const Graph& graph, const Work& work, const Precision& precision) {
  std::map<TensorId, int64_t> reads;
  for (size_t i = 0; i < work.reads.size(); ++i) reads[work.reads[i]] = work.read_elements[i];
  std::set<TensorId> writes(work.writes.begin(), work.writes.end());
  return traffic(graph, reads, writes, precision);
}

Bound unit_bound(const Graph& graph, const Unit& unit, const Work& work, const Accelerator& accelerator,
                 const Precision& precision) {
  if (std::optional<Layer> layer = layer_of(graph, unit, precision)) {
    int64_t bits = 0;
    for (const LayerOperand& operand : layer->operands)
      bits = saturating_add(bits, saturating_multiply(touched_elements(*layer, operand), operand.bits));
    return bound(static_cast<double>(work.macs), 0, bits / 8, accelerator);
  }
  Traffic bytes = unit_traffic(graph, work, precision);
  return bound(static_cast<double>(work.macs), static_cast<double>(work.operations),
               saturating_add(bytes.read, bytes.written), accelerator);
}

Bound total_bound(const Graph& graph, const std::vector<Work>& works, const Accelerator& accelerator,
                  const Precision& precision) {
  std::vector<TensorId> aliases = storage(graph);
  std::vector<char> output(graph.tensors.size(), 0);
  for (TensorId t : graph.outputs) output[aliases[t]] = 1;
  double macs = 0, operations = 0;
  std::map<TensorId, int64_t> reads;
  std::set<TensorId> writes;
  for (const Work& work : works) {
    macs += static_cast<double>(work.macs) * static_cast<double>(work.times);
    operations += static_cast<double>(work.operations) * static_cast<double>(work.times);
    for (size_t i = 0; i < work.reads.size(); ++i) {
      TensorKind kind = graph.tensors[work.reads[i]].kind;
      if (kind == TensorKind::computed || kind == TensorKind::sum) continue;
      int64_t& count = reads[work.reads[i]];
      count = std::max(count, work.read_elements[i]);
    }
    for (TensorId t : work.writes) {
      TensorId of = graph.tensors[t].of;
      if (output[t] && (of == kNone || graph.tensors[of].kind != TensorKind::sum)) writes.insert(t);
    }
  }
  Traffic once = traffic(graph, reads, writes, precision);
  int64_t bytes = saturating_add(once.read, once.written);
  // Every micro-batch brings data of its own.
  for (const auto& [t, count] : reads)
    if (graph.tensors[t].kind == TensorKind::input || graph.tensors[t].kind == TensorKind::label)
      bytes = saturating_add(bytes, saturating_multiply(bytes_of(graph, t, count, precision), graph.micro_batches - 1));
  return bound(macs, operations, bytes, accelerator);
}

}  // namespace monet
