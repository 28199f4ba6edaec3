#include "engine/analysis/layer_costs.h"

#include <algorithm>
#include <utility>

namespace monet {

namespace {

size_t choose_core(const Accelerator& accelerator, std::optional<int> id) {
  std::string ids;
  for (size_t i = 0; i < accelerator.cores.size(); ++i) {
    const Core& core = accelerator.cores[i];
    if (id ? core.id == *id : core.runs_contractions) return i;
    if (core.pes() > 0) ids += (ids.empty() ? "" : ", ") + std::to_string(core.id);
  }
  throw Refusal(
      {"no-core",
       accelerator.name + (id ? " has no core " + std::to_string(*id) : " has no core that runs contractions"), "", "",
       "cores with PEs: " + (ids.empty() ? "none" : ids)});
}

}  // namespace

std::vector<CostedLayer> layers_of_model(Session& session, const Settings& settings, bool training) {
  std::shared_ptr<const Graph> graph = session.graph(settings, training);
  std::vector<CostedLayer> layers;
  for (size_t u = 0; u < graph->units.size(); ++u) {
    std::optional<Layer> layer = layer_of(*graph, graph->units[u], settings.widths());
    if (!layer) continue;
    layer->id = static_cast<int64_t>(u);
    layers.push_back({std::move(*layer), name(graph->units[u].role), {}});
  }
  return layers;
}

std::vector<CostedLayer> layers_of_workload(const std::string& json) {
  std::vector<CostedLayer> layers;
  for (Layer& layer : parse_workload(json).layers) layers.push_back({std::move(layer), "", {}});
  return layers;
}

nlohmann::ordered_json cost_layers_report(std::vector<CostedLayer> layers, const Settings& settings,
                                          const FileResolver& hardware_files, std::optional<int> core) {
  std::optional<Accelerator> accelerator = accelerator_of(settings, hardware_files);
  if (!accelerator)
    throw Refusal({"no-hardware", "costs need a hardware", "hardware", "", "monet hardware lists some"});
  Core whole = with_offchip(*accelerator, choose_core(*accelerator, core));
  MappingFile mapping = mapping_of(settings);
  CostCache cache;
  std::vector<Diagnostic> problems;
  for (CostedLayer& costed : layers) {
    try {
      costed.cost = cache.cost(costed.layer, whole, mapping.of(costed.layer), settings.cost);
    } catch (const Refusal& refused) {
      for (const Diagnostic& problem : refused.problems())
        if (std::none_of(problems.begin(), problems.end(),
                         [&](const Diagnostic& other) { return other.message == problem.message; }))
          problems.push_back(problem);
    }
  }
  if (!problems.empty()) throw Refusal(std::move(problems));
  return cost_report(layers, whole);
}

}  // namespace monet
