#include "engine/cost/layer_cost.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "engine/cost/evaluator.h"

namespace monet {

namespace {

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
  Core core = accelerator.cores[index];
  if (accelerator.offchip_core < 0 || static_cast<size_t>(accelerator.offchip_core) == index) return core;
  for (Memory memory : accelerator.cores[accelerator.offchip_core].memories) {
    memory.served_dimensions = core.dimensions;  // one off-chip memory serves every PE
    core.memories.push_back(std::move(memory));
  }
  return core;
}

}  // namespace monet
