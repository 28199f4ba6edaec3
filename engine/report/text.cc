// The report for a terminal: headline figures, memory by category, bounds by phase, the heaviest layers, warnings.
#include <algorithm>
#include <cmath>

#include "engine/report/format.h"
#include "engine/report/report.h"

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

std::string bytes_text(const Json& value) { return scaled(value.get<double>(), "B"); }

}  // namespace

std::string text_table(const Json& r) {
  std::string out;
  auto line = [&](const std::string& text) { out += text + "\n"; };
  auto row = [&](const std::string& title, const std::string& text) { line("  " + padded(title, 22, true) + text); };
  const Json& model = r["model"];
  const Json& memory = r["memory"];
  line(model["name"].get<std::string>() + ": " + grouped(model["parameters"]) + " parameters, " +
       scaled(model["forward_macs"].get<double>(), "MAC") + " forward" +
       (r["training"].is_null() ? " (forward only)"
                                : ", batch " + grouped(r["training"]["batch"]) +
                                      (r["training"]["micro_batches"] == 1
                                           ? ""
                                           : " x " + grouped(r["training"]["micro_batches"]) + " micro-batches")));
  if (!r["training"].is_null()) {
    const Json& t = r["training"];
    const Json& macs = t["macs"];
    row("training", t["optimizer"].get<std::string>() + ", " + t["loss"].get<std::string>() + " on " +
                        t["loss_output"].get<std::string>() + ", " + t["precision"].get<std::string>() + " precision");
    if (t["trained_parameters"] != model["parameters"]) row("trained parameters", grouped(t["trained_parameters"]));
    row("MACs of a step", grouped(macs["total"]) + " (forward " + grouped(macs["forward"]) + ", input gradients " +
                              grouped(macs["input_gradient"]) + ", weight gradients " +
                              grouped(macs["weight_gradient"]) + ")");
  }
  line("");
  line("Memory");
  for (const char* category : {"parameters", "master_weights", "buffers", "optimizer_state", "inputs", "gradients"})
    if (memory[category] != 0) row(category, bytes_text(memory[category]));
  if (!r["training"].is_null()) row("saved activations", bytes_text(memory["activations"]));
  row("peak", bytes_text(memory["peak"]) + " (" + grouped(memory["peak"]) + " bytes) at layer " +
                  memory["peak_unit"].dump() + "; inference alone " + bytes_text(memory["inference_peak"]));
  if (!memory["capacity"].is_null())
    row("capacity",
        bytes_text(memory["capacity"]) +
            (memory["fits"].get<bool>() ? ": fits" : ": does not fit, short by " + bytes_text(memory["short_by"])));
  if (!memory["largest_batch"].is_null()) {
    const Json& largest = memory["largest_batch"];
    row("largest batch",
        largest["value"].is_null() ? "not known: " + largest["reason"].get<std::string>() : grouped(largest["value"]));
  }
  if (!r["inference"].is_null()) {
    const Json& inference = r["inference"];
    bool bound = inference["bound"];
    const char* at_least = bound ? ">= " : "";
    line("");
    line((bound ? "Lower bounds on " : "Time and energy on ") + r["hardware"]["name"].get<std::string>() +
         (bound ? " (no mapping or schedule can beat them)" : ", one layer after the other") +
         (r["settings"]["widths"] == "datapath" ? ", 8-bit operands" : ", operands as stored"));
    auto cost = [&](const std::string& title, const Json& c) {
      row(title, at_least + padded(grouped(static_cast<int64_t>(std::ceil(c["latency_cycles"].get<double>()))), 15) +
                     " cycles   " + at_least + padded(energy_text(c["energy_pj"]), 9));
    };
    cost("inference", inference);
    if (!r["step"].is_null()) {
      cost("training step", r["step"]);
      for (const auto& [phase, c] : r["step"]["phases"].items()) cost("  " + phase + (bound ? " alone" : ""), c);
    }
    if (!bound) {
      const Json& bounds = r["bounds"];
      double least = std::max(bounds["compute_cycles"].get<double>(), bounds["traffic_cycles"].get<double>());
      row("lower bound", ">= " + padded(grouped(static_cast<int64_t>(std::ceil(least))), 12) + " cycles   >= " +
                             energy_text(bounds["compute_pj"].get<double>() + bounds["traffic_pj"].get<double>()));
      std::string use;
      for (const auto& [role, share] : (r["step"].is_null() ? inference : r["step"])["utilisation"].items())
        use += (use.empty() ? "" : ", ") + role + " " + formatted("%.1f%%", 100 * share.get<double>());
      row("use of the PEs", use);
    }
  }
  line("");
  line("Heaviest layers by multiply-accumulates");
  std::vector<const Json*> layers;
  for (const Json& layer : r["layers"])
    if (layer["macs"] != 0) layers.push_back(&layer);
  std::stable_sort(layers.begin(), layers.end(), [](const Json* a, const Json* b) {
    return (*a)["macs"].get<int64_t>() > (*b)["macs"].get<int64_t>();
  });
  if (layers.size() > 10) layers.resize(10);
  bool mapped = std::any_of(layers.begin(), layers.end(), [](const Json* l) { return !(*l)["utilisation"].is_null(); });
  line("  " + padded("id", 5) + "  " + padded("layer", 30, true) + padded("operator", 15, true) +
       padded("role", 17, true) + padded("MACs", 14) + (mapped ? padded("cycles", 13) + padded("use", 7) : ""));
  for (const Json* layer : layers)
    line("  " + padded((*layer)["id"].dump(), 5) + "  " + padded(shortened((*layer)["name"], 29), 30, true) +
         padded(shortened((*layer)["op"], 14), 15, true) + padded((*layer)["role"], 17, true) +
         padded(grouped((*layer)["macs"]), 14) +
         ((*layer)["utilisation"].is_null()
              ? ""
              : padded(formatted("%.0f", (*layer)["latency_cycles"]), 13) +
                    padded(formatted("%.1f%%", 100 * (*layer)["utilisation"].get<double>()), 7)));
  if (!r["warnings"].empty()) line("");
  for (const Json& warning : r["warnings"]) {
    line("warning: " + warning["message"].get<std::string>());
    if (!warning["hint"].get<std::string>().empty()) line("  hint: " + warning["hint"].get<std::string>());
  }
  return out;
}

}  // namespace monet
