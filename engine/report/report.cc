#include "engine/report/report.h"

#include <algorithm>
#include <map>

#include "engine/report/cost_report.h"
#include "engine/report/json_object.h"
#include "engine/schedule/partition.h"
#include "engine/training/recompute.h"
#include "engine/workload/layer.h"

namespace monet {

const char* const kEngineVersion = MONET_VERSION;

namespace {

using Json = nlohmann::ordered_json;

constexpr Phase kAllPhases[kPhases] = {Phase::forward, Phase::loss, Phase::backward, Phase::optimizer,
                                       Phase::recompute};

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json tensors_json(const Graph& graph, const std::vector<TensorId>& ids, std::initializer_list<TensorKind> kinds) {
  Json list = Json::array();
  for (TensorId t : ids) {
    const Tensor& tensor = graph.tensors[t];
    if (std::find(kinds.begin(), kinds.end(), tensor.kind) == kinds.end()) continue;
    list.push_back(object({{"name", tensor.name}, {"dtype", name(tensor.dtype)}, {"shape", tensor.shape}}));
  }
  return list;
}

Json model_json(const Results& r) {
  const Graph& forward = r.model->graph;
  std::map<std::string, int64_t> counts;
  for (const Node& node : forward.nodes) ++counts[node.op];
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Json operators = Json::array();
  for (const auto& [op, count] : sorted) operators.push_back(object({{"op", op}, {"count", count}}));
  Json dims = Json::array();
  for (const BoundDim& d : r.model->dims)
    dims.push_back(object(
        {{"name", d.name}, {"tensor", d.tensor}, {"axis", d.axis}, {"value", d.value}, {"defaulted", d.defaulted}}));
  int64_t parameters = 0, parameter_bytes = 0, macs = 0;
  for (TensorId t : monet::parameters(forward)) {  // trained or not; adapters are the training's
    parameters += elements(forward.tensors[t].shape);
    parameter_bytes += bytes(forward.tensors[t]);
  }
  for (size_t u = 0; u < r.works.size(); ++u)
    if (r.graph().units[u].phase == Phase::forward) macs += r.works[u].macs;
  return object({{"name", r.file->name()},
                 {"opset", r.file->opset()},
                 {"nodes", r.file->node_count()},
                 {"operators", operators},
                 {"parameters", parameters},
                 {"parameter_bytes", parameter_bytes},
                 {"forward_macs", macs},
                 {"inputs", tensors_json(forward, forward.inputs, {TensorKind::input})},
                 {"outputs", tensors_json(forward, forward.outputs, {TensorKind::computed, TensorKind::input})},
                 {"dims", dims},
                 {"inference_export", r.model->inference_export}});
}

Json training_json(const Results& r) {
  if (!r.training) return nullptr;
  const Graph& graph = r.graph();
  std::array<int64_t, kPhases> nodes{}, units{};
  for (const Node& node : graph.nodes) ++nodes[static_cast<size_t>(node.phase)];
  for (const Unit& unit : graph.units) ++units[static_cast<size_t>(unit.phase)];
  Json node_counts, unit_counts;
  for (Phase p : kAllPhases) {
    node_counts[name(p)] = nodes[static_cast<size_t>(p)];
    unit_counts[name(p)] = units[static_cast<size_t>(p)];
  }
  int64_t forward = 0, input_gradient = 0, weight_gradient = 0, all = 0;
  for (size_t u = 0; u < graph.units.size(); ++u) {
    int64_t macs = r.works[u].macs * r.works[u].times;
    all += macs;
    if (graph.units[u].phase == Phase::forward) forward += macs;
    if (graph.units[u].role == Role::input_gradient) input_gradient += macs;
    if (graph.units[u].role == Role::weight_gradient) weight_gradient += macs;
  }
  int64_t trained = 0;
  for (TensorId t : r.parameters) trained += elements(graph.tensors[t].shape);
  int64_t batch = 1;
  for (TensorId t : graph.inputs)
    if (graph.tensors[t].kind == TensorKind::input && !graph.tensors[t].shape.empty()) {
      batch = graph.tensors[t].shape[0];
      break;
    }
  return object({{"optimizer", r.settings["optimizer"]},
                 {"loss", name(r.training->loss)},
                 {"loss_output", graph.tensors[r.training->loss_output].name},
                 {"batch", batch},
                 {"micro_batches", graph.micro_batches},
                 {"precision", r.settings["precision"].is_string() ? r.settings["precision"] : Json("custom")},
                 {"trained_tensors", r.parameters.size()},
                 {"trained_parameters", trained},
                 {"nodes", node_counts},
                 {"units", unit_counts},
                 {"macs", object({{"forward", forward},
                                  {"input_gradient", input_gradient},
                                  {"weight_gradient", weight_gradient},
                                  {"total", all}})}});
}

Json hardware_json(const Results& r) {
  if (!r.accelerator) return nullptr;
  const Accelerator& a = *r.accelerator;
  return object({{"name", a.name},
                 {"description", a.description},
                 {"source", a.source},
                 {"cores", a.cores.size()},
                 {"mac_units", a.mac_units()},
                 {"vector_units", a.vector_units()},
                 {"mac_energy_pj", a.mac_energy()},
                 {"offchip_bits_per_cycle", a.offchip_bandwidth()},
                 {"offchip_pj_per_bit", a.offchip_energy()},
                 {"offchip_bytes", a.offchip_bytes()},
                 {"onchip_bytes", a.onchip_bytes()},
                 {"compute_core", r.cost ? Json(r.cost->core.name) : Json(nullptr)},
                 {"pes", r.cost ? Json(r.cost->core.pes()) : Json(nullptr)}});
}

Json bound_cost_json(const Results& r, const Bound& bound, bool step) {
  Json phases = Json::object();
  for (Phase p : kAllPhases) {
    const Bound& b = step ? r.phase_bounds[static_cast<size_t>(p)] : bound;
    if (step ? b.energy() > 0 : p == Phase::forward)
      phases[name(p)] = object({{"latency_cycles", b.cycles()}, {"energy_pj", b.energy()}});
  }
  return object(
      {{"latency_cycles", bound.cycles()}, {"energy_pj", bound.energy()}, {"bound", true}, {"phases", phases}});
}

Json levels_json(const std::vector<LevelEnergy>& levels) {
  Json list = Json::array();
  for (const LevelEnergy& level : levels) list.push_back(object({{"level", level.level}, {"energy_pj", level.energy}}));
  return list;
}

// Sums of several units list levels as they came; "compute" comes first, then the core's memories, lowest first, then
// what only vector work passes.
void put_in_order(std::vector<LevelEnergy>& levels, const Core& core) {
  auto place = [&](const LevelEnergy& level) {
    if (level.level == "compute") return size_t{0};
    for (size_t m = 0; m < core.memories.size(); ++m)
      if (core.memories[m].name == level.level) return m + 1;
    return core.memories.size() + 1;
  };
  std::stable_sort(levels.begin(), levels.end(),
                   [&](const LevelEnergy& a, const LevelEnergy& b) { return place(a) < place(b); });
}

// Units one after the other. Utilisation: multiply-accumulates / (PEs x cycles) of the contractions of each role.
Json modelled_cost_json(const Graph& graph, const std::vector<Work>& works, const GraphCost& cost) {
  CostSum total;
  std::array<CostSum, kPhases> sums;
  struct Use {
    double ideal = 0, cycles = 0;
  };
  std::map<Role, Use> use;
  for (size_t u = 0; u < graph.units.size(); ++u) {
    const UnitCost& unit = cost.units[u];
    total.add(unit, works[u]);
    sums[static_cast<size_t>(graph.units[u].phase)].add(unit, works[u]);
    if (unit.rule != UnitCost::Rule::mapping) continue;
    Use& of = use[graph.units[u].role];
    double cycles = unit.cycles * static_cast<double>(works[u].times);
    of.ideal += unit.utilisation * cycles;
    of.cycles += cycles;
  }
  Json phases = Json::object(), utilisation = Json::object();
  put_in_order(total.levels, cost.core);
  for (Phase p : kAllPhases) {
    CostSum& sum = sums[static_cast<size_t>(p)];
    put_in_order(sum.levels, cost.core);
    if (sum.energy > 0)
      phases[name(p)] =
          object({{"latency_cycles", sum.cycles}, {"energy_pj", sum.energy}, {"levels", levels_json(sum.levels)}});
  }
  for (const auto& [role, of] : use) utilisation[name(role)] = of.cycles > 0 ? of.ideal / of.cycles : 0;
  return object({{"latency_cycles", total.cycles},
                 {"energy_pj", total.energy},
                 {"bound", false},
                 {"phases", phases},
                 {"levels", levels_json(total.levels)},
                 {"utilisation", utilisation}});
}

Json inference_json(const Results& r) {
  if (!r.accelerator) return nullptr;
  return r.inference_cost ? modelled_cost_json(r.model->graph, r.inference_works, *r.inference_cost)
                          : bound_cost_json(r, r.inference_bound, false);
}

Json step_json(const Results& r) {
  if (!r.accelerator || !r.training) return nullptr;
  return r.cost ? modelled_cost_json(r.graph(), r.works, *r.cost) : bound_cost_json(r, r.step_bound, true);
}

Json bound_json(const Bound& b) {
  return object({{"compute_cycles", b.compute_cycles},
                 {"traffic_cycles", b.traffic_cycles},
                 {"compute_pj", b.compute_energy},
                 {"traffic_pj", b.traffic_energy},
                 {"traffic_bytes", b.traffic_bytes}});
}

// Layers that the cost model gives fewer cycles than their bound (COST_MODEL section 2: ZigZag hides the first
// transfers).
std::vector<UnitId> below_roof(const Results& r) {
  std::vector<UnitId> list;
  for (size_t u = 0; r.cost && u < r.cost->units.size(); ++u)
    if (r.cost->units[u].cycles < r.unit_bounds[u].cycles() * (1 - 1e-9)) list.push_back(static_cast<UnitId>(u));
  return list;
}

Json bounds_json(const Results& r) {
  if (!r.accelerator) return nullptr;
  Json json = bound_json(r.step_bound);
  json["limited_by"] = r.step_bound.traffic_cycles > r.step_bound.compute_cycles ? "traffic" : "compute";
  json["inference"] = bound_json(r.inference_bound);
  json["below_roof"] = below_roof(r);
  return json;
}

Json by_category(const BytesByCategory& bytes) {
  Json json;
  for (int c = 0; c < kMemoryCategories; ++c) json[name(static_cast<MemoryCategory>(c))] = bytes[c];
  return json;
}

// Units that make what each unit reads, and the units of loss, backward and optimizer that read each saved tensor.
UnitId producer_unit(const Graph& graph, TensorId t) {
  NodeId node = graph.tensors[t].producer;
  return node == kNone ? kNone : graph.nodes[node].unit;
}

Json memory_json(const Results& r) {
  const Graph& graph = r.graph();
  const MemoryTimeline& m = r.memory;
  int64_t gradients = 0, activations = 0, workspace = 0;
  if (r.training)
    for (TensorId t : r.training->gradients) gradients += r.tensor_bytes[t];
  std::vector<TensorId> saved = r.saved;
  for (TensorId t : saved)
    if (graph.tensors[t].kind == TensorKind::computed) activations += r.tensor_bytes[t];
  std::stable_sort(saved.begin(), saved.end(),
                   [&](TensorId a, TensorId b) { return r.tensor_bytes[a] > r.tensor_bytes[b]; });
  std::map<TensorId, std::vector<UnitId>> readers;
  for (TensorId t : saved) readers[t];
  for (UnitId u = 0; u < static_cast<UnitId>(graph.units.size()); ++u)
    if (graph.units[u].phase != Phase::forward)
      for (TensorId t : r.works[u].reads)
        if (auto it = readers.find(t); it != readers.end()) it->second.push_back(u);
  Json saved_json = Json::array();
  for (TensorId t : saved) {
    UnitId unit = producer_unit(graph, t);
    saved_json.push_back(object({{"tensor", graph.tensors[t].name},
                                 {"layer", unit == kNone ? Json(nullptr) : Json(unit)},
                                 {"bytes", r.tensor_bytes[t]},
                                 {"readers", readers[t]},
                                 {"recomputable", is_recomputable(graph, t)}}));
  }
  Json timeline = object({{"layer", m.order}});
  for (int c = 0; c < kMemoryCategories; ++c) {
    std::vector<int64_t> column;
    column.reserve(m.timeline.size());
    for (const BytesByCategory& row : m.timeline) column.push_back(row[c]);
    timeline[name(static_cast<MemoryCategory>(c))] = std::move(column);
  }
  auto at = [](const BytesByCategory& row, MemoryCategory c) { return row[static_cast<size_t>(c)]; };
  for (const BytesByCategory& row : m.timeline) workspace = std::max(workspace, at(row, MemoryCategory::workspace));
  BytesByCategory at_peak = m.timeline.empty() ? BytesByCategory{} : m.timeline[m.peak_at];
  Json json = object({{"parameters", at(at_peak, MemoryCategory::parameters)},
                      {"master_weights", at(at_peak, MemoryCategory::master_weights)},
                      {"buffers", at(at_peak, MemoryCategory::buffers)},
                      {"gradients", gradients},
                      {"optimizer_state", at(at_peak, MemoryCategory::optimizer_state)},
                      {"inputs", at(at_peak, MemoryCategory::inputs)},
                      {"activations", activations},
                      {"workspace", workspace},
                      {"peak", m.peak},
                      {"peak_unit", m.order.empty() ? 0 : m.order[m.peak_at]},
                      {"at_peak", by_category(at_peak)},
                      {"inference_peak", r.inference_memory.peak},
                      {"capacity", or_null(r.capacity)},
                      {"fits", r.capacity ? Json(m.peak <= *r.capacity) : Json(nullptr)},
                      {"short_by", r.capacity ? Json(std::max<int64_t>(0, m.peak - *r.capacity)) : Json(nullptr)},
                      {"largest_batch", nullptr},
                      {"saved", std::move(saved_json)},
                      {"timeline", std::move(timeline)}});
  if (r.largest_batch)
    json["largest_batch"] = object({{"value", or_null(r.largest_batch->value)}, {"reason", r.largest_batch->reason}});
  return json;
}

Json mappings_json(const Results& r) {
  Json list = Json::array();
  if (r.cost)
    for (const Mapping& mapping : r.cost->mappings)
      list.push_back(mapping_json(mapping.layer, r.cost->core, mapping.cost));
  return list;
}

Json layers_json(const Results& r) {
  const Graph& graph = r.graph();
  std::vector<bool> is_saved(graph.tensors.size(), false);
  for (TensorId t : r.saved) is_saved[t] = true;
  std::vector<TensorId> place = storage(graph);
  Json layers = Json::array();
  for (UnitId u = 0; u < static_cast<UnitId>(graph.units.size()); ++u) {
    const Unit& unit = graph.units[u];
    const Work& work = r.works[u];
    int64_t parameter_bytes = 0, saved_bytes = 0;
    std::vector<UnitId> reads;
    for (TensorId t : work.reads)
      if (graph.tensors[t].kind == TensorKind::parameter && unit.phase == Phase::forward)
        parameter_bytes += r.tensor_bytes[t];
    Shape shape;
    for (NodeId n : unit.nodes) {
      for (TensorId t : graph.nodes[n].inputs)
        if (t != kNone)
          if (UnitId from = producer_unit(graph, t); from != kNone && from != u) reads.push_back(from);
      for (TensorId t : graph.nodes[n].outputs)
        if (t != kNone) {
          if (is_saved[t] && place[t] == t) saved_bytes += r.tensor_bytes[t];
        }
    }
    std::sort(reads.begin(), reads.end());
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    for (TensorId t : graph.nodes[unit.nodes.back()].outputs)
      if (t != kNone) {
        shape = graph.tensors[t].shape;
        break;
      }
    Json loops = Json::array(), transposed = Json::array();
    if (unit.contraction != kNone)
      for (const Loop& loop : loop_nest(graph, unit).loops)
        loops.push_back(object({{"dim", loop.dim}, {"size", loop.size}}));
    if (std::optional<Layer> layer = layer_of(graph, unit))
      for (const LayerOperand& operand : layer->operands)
        if (operand.transposed) transposed.push_back(operand.name);
    UnitId origin = unit.phase != Phase::forward && unit.origin != kNone ? graph.nodes[unit.origin].unit : kNone;
    Json layer = object({{"id", u},
                         {"name", unit_name(graph, unit)},
                         {"op", unit.op},
                         {"phase", name(unit.phase)},
                         {"role", name(unit.role)},
                         {"origin", origin == kNone ? Json(nullptr) : Json(origin)},
                         {"shape", shape},
                         {"loops", loops},
                         {"transposed", transposed},
                         {"macs", work.macs},
                         {"operations", work.operations},
                         {"bytes", r.unit_bytes[u]},
                         {"parameter_bytes", parameter_bytes},
                         {"saved_bytes", saved_bytes},
                         {"nodes", unit.nodes.size()},
                         {"rule", nullptr},
                         {"latency_cycles", nullptr},
                         {"energy_pj", nullptr},
                         {"bound_by", nullptr},
                         {"bound_cycles", nullptr},
                         {"bound_energy_pj", nullptr},
                         {"utilisation", nullptr},
                         {"mapping", nullptr},
                         {"levels", Json::array()},
                         {"reads", reads}});
    if (r.accelerator) {
      const Bound& b = r.unit_bounds[u];
      layer["rule"] = name(UnitCost::Rule::bound);
      layer["latency_cycles"] = layer["bound_cycles"] = b.cycles();
      layer["energy_pj"] = layer["bound_energy_pj"] = b.energy();
      layer["bound_by"] = b.cycles() == 0 ? "nothing" : b.traffic_cycles > b.compute_cycles ? "traffic" : "compute";
    }
    if (r.cost) {
      const UnitCost& cost = r.cost->units[u];
      layer["rule"] = name(cost.rule);
      layer["latency_cycles"] = cost.cycles;
      layer["energy_pj"] = cost.energy;
      layer["bound_by"] = cost.cycles == 0 ? "nothing" : cost.bound_by;
      if (cost.rule == UnitCost::Rule::mapping) layer["utilisation"] = cost.utilisation;
      if (cost.mapping != kNone) layer["mapping"] = cost.mapping;
      layer["levels"] = levels_json(cost.levels);
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace

Json to_json(const Diagnostic& d) {
  return object({{"code", d.code}, {"message", d.message}, {"node", d.node}, {"tensor", d.tensor}, {"hint", d.hint}});
}

Json errors_json(const std::vector<Diagnostic>& problems) {
  Json list = Json::array();
  for (const Diagnostic& d : problems) list.push_back(to_json(d));
  return object({{"errors", list}});
}

Json report(const Results& r) {
  Json warnings = Json::array();
  for (const Diagnostic& d : r.warnings) warnings.push_back(to_json(d));
  return object({{"schema", "monet.report/1"},
                 {"engine", object({{"name", "monet"}, {"version", kEngineVersion}})},
                 {"model", model_json(r)},
                 {"settings", r.settings},
                 {"training", training_json(r)},
                 {"hardware", hardware_json(r)},
                 {"inference", inference_json(r)},
                 {"step", step_json(r)},
                 {"memory", memory_json(r)},
                 {"layers", layers_json(r)},
                 {"mappings", mappings_json(r)},
                 {"schedule", nullptr},
                 {"fusion", nullptr},
                 {"checkpointing", nullptr},
                 {"exploration", nullptr},
                 {"bounds", bounds_json(r)},
                 {"warnings", warnings}});
}

std::string to_bytes(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace monet
