// Costs of layers on one core, alone: what `monet cost` writes (monet.cost/1).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/analysis/session.h"
#include "engine/analysis/settings.h"
#include "engine/report/cost_report.h"

namespace monet {

// The contractions of the model's forward graph, or of its training graph: of each the layer and its role, without
// cost. Throws Refusal as Session::graph does.
std::vector<CostedLayer> layers_of_model(Session& session, const Settings& settings, bool training);
// Those of a workload file's JSON (workload/layer.h). Throws Refusal.
std::vector<CostedLayer> layers_of_workload(const std::string& json);

// monet.cost/1: each layer on the core with this id (nothing: the first that runs contractions) of the accelerator that
// the settings name, off-chip memory included. Throws Refusal with the problems of all layers.
nlohmann::ordered_json cost_layers_report(std::vector<CostedLayer> layers, const Settings& settings,
                                          const FileResolver& hardware_files, std::optional<int> core);

}  // namespace monet
