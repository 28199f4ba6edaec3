// What came of searching for fused groups, strategy by strategy, as JSON (monet.fusion/1) and as a table.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/fusion/cover.h"
#include "engine/report/schedule_report.h"

namespace monet {

struct FusionStrategy {
  std::string name;    // none | manual | greedy | solver
  int most_units = 0;  // of a group; 0: any number
  FusionPlan plan;
  // Of solver.
  const FusionCover* cover = nullptr;
  // Of the plan; or why it has none.
  std::optional<nlohmann::ordered_json> schedule;  // schedule_json
  std::optional<Diagnostic> refused;
};

nlohmann::ordered_json fusion_strategy_json(const FusionStrategy& strategy, FusionObjective objective);
nlohmann::ordered_json candidates_json(const CandidateCosts& candidates);

// The strategies of a monet.fusion/1 side by side.
std::string fusion_table(const nlohmann::ordered_json& report);

}  // namespace monet
