#include "engine/cost/layer_cost.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "engine/cost/evaluator.h"
#include "engine/ir/saturating.h"

namespace monet {

namespace {

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

std::map<std::string, std::string> links_of(const Layer& layer, const LayerMapping& mapping) {
  std::map<std::string, std::string> links = default_links(layer);
  for (const auto& [operand, memory_operand] : mapping.links) links[operand] = memory_operand;
  return links;
}

const Dataflow& dataflow_of(const LayerMapping& mapping, const Core& core) {
  return mapping.spatial.empty() ? core.dataflows : mapping.spatial;
}

// What is minimised, then what decides between equals.
std::pair<double, double> figure(Objective objective, double cycles, double energy) {
  switch (objective) {
    case Objective::latency:
      return {cycles, energy};
    case Objective::energy:
      return {energy, cycles};
    case Objective::edp:
      break;
  }
  return {cycles * energy, cycles};
}

struct Best {
  std::pair<double, double> figure = {std::numeric_limits<double>::infinity(), 0};
  std::optional<LayerCost> cost;
  int64_t orders = 0;
  int overflowing = 0;  // a memory that did not hold its operands, if there is no cost
};

// Tries every order under one spatial mapping; whether any fits.
bool search(const Layer& layer, const Core& core, const LayerMapping& mapping, const CostOptions& options,
            const std::map<std::string, std::string>& links, const SpatialMapping& spatial, Best& best) {
  LoopOrders orders(layer, spatial.temporal, mapping.temporal_ordering, options.factor_limit);
  MappingEvaluator evaluator(layer, core, links, spatial, orders.loops(), options);
  bool may_fit = evaluator.may_fit();
  best.overflowing = evaluator.overflowing();
  if (!may_fit) return false;
  bool fits = false, better = false;
  std::vector<int> kept;
  do {
    ++best.orders;
    if (!evaluator.evaluate(orders.order())) {
      best.overflowing = evaluator.overflowing();
      continue;
    }
    fits = true;
    double cycles = evaluator.cycles();
    if (options.parallel_tiles > 0) {
      double asked = evaluator.top_load(options.parallel_tiles) * cycles;
      if (asked >= best.figure.first) continue;
      best.figure = {asked, 0};
      better = true;
      kept = orders.order();
      continue;
    }
    // Energy is half the work and decides only between equals.
    if (options.objective == Objective::latency && cycles > best.figure.first) continue;
    std::pair<double, double> now = figure(options.objective, cycles, evaluator.energy());
    if (now >= best.figure) continue;
    best.figure = now;
    better = true;
    kept = orders.order();
  } while (orders.next());
  if (better) {
    evaluator.evaluate(kept);
    best.cost = evaluator.explain();
  }
  return fits;
}

}  // namespace

const char* name(Objective objective) {
  constexpr const char* kNames[] = {"latency", "energy", "edp"};
  return kNames[static_cast<size_t>(objective)];
}

LayerCost cost_layer(const Layer& layer, const Core& core, const LayerMapping& mapping, const CostOptions& options) {
  std::map<std::string, std::string> links = links_of(layer, mapping);
  const Dataflow& dataflow = dataflow_of(mapping, core);
  Best best;
  if (!dataflow.empty()) {
    search(layer, core, mapping, options, links, resolve(dataflow, layer, core), best);
  } else {
    int tried = 0;
    for (const SpatialMapping& spatial : generate_spatial(layer, core)) {
      tried += search(layer, core, mapping, options, links, spatial, best);
      if (tried >= options.spatial_candidates) break;
    }
  }
  if (!best.cost)
    throw Refusal(
        {"no-mapping",
         "layer " + layer.name + " fits core " + core.name + " in no order of its loops: memory " +
             core.memories[best.overflowing].name + " is too small",
         layer.name, "",
         options.leave_room_above
             ? "a memory must hold one tile of each of its operands, and what all instances of the level below hold"
             : "a memory must hold what all instances of the level below hold; the option to leave room above "
               "(leave_room_above) sees to that where single tiles fit"});
  best.cost->orders = best.orders;
  return std::move(*best.cost);
}

LayerCost cost_order(const Layer& layer, const Core& core, const LayerMapping& mapping,
                     const std::vector<TemporalLoop>& order, const CostOptions& options) {
  std::map<std::string, std::string> links = links_of(layer, mapping);
  SpatialMapping spatial = resolve(dataflow_of(mapping, core), layer, core);
  std::vector<int64_t> left = spatial.temporal;
  for (const TemporalLoop& loop : order)
    left[loop.loop] = left[loop.loop] % loop.size == 0 ? left[loop.loop] / loop.size : 0;
  if (std::any_of(left.begin(), left.end(), [](int64_t n) { return n != 1; }))
    throw Refusal(
        {"bad-mapping", "the order of layer " + layer.name + " does not make up its iterations", layer.name, "", ""});
  MappingEvaluator evaluator(layer, core, links, spatial, order, options);
  std::vector<int> indexes;
  for (size_t i = 0; i < order.size(); ++i) indexes.push_back(static_cast<int>(i));
  if (!evaluator.evaluate(indexes))
    throw Refusal({"no-mapping", "layer " + layer.name + " does not fit core " + core.name + " in this order",
                   layer.name, "", ""});
  LayerCost cost = evaluator.explain();
  cost.orders = 1;
  return cost;
}

Core with_offchip(const Accelerator& accelerator, size_t index) {
  return with_offchip(accelerator, index, {"I1", "I2", "O"});
}

Core with_offchip(const Accelerator& accelerator, size_t index, const std::vector<std::string>& memory_operands) {
  Core core = accelerator.cores[index];
  if (accelerator.offchip_core < 0 || static_cast<size_t>(accelerator.offchip_core) == index) return core;
  for (Memory memory : accelerator.cores[accelerator.offchip_core].memories) {
    memory.served_dimensions = core.dimensions;  // one off-chip memory serves every PE
    auto stays = [&](const std::string& operand) { return !contains(memory_operands, operand); };
    memory.operands.erase(std::remove_if(memory.operands.begin(), memory.operands.end(), stays), memory.operands.end());
    for (Port& port : memory.ports)
      port.allocation.erase(std::remove_if(port.allocation.begin(), port.allocation.end(),
                                           [&](const auto& entry) { return stays(entry.first); }),
                            port.allocation.end());
    core.memories.push_back(std::move(memory));
  }
  return core;
}

std::vector<std::string> operands_offchip(const Layer& layer, const Core& core,
                                          const std::map<std::string, std::string>& links) {
  struct Held {
    int64_t bits;
    std::string operand;
    int64_t lowest;  // bits that all instances of its lowest memory hold
  };
  std::vector<std::string> off;
  for (size_t m = core.memories.size(); m-- > 0;) {
    // The operands that have their highest memory here.
    std::vector<Held> held;
    for (const LayerOperand& operand : layer.operands) {
      const std::string& at = links.at(operand.name);
      bool highest = contains(core.memories[m].operands, at);
      for (size_t above = m + 1; above < core.memories.size(); ++above)
        highest = highest && !contains(core.memories[above].operands, at);
      if (!highest) continue;
      size_t lowest = 0;
      while (!contains(core.memories[lowest].operands, at)) ++lowest;
      held.push_back({saturating_multiply(touched_elements(layer, operand), operand.bits), at,
                      saturating_multiply(core.memories[lowest].size, core.instances(core.memories[lowest]))});
    }
    std::stable_sort(held.begin(), held.end(), [](const Held& a, const Held& b) { return a.bits < b.bits; });
    size_t kept = held.size();
    auto sum = [&](size_t begin, size_t end, int64_t Held::*of) {
      int64_t total = 0;
      for (size_t i = begin; i < end; ++i) total = saturating_add(total, held[i].*of);
      return total;
    };
    while (kept > 0 && sum(0, kept, &Held::bits) > core.memories[m].size) --kept;
    if (kept < held.size())
      while (kept > 0 && core.memories[m].size - sum(0, kept, &Held::bits) < sum(kept, held.size(), &Held::lowest))
        --kept;
    for (size_t i = kept; i < held.size(); ++i) off.push_back(held[i].operand);
  }
  std::sort(off.begin(), off.end());
  return off;
}

}  // namespace monet
