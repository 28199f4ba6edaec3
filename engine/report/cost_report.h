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

// {"schema": "monet.cost/1", "core", "totals", "layers": [...]}. Each layer explains itself: its loops, its mapping as
// spatial and temporal loops of every operand and memory level, accesses and energy there, stall, onload, offload.
// Cycles of the totals are those of the layers one after the other.
nlohmann::ordered_json cost_report(const std::vector<CostedLayer>& layers, const Core& core);

// The report as a table for a terminal; `mappings`: with the loop nest of every layer, levels of memory beside it.
std::string cost_table(const nlohmann::ordered_json& report, bool mappings);

}  // namespace monet
