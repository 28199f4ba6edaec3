#include "engine/report/schedule_report.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "engine/report/format.h"
#include "engine/report/json_object.h"
#include "engine/report/report.h"

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

constexpr Phase kAllPhases[] = {Phase::forward, Phase::loss, Phase::backward, Phase::optimizer, Phase::recompute};
// A chart of a footprint has at most so many points; those left out lie below the ones kept.
constexpr size_t kMaxPoints = 400;

double times(const ScheduledGraph& g, UnitId u) { return static_cast<double>(g.planner->works()[u].times); }

Json energy_json(const Energy& energy) {
  Json json;
  for (int t = 0; t < kEnergyTerms; ++t) json[name(static_cast<EnergyTerm>(t))] = energy[t];
  return json;
}

const char* bound_by(const UnitRun& run) {
  const Waits& w = run.waits;
  const std::pair<double, const char*> all[] = {
      {w.compute, "compute"}, {w.memory, "memory"}, {w.offchip, "off-chip"}, {w.link, "link"}, {w.space, "space"}};
  const char* most = "compute";
  double value = -1;
  for (const auto& [cycles, what] : all)
    if (cycles > value) {
      value = cycles;
      most = what;
    }
  return most;
}

// At most kMaxPoints points: of each stretch of time the one that holds most.
std::vector<FootprintPoint> thinned(const std::vector<FootprintPoint>& points) {
  if (points.size() <= kMaxPoints) return points;
  std::vector<FootprintPoint> kept;
  size_t each = (points.size() + kMaxPoints - 1) / kMaxPoints;
  for (size_t i = 0; i < points.size(); i += each) {
    size_t most = i;
    for (size_t k = i; k < std::min(i + each, points.size()); ++k)
      if (total(points[k].bytes) > total(points[most].bytes)) most = k;
    kept.push_back(points[most]);
  }
  return kept;
}

Json footprint_json(const std::vector<FootprintPoint>& all) {
  std::vector<FootprintPoint> points = thinned(all);
  Json json;
  std::vector<int64_t> column;
  for (const FootprintPoint& p : points) column.push_back(p.time);
  json["cycle"] = column;
  int64_t peak = 0;
  for (const FootprintPoint& p : all) peak = std::max(peak, total(p.bytes));
  for (int c = 0; c < kMemoryCategories; ++c) {
    column.clear();
    bool any = false;
    for (const FootprintPoint& p : points) {
      column.push_back(p.bytes[c]);
      any = any || p.bytes[c] != 0;
    }
    if (any) json[name(static_cast<MemoryCategory>(c))] = column;
  }
  return object({{"peak", peak}, {"timeline", std::move(json)}});
}

}  // namespace

double latency_cycles(const ScheduledGraph& g) {
  const Schedule& s = *g.schedule;
  int64_t again = 0;  // what every micro-batch runs
  for (size_t p = 0; p < kPhases; ++p)
    if (static_cast<Phase>(p) != Phase::optimizer) again = std::max(again, s.phase_end[p]);
  return static_cast<double>(s.latency) +
         static_cast<double>(g.planner->graph().micro_batches - 1) * static_cast<double>(again);
}

Json schedule_json(const ScheduledGraph& g) {
  const Graph& graph = g.planner->graph();
  const Accelerator& accelerator = g.planner->accelerator();
  const Schedule& s = *g.schedule;
  double latency = latency_cycles(g);

  Energy sum{};
  std::array<Energy, kPhases> by_phase{};
  std::array<double, kPhases> read{}, written{};
  double read_bits = 0, written_bits = 0;
  for (UnitId u = 0; u < static_cast<UnitId>(graph.units.size()); ++u) {
    auto p = static_cast<size_t>(graph.units[u].phase);
    for (int t = 0; t < kEnergyTerms; ++t) {
      double pj = s.units[u].energy[t] * times(g, u);
      sum[t] += pj;
      by_phase[p][t] += pj;
    }
    read[p] += static_cast<double>(s.units[u].read_bits) * times(g, u);
    written[p] += static_cast<double>(s.units[u].written_bits) * times(g, u);
  }
  // A phase lasts from the end of the one before to its own last unit's end.
  Json phases = Json::object();
  int64_t before = 0;
  for (Phase phase : {Phase::forward, Phase::loss, Phase::recompute, Phase::backward, Phase::optimizer}) {
    auto p = static_cast<size_t>(phase);
    read_bits += read[p];
    written_bits += written[p];
    if (s.phase_end[p] == 0) continue;
    bool last = phase == Phase::optimizer || graph.micro_batches == 1;
    int64_t end = std::max(before, s.phase_end[p]);
    double repeats = last ? 1.0 : static_cast<double>(graph.micro_batches);
    phases[name(phase)] = object({{"latency_cycles", static_cast<double>(end - before) * repeats},
                                  {"energy_pj", total(by_phase[p])},
                                  {"energy", energy_json(by_phase[p])},
                                  {"offchip_bytes", std::ceil((read[p] + written[p]) / 8)}});
    before = end;
  }

  Json causes = Json::object();
  for (int c = 0; c < static_cast<int>(s.traffic.size()); ++c)
    if (s.traffic[c] > 0) causes[name(static_cast<Cause>(c))] = (s.traffic[c] + 7) / 8;

  Json cores = Json::array(), links = Json::array(), stores = Json::array();
  auto share = [&](int64_t busy) {
    return s.latency > 0 ? static_cast<double>(busy) / static_cast<double>(s.latency) : 0.0;
  };
  for (size_t c = 0; c < accelerator.cores.size(); ++c) {
    if (accelerator.cores[c].pes() == 0) continue;
    cores.push_back(object({{"id", accelerator.cores[c].id},
                            {"name", accelerator.cores[c].name},
                            {"busy_cycles", s.core_busy[c]},
                            {"utilisation", share(s.core_busy[c])}}));
  }
  for (size_t l = 0; l < g.planner->interconnect().links().size(); ++l) {
    if (s.link_busy[l] == 0) continue;
    const Link& link = g.planner->interconnect().links()[l];
    links.push_back(object({{"name", link.name},
                            {"bits_per_cycle", link.bandwidth},
                            {"busy_cycles", s.link_busy[l]},
                            {"utilisation", share(s.link_busy[l])}}));
  }
  for (size_t m = 0; m + 1 < g.planner->stores().all().size(); ++m) {
    const StoreInfo& info = g.planner->stores().all()[m];
    stores.push_back(object(
        {{"name", info.name}, {"capacity_bytes", info.capacity / 8}, {"peak_bytes", (s.store_peak[m] + 7) / 8}}));
  }

  Json units = Json::array();
  for (UnitId u = 0; u < static_cast<UnitId>(graph.units.size()); ++u) {
    const UnitRun& run = s.units[u];
    if (run.start < 0) continue;
    const Placement& placement = g.program->placements[u];
    const UnitParts& parts = g.planner->parts(u);
    Json on = Json::array();
    for (int32_t core : placement.cores) on.push_back(accelerator.cores[core].id);
    const Unit& unit = graph.units[u];
    units.push_back(
        object({{"id", u},
                {"name", unit_name(graph, unit)},
                {"op", unit.op},
                {"phase", name(unit.phase)},
                {"role", name(unit.role)},
                {"start", run.start},
                {"end", run.end},
                {"busy_cycles", run.busy},
                {"cores", std::move(on)},
                {"split", placement.split == kNone ? Json(nullptr) : Json(name(parts.axes[placement.split].kind))},
                {"tiles", placement.tiles},
                {"bound_by", bound_by(run)},
                {"memory", run.memory},
                {"waits", object({{"compute", run.waits.compute},
                                  {"memory", run.waits.memory},
                                  {"offchip", run.waits.offchip},
                                  {"link", run.waits.link},
                                  {"space", run.waits.space},
                                  {"units", run.waits.units}})},
                {"energy_pj", total(run.energy)},
                {"energy", energy_json(run.energy)},
                {"offchip_bytes", (run.read_bits + run.written_bits + 7) / 8}}));
  }

  Json groups = Json::array();
  for (const FusedGroup& group : g.partition->groups)
    if (group.units.size() > 1)
      groups.push_back(object({{"units", group.units}, {"tiles", group.tiles}, {"axis", name(group.axis)}}));

  return object({{"latency_cycles", latency},
                 {"energy_pj", total(sum)},
                 {"energy", energy_json(sum)},
                 {"phases", std::move(phases)},
                 {"offchip", object({{"read_bytes", std::ceil(read_bits / 8)},
                                     {"written_bytes", std::ceil(written_bits / 8)},
                                     {"causes", std::move(causes)}})},
                 {"bounds", object({{"latency_cycles", g.bound.cycles()},
                                    {"energy_pj", g.bound.energy()},
                                    {"offchip_bytes", g.bound.traffic_bytes}})},
                 {"cores", std::move(cores)},
                 {"links", std::move(links)},
                 {"stores", std::move(stores)},
                 {"groups", std::move(groups)},
                 {"tiles", g.program->tiles.size()},
                 {"units", std::move(units)},
                 {"onchip", footprint_json(s.onchip)},
                 {"offchip_memory", footprint_json(s.offchip)}});
}

std::string chrome_trace(const ScheduledGraph& g) {
  const Graph& graph = g.planner->graph();
  const Accelerator& accelerator = g.planner->accelerator();
  const Schedule& s = *g.schedule;
  // Written by hand: tens of thousands of events of one form, where a tree of objects would take most of the time.
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  auto quoted = [](const std::string& text) { return to_bytes(Json(text)); };
  bool first = true;
  auto event = [&](const std::string& line) {
    if (!first) out += ",\n";
    first = false;
    out += line;
  };
  auto named = [&](const char* what, int pid, int tid, const std::string& called) {
    event("{\"ph\":\"M\",\"name\":\"" + std::string(what) + "\",\"pid\":" + std::to_string(pid) +
          ",\"tid\":" + std::to_string(tid) + ",\"args\":{\"name\":" + quoted(called) + "}}");
  };
  named("process_name", 1, 0, "cores");
  named("process_name", 2, 0, "links");
  named("process_name", 3, 0, "memory");
  for (size_t c = 0; c < accelerator.cores.size(); ++c)
    if (s.core_busy[c] > 0)
      named("thread_name", 1, static_cast<int>(c),
            "core " + std::to_string(accelerator.cores[c].id) + ": " + accelerator.cores[c].name);
  for (size_t l = 0; l < s.link_busy.size(); ++l)
    if (s.link_busy[l] > 0) named("thread_name", 2, static_cast<int>(l), g.planner->interconnect().links()[l].name);
  std::vector<std::string> unit_names, tensor_names(graph.tensors.size());
  for (const Unit& unit : graph.units) unit_names.push_back(quoted(unit_name(graph, unit)));
  for (const Event& e : s.events) {
    std::string line = "{\"ph\":\"X\",\"pid\":" + std::string(e.core != kNone ? "1" : "2") +
                       ",\"tid\":" + std::to_string(e.core != kNone ? e.core : e.link) +
                       ",\"ts\":" + std::to_string(e.start) + ",\"dur\":" + std::to_string(e.end - e.start);
    if (e.core != kNone) {
      const Unit& unit = graph.units[e.unit];
      line += ",\"name\":" + unit_names[e.unit] + ",\"cat\":\"" + name(unit.phase) +
              "\",\"args\":{\"layer\":" + std::to_string(e.unit) + ",\"op\":" + quoted(unit.op) + ",\"role\":\"" +
              name(unit.role) + "\",\"slot\":" + std::to_string(e.slot) + ",\"tile\":" + std::to_string(e.tile) + "}}";
    } else {
      std::string called = e.tensor == kNone ? unit_names[e.unit] : "";
      if (called.empty()) {
        std::string& known = tensor_names[e.tensor];
        if (known.empty()) known = quoted(graph.tensors[e.tensor].name);
        called = known;
      }
      line += ",\"name\":" + called + ",\"cat\":\"" + name(e.cause) +
              "\",\"args\":{\"layer\":" + std::to_string(e.unit) + ",\"bits\":" + std::to_string(e.bits) + "}}";
    }
    event(line);
  }
  auto counter = [&](const char* what, const std::vector<FootprintPoint>& points) {
    for (const FootprintPoint& point : points) {
      std::string line = "{\"ph\":\"C\",\"pid\":3,\"name\":\"" + std::string(what) +
                         "\",\"ts\":" + std::to_string(point.time) + ",\"args\":{";
      for (int c = 0; c < kMemoryCategories; ++c)
        line += std::string(c ? "," : "") + "\"" + name(static_cast<MemoryCategory>(c)) +
                "\":" + std::to_string(point.bytes[c]);
      event(line + "}}");
    }
  };
  counter("on-chip bytes", s.onchip);
  counter("off-chip bytes", s.offchip);
  return out + "\n]}\n";
}

std::string schedule_table(const Json& schedules) {
  std::string out;
  auto line = [&](const std::string& title, const std::string& text) {
    out += "  " + padded(title, 22, true) + text + "\n";
  };
  auto costs = [](const Json& of, double offchip_bytes) {
    return grouped(std::llround(of["latency_cycles"].get<double>())) + " cycles, " +
           energy_text(of["energy_pj"].get<double>()) + ", " + scaled(offchip_bytes, "B") + " off-chip";
  };
  for (const char* which : {"inference", "step"}) {
    const Json& s = schedules.at(which);
    if (s.is_null()) continue;
    out += std::string(out.empty() ? "" : "\n") + "Schedule of " + (*which == 'i' ? "inference" : "a training step") +
           "\n";
    line("in all", costs(s, s["offchip"]["read_bytes"].get<double>() + s["offchip"]["written_bytes"].get<double>()));
    line("at least", grouped(std::llround(s["bounds"]["latency_cycles"].get<double>())) + " cycles, " +
                         energy_text(s["bounds"]["energy_pj"].get<double>()) + ", " +
                         scaled(s["bounds"]["offchip_bytes"].get<double>(), "B") + " off-chip");
    for (const auto& [phase, of] : s["phases"].items())
      line("  " + phase, costs(of, of["offchip_bytes"].get<double>()));
    std::string terms;
    for (const auto& [term, pj] : s["energy"].items())
      if (pj.get<double>() > 0) terms += (terms.empty() ? "" : ", ") + term + " " + energy_text(pj.get<double>());
    line("energy", terms);
    line("on-chip peak", scaled(s["onchip"]["peak"].get<double>(), "B") + "; off-chip " +
                             scaled(s["offchip_memory"]["peak"].get<double>(), "B"));
  }
  return out;
}

}  // namespace monet
