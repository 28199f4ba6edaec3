#include "engine/report/fusion_report.h"

#include <cmath>

#include "engine/report/format.h"
#include "engine/report/json_object.h"
#include "engine/report/report.h"

namespace monet {

using Json = nlohmann::ordered_json;

Json fusion_strategy_json(const FusionStrategy& s, FusionObjective objective) {
  Json groups = Json::array();
  size_t largest = 1;
  for (const FusedGroup& group : s.plan.groups) {
    largest = std::max(largest, group.units.size());
    if (group.units.size() > 1)
      groups.push_back(object({{"units", group.units}, {"tiles", group.tiles}, {"axis", name(group.axis)}}));
  }
  Json solver = nullptr, schedule = nullptr, refused = nullptr;
  if (s.cover) {
    solver = object({{"status", name(s.cover->status())},
                     {"value", s.cover->value()},
                     {"bound", s.cover->bound()},
                     {"gap", s.cover->gap()},
                     {"columns", s.cover->columns()},
                     {"dominated", s.cover->dominated()},
                     {"solves", s.cover->solves()},
                     {"cuts", s.cover->cuts()},
                     {"nodes", s.cover->nodes()}});
  }
  if (s.schedule) {
    const Json& all = *s.schedule;
    schedule = object(
        {{"latency_cycles", all["latency_cycles"]},
         {"energy_pj", all["energy_pj"]},
         {"offchip_bytes", all["offchip"]["read_bytes"].get<double>() + all["offchip"]["written_bytes"].get<double>()},
         {"onchip_peak_bytes", all["onchip"]["peak"]}});
  }
  if (s.refused) refused = to_json(*s.refused);
  return object({{"name", s.name},
                 {"max_group", s.most_units},
                 {"objective", s.name == "greedy" || s.name == "solver" ? Json(name(objective)) : Json(nullptr)},
                 {"groups", s.plan.cost.groups},
                 {"largest_group", largest},
                 {"estimate", object({{"latency_cycles", s.plan.cost.cycles},
                                      {"energy_pj", s.plan.cost.energy},
                                      {"offchip_bytes", (s.plan.cost.offchip_bits + 7) / 8}})},
                 {"schedule", std::move(schedule)},
                 {"refused", std::move(refused)},
                 {"solver", std::move(solver)},
                 {"plan", object({{"groups", std::move(groups)}})}});
}

Json candidates_json(const CandidateCosts& c) {
  return object({{"found", c.all().size() + c.without_way()},
                 {"grown", c.grown()},
                 {"complete", c.complete()},
                 {"too_large_for_memory", c.without_way()},
                 {"scheduled", c.scheduled()}});
}

std::string fusion_table(const Json& report) {
  std::string out = padded("strategy", 22, true) + padded("groups", 8) + padded("cycles", 16) + padded("energy", 12) +
                    padded("off-chip", 12) + padded("estimated", 16) + padded("gap", 10) + "\n";
  for (const Json& s : report["strategies"]) {
    std::string called = s["name"].get<std::string>();
    if (called == "solver") called += "(" + (s["max_group"] == 0 ? "any" : s["max_group"].dump()) + ")";
    out += padded(called, 22, true) + padded(s["groups"].dump(), 8);
    if (s["schedule"].is_null()) {
      out += "  " + s["refused"]["message"].get<std::string>() + "\n";
      continue;
    }
    const Json& schedule = s["schedule"];
    out += padded(grouped(std::llround(schedule["latency_cycles"].get<double>())), 16) +
           padded(energy_text(schedule["energy_pj"].get<double>()), 12) +
           padded(scaled(schedule["offchip_bytes"].get<double>(), "B"), 12) +
           padded(grouped(s["estimate"]["latency_cycles"].get<int64_t>()), 16);
    if (!s["solver"].is_null()) {
      double gap = s["solver"]["gap"].get<double>();
      out += padded(s["solver"]["status"] == "optimal" && gap == 0 ? "optimal" : formatted("%.2f%%", 100 * gap), 10);
    }
    out += "\n";
  }
  return out;
}

}  // namespace monet
