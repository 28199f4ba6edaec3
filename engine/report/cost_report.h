// Costs of layers on a core -> monet.cost/1: what `monet cost` writes. Units: cycles, pJ, bits.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/cost/layer_cost.h"
#include "engine/hardware/accelerator.h"
#include "engine/workload/layer.h"

namespace monet {

struct CostedLayer {
  Layer layer;
  std::string role;  // of a graph's unit, "weight_gradient"; "" for layers of a workload file
  LayerCost cost;
};

// How a layer is mapped and what that costs: its loops, spatial and temporal loops of every operand and memory level,
// accesses and energy there, stall by port, onload, offload. Part of both reports.
nlohmann::ordered_json mapping_json(const Layer& layer, const Core& core, const LayerCost& cost);

// {"schema": "monet.cost/1", "core", "totals", "layers": [...]} (report.schema.json, $defs/cost_report): of each layer
// id, name, operator, role, and its mapping_json. Cycles of the totals are those of the layers one after the other.
nlohmann::ordered_json cost_report(const std::vector<CostedLayer>& layers, const Core& core);

// The report as a table for a terminal; `mappings`: with the loop nest of every layer, levels of memory beside it.
std::string cost_table(const nlohmann::ordered_json& report, bool mappings);

}  // namespace monet
