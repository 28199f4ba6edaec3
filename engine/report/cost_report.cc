#include "engine/report/cost_report.h"

#include <algorithm>

#include "engine/report/format.h"
#include "engine/report/json_object.h"

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

Json loops_json(const Layer& layer, const std::vector<TemporalLoop>& loops) {
  Json list = Json::array();
  for (const TemporalLoop& loop : loops)
    list.push_back(object({{"loop", layer.loops[loop.loop].dim}, {"size", loop.size}}));
  return list;
}

Json unrollings_json(const Layer& layer, const Core& core, const std::vector<Unrolling>& unrollings) {
  Json list = Json::array();
  for (const Unrolling& u : unrollings)
    list.push_back(
        object({{"loop", layer.loops[u.loop].dim}, {"dimension", core.dimensions[u.dimension]}, {"units", u.units()}}));
  return list;
}

Json operand_json(const Layer& layer, const Core& core, const OperandCost& operand) {
  Json levels = Json::array();
  for (const LevelCost& level : operand.levels)
    levels.push_back(object({{"memory", core.memories[level.memory].name},
                             {"spatial", unrollings_json(layer, core, level.spatial)},
                             {"temporal", loops_json(layer, level.temporal)},
                             {"bits", level.bits},
                             {"double_buffered", level.double_buffered},
                             {"reads_to_low", level.reads_to_low},
                             {"writes_by_low", level.writes_by_low},
                             {"reads_to_high", level.reads_to_high},
                             {"writes_by_high", level.writes_by_high},
                             {"energy_pj", level.energy}}));
  auto described = std::find_if(layer.operands.begin(), layer.operands.end(),
                                [&](const LayerOperand& o) { return o.name == operand.name; });
  return object({{"name", operand.name},
                 {"memory_operand", operand.memory_operand},
                 {"bits", described == layer.operands.end() ? 0 : described->bits},
                 {"levels", std::move(levels)}});
}

}  // namespace

Json mapping_json(const Layer& layer, const Core& core, const LayerCost& cost) {
  Json loops = Json::array(), operands = Json::array(), stalls = Json::array();
  for (const Loop& loop : layer.loops) loops.push_back(object({{"loop", loop.dim}, {"size", loop.size}}));
  for (const PortStall& stall : cost.stalls)
    stalls.push_back(
        object({{"memory", core.memories[stall.memory].name}, {"port", stall.port}, {"cycles", stall.cycles}}));
  for (const OperandCost& operand : cost.operands) operands.push_back(operand_json(layer, core, operand));
  return object({{"loops", std::move(loops)},
                 {"macs", layer.macs()},
                 {"cycles", cost.cycles()},
                 {"ideal_cycles", cost.ideal_cycles},
                 {"temporal_cycles", cost.temporal_cycles},
                 {"stall", cost.stall},
                 {"stalls", std::move(stalls)},
                 {"onload", cost.onload},
                 {"offload", cost.offload},
                 {"utilisation", cost.utilisation()},
                 {"spatial_utilisation", cost.spatial_utilisation()},
                 {"energy_pj", cost.energy},
                 {"mac_energy_pj", cost.mac_energy},
                 {"orders", cost.orders},
                 {"spatial", unrollings_json(layer, core, cost.spatial.unrollings)},
                 {"order", loops_json(layer, cost.order)},
                 {"operands", std::move(operands)}});
}

namespace {

Json layer_json(const CostedLayer& costed, const Core& core) {
  const Layer& layer = costed.layer;
  Json json = object({{"id", layer.id}, {"name", layer.name}, {"op", layer.op}, {"role", costed.role}});
  json.update(mapping_json(layer, core, costed.cost));
  return json;
}

// The loop nest, outermost first: temporal loops with the memories whose operands change outside them, then the array.
void add_nest(const Json& layer, std::string& out) {
  std::string indent = "    ";
  const Json& order = layer["order"];
  for (size_t i = order.size(); i-- > 0;) {
    std::string held;
    for (const Json& operand : layer["operands"]) {
      size_t end = 0;
      for (const Json& level : operand["levels"]) {
        end += level["temporal"].size();
        if (end == i + 1 && !level["temporal"].empty())
          held += (held.empty() ? "" : ", ") + operand["name"].get<std::string>() + " in " +
                  level["memory"].get<std::string>();
      }
    }
    std::string line = indent + "for " + order[i]["loop"].get<std::string>() + " in " + grouped(order[i]["size"]);
    out += (held.empty() ? line : padded(line, 40, true) + "  " + held) + "\n";
    indent += "  ";
  }
  for (const Json& u : layer["spatial"])
    out += indent + "parallel for " + u["loop"].get<std::string>() + " in " + formatted("%g", u["units"]) + " over " +
           u["dimension"].get<std::string>() + "\n";
}

}  // namespace

nlohmann::ordered_json cost_report(const std::vector<CostedLayer>& layers, const Core& core) {
  Json list = Json::array();
  double cycles = 0, energy = 0, ideal = 0;
  int64_t macs = 0, orders = 0;
  for (const CostedLayer& costed : layers) {
    list.push_back(layer_json(costed, core));
    cycles += costed.cost.cycles();
    ideal += costed.cost.ideal_cycles;
    energy += costed.cost.energy;
    macs += costed.layer.macs();
    orders += costed.cost.orders;
  }
  return object({{"schema", "monet.cost/1"},
                 {"core", object({{"id", core.id}, {"name", core.name}, {"pes", core.pes()}})},
                 {"totals", object({{"layers", layers.size()},
                                    {"macs", macs},
                                    {"cycles", cycles},
                                    {"utilisation", cycles > 0 ? ideal / cycles : 0},
                                    {"energy_pj", energy},
                                    {"orders", orders}})},
                 {"layers", std::move(list)}});
}

std::string cost_table(const nlohmann::ordered_json& report, bool mappings) {
  const Json& totals = report["totals"];
  std::string out = "On core " + report["core"]["name"].get<std::string>() + ", " + grouped(report["core"]["pes"]) +
                    " PEs: " + grouped(totals["layers"]) + " layers\n";
  size_t width = 24;
  for (const Json& layer : report["layers"])
    width = std::min<size_t>(std::max(width, layer["name"].get<std::string>().size()), 48);
  out += padded("layer", width, true) + padded("role", 17, true) + padded("MACs", 15) + padded("cycles", 15) +
         padded("stall", 12) + padded("use", 7) + padded("energy", 11) + "\n";
  for (const Json& layer : report["layers"]) {
    out += padded(shortened(layer["name"], width), width, true) + padded(layer["role"], 17, true) +
           padded(grouped(layer["macs"]), 15) + padded(formatted("%.1f", layer["cycles"]), 15) +
           padded(formatted("%.0f", layer["stall"]), 12) +
           padded(formatted("%.1f%%", 100 * layer["utilisation"].get<double>()), 7) +
           padded(energy_text(layer["energy_pj"]), 11) + "\n";
    if (mappings) add_nest(layer, out);
  }
  out += padded("total", width, true) + padded("", 17) + padded(grouped(totals["macs"]), 15) +
         padded(formatted("%.1f", totals["cycles"]), 15) + padded("", 12) +
         padded(formatted("%.1f%%", 100 * totals["utilisation"].get<double>()), 7) +
         padded(energy_text(totals["energy_pj"]), 11) + "\n";
  return out;
}

}  // namespace monet
