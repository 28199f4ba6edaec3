#include "engine/cost/unit_cost.h"

#include <algorithm>
#include <map>
#include <utility>

#include "engine/cost/bounds.h"
#include "engine/cost/vector_cost.h"

namespace monet {

namespace {

void add_energy(std::vector<LevelEnergy>& levels, const std::string& level, double energy) {
  auto it = std::find_if(levels.begin(), levels.end(), [&](const LevelEnergy& l) { return l.level == level; });
  if (it == levels.end()) {
    levels.push_back({level, energy});
  } else {
    it->energy += energy;
  }
}

// What most of the time goes to.
std::string bound_by(const LayerCost& cost, const Core& core) {
  double loading = cost.onload + cost.offload;
  if (cost.temporal_cycles >= cost.stall && cost.temporal_cycles >= loading) return "compute";
  if (loading > cost.stall) return "loading";
  auto longest = std::max_element(cost.stalls.begin(), cost.stalls.end(),
                                  [](const PortStall& a, const PortStall& b) { return a.cycles < b.cycles; });
  return longest == cost.stalls.end() ? "compute" : core.memories[longest->memory].name;
}

UnitCost by_mapping(const LayerCost& cost, const Core& core) {
  UnitCost unit;
  unit.rule = UnitCost::Rule::mapping;
  unit.cycles = cost.cycles();
  unit.energy = cost.energy;
  unit.utilisation = cost.utilisation();
  unit.bound_by = bound_by(cost, core);
  unit.levels.push_back({"compute", cost.mac_energy});
  std::map<int, double> energy;
  for (const OperandCost& operand : cost.operands)
    for (const LevelCost& level : operand.levels) energy[level.memory] += level.energy;
  for (const auto& [memory, pj] : energy) add_energy(unit.levels, core.memories[memory].name, pj);
  return unit;
}

UnitCost by_vector_rule(const Core& core, const Work& work, const Traffic& traffic) {
  VectorCost cost = vector_cost(core, static_cast<double>(work.operations), 8 * static_cast<double>(traffic.read),
                                8 * static_cast<double>(traffic.written));
  UnitCost unit;
  unit.rule = UnitCost::Rule::vector;
  unit.cycles = cost.cycles();
  unit.energy = cost.energy();
  unit.bound_by = cost.traffic_cycles > cost.compute_cycles ? cost.stream->name : "compute";
  unit.levels = {{"compute", cost.compute_energy}};
  for (const VectorCost::Passed& passed : cost.passed)
    unit.levels.push_back({core.memories[passed.memory].name, passed.energy});
  return unit;
}

UnitCost by_bound(const Bound& bound) {
  UnitCost unit;
  unit.rule = UnitCost::Rule::bound;
  unit.cycles = bound.cycles();
  unit.energy = bound.energy();
  unit.bound_by = bound.traffic_cycles > bound.compute_cycles ? "traffic" : "compute";
  unit.levels = {{"compute", bound.compute_energy}, {"traffic", bound.traffic_energy}};
  return unit;
}

bool pools(const Unit& unit) {
  return unit.op.find("Pool") != std::string::npos;  // MaxPool, GlobalAveragePool, ... and their gradients
}

// The core that a unit which is no contraction runs on.
const Core& vector_core(const Accelerator& accelerator, const Unit& unit, const Core& otherwise) {
  auto of_type = [&](std::initializer_list<const char*> types) -> const Core* {
    for (const char* type : types)
      for (const Core& core : accelerator.cores)
        if (core.type == type && core.pes() > 0) return &core;
    return nullptr;
  };
  const Core* pooling = pools(unit) ? of_type({"pooling"}) : nullptr;
  const Core* simd = of_type({"simd", "vector"});
  return pooling ? *pooling : simd ? *simd : otherwise;
}

bool has_problem(const Refusal& refusal, const char* code) {
  return std::any_of(refusal.problems().begin(), refusal.problems().end(),
                     [&](const Diagnostic& d) { return d.code == code; });
}

}  // namespace

const char* name(UnitCost::Rule rule) {
  constexpr const char* kNames[] = {"nothing", "mapping", "vector", "bound"};
  return kNames[static_cast<size_t>(rule)];
}

std::optional<size_t> only_compute_core(const Accelerator& accelerator) {
  std::optional<size_t> found;
  for (size_t i = 0; i < accelerator.cores.size(); ++i) {
    if (!accelerator.cores[i].runs_contractions) continue;
    if (found) return {};
    found = i;
  }
  return found;
}

void CostSum::add(const UnitCost& unit, const Work& work) {
  double times = static_cast<double>(work.times);
  cycles += unit.cycles * times;
  energy += unit.energy * times;
  for (const LevelEnergy& level : unit.levels) add_energy(levels, level.level, level.energy * times);
}

GraphCost graph_cost(const Graph& graph, const std::vector<Work>& works, const Accelerator& accelerator,
                     const Precision& precision, const MappingFile& mapping, const CostOptions& options,
                     CostCache& cache, const std::function<void(double done)>& progress) {
  GraphCost result;
  size_t compute = only_compute_core(accelerator).value();
  result.core = with_offchip(accelerator, compute);
  std::vector<Core> whole;  // cores with the memory that closes their hierarchy
  for (size_t i = 0; i < accelerator.cores.size(); ++i) whole.push_back(with_offchip(accelerator, i));
  CostOptions with_room = options;
  with_room.leave_room_above = true;

  std::map<const LayerCost*, int> index;  // the cache keeps its entries where they are
  std::vector<Diagnostic> problems, unmapped;
  auto cost_of = [&](const Layer& layer) -> const LayerCost& {
    LayerMapping fixed = mapping.of(layer);
    try {
      return cache.cost(layer, result.core, fixed, options);
    } catch (const Refusal& refusal) {
      if (!has_problem(refusal, "no-mapping") || options.leave_room_above) throw;
    }
    return cache.cost(layer, result.core, fixed, with_room);
  };
  for (size_t u = 0; u < graph.units.size(); ++u) {
    const Unit& unit = graph.units[u];
    const Work& work = works[u];
    if (progress) progress(static_cast<double>(u) / static_cast<double>(graph.units.size()));
    UnitCost cost;
    if (std::optional<Layer> layer = work.view ? std::nullopt : layer_of(graph, unit, precision)) {
      try {
        const LayerCost& found = cost_of(*layer);
        cost = by_mapping(found, result.core);
        auto [at, fresh] = index.emplace(&found, static_cast<int>(result.mappings.size()));
        if (fresh) result.mappings.push_back({*layer, found});
        cost.mapping = at->second;
      } catch (const Refusal& refusal) {
        std::vector<Diagnostic>& list = has_problem(refusal, "bad-mapping") ? problems : unmapped;
        list.insert(list.end(), refusal.problems().begin(), refusal.problems().end());
        cost = by_bound(unit_bound(graph, unit, work, accelerator, precision));
      }
    } else if (!work.view) {
      const Core& runs = vector_core(accelerator, unit, accelerator.cores[compute]);
      cost = by_vector_rule(whole[&runs - accelerator.cores.data()], work, unit_traffic(graph, work, precision));
    }
    result.units.push_back(std::move(cost));
  }
  if (!problems.empty()) throw Refusal(std::move(problems));
  if (!unmapped.empty())
    result.warnings.push_back({"no-mapping",
                               std::to_string(unmapped.size()) + (unmapped.size() == 1 ? " layer is" : " layers are") +
                                   " counted with lower bounds: " + unmapped.front().message,
                               unmapped.front().node, "", "narrower operands or a larger memory"});
  return result;
}

}  // namespace monet
