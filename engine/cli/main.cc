// The `monet` executable: command lines -> analysis/. Exit status 0 on success, 1 on a refused input, 2 on wrong usage.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <tuple>

#include "engine/analysis/layer_costs.h"
#include "engine/analysis/session.h"
#include "engine/cli/yaml.h"
#include "engine/report/format.h"
#include "engine/report/fusion_report.h"
#include "engine/report/report.h"
#include "engine/report/schedule_report.h"
#include "engine/solver/highs.h"
#include "engine/training/coverage.h"

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using monet::Refusal;

std::string read_file(const std::string& path) {
  std::error_code error;
  std::ifstream in(path, std::ios::binary);
  if (!in || fs::is_directory(path, error))
    throw Refusal({"unreadable", "cannot read " + path, "", "", "check the path"});
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

void write_output(const std::string& path, const std::string& bytes) {
  if (path == "-") {
    std::cout << bytes;
    return;
  }
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  if (!out.flush()) throw Refusal({"unwritable", "cannot write " + path, "", "", "check the path and the free space"});
}

// Hardware, mapping and workload files are YAML or JSON (DESIGN decision 5); the engine reads JSON.
std::string read_json(const std::string& path) {
  std::string text = read_file(path);
  std::string extension = fs::path(path).extension().string();
  return extension == ".yaml" || extension == ".yml" ? monet::yaml_to_json(text, path) : text;
}

// Core files that a system names by path: relative to its own file, else by file name beside it.
monet::FileResolver resolver_beside(const std::string& path) {
  fs::path folder = fs::path(path).parent_path();
  return [folder](const std::string& wanted) -> std::optional<std::string> {
    for (const fs::path& candidate : {folder / wanted, folder / fs::path(wanted).filename()}) {
      std::error_code error;
      if (fs::is_regular_file(candidate, error)) return read_json(candidate.string());
    }
    return {};
  };
}

// The options of commands as the settings object that the page and links use too.
struct SettingsFlags {
  Json settings = Json::object();
  std::vector<std::string> dims;
  std::string settings_file, hardware, mapping;

  // `costs`: with those that say how time and energy are counted.
  void add(CLI::App& app, bool costs) {
    auto text = [&](const char* flag, const char* field, const char* help) {
      app.add_option_function<std::string>(
          flag, [this, field](const std::string& v) { settings[field] = v; }, help);
    };
    auto whole = [&](const char* flag, const char* field, const char* help) {
      app.add_option_function<int64_t>(
          flag, [this, field](int64_t v) { settings[field] = v; }, help);
    };
    auto number = [&](const char* flag, const char* field, const char* help) {
      app.add_option_function<double>(
          flag, [this, field](double v) { settings[field] = v; }, help);
    };
    auto list = [&](const char* flag, const char* field, const char* help) {
      app.add_option_function<std::vector<std::string>>(
          flag, [this, field](const std::vector<std::string>& v) { settings[field] = v; }, help);
    };
    auto yes = [&](const char* flag, const char* field, const char* help) {
      app.add_flag_callback(
          flag, [this, field] { settings[field] = true; }, help);
    };
    text("--precision", "precision", "model | fp32 | fp16 | bf16 | mixed_fp16 | mixed_bf16 (default model)");
    whole("--batch", "batch", "replaces dimension 0 of every data input");
    app.add_option("--dim", dims, "NAME=VALUE: a symbolic dimension's size; repeatable");
    text("--optimizer", "optimizer",
         "sgd | momentum | nesterov | adam | adamw | adagrad | rmsprop | lion (default sgd)");
    number("--weight-decay", "weight_decay", "(default: the optimizer's own, 0.01 for adamw, else 0)");
    number("--clip-norm", "clip_norm", "the norm that all gradients together are kept to (default: no clipping)");
    whole("--micro-batches", "micro_batches", "batches whose gradients are summed before an update (default 1)");
    text("--loss", "loss", "auto | cross_entropy | mse | sum (default auto)");
    text("--output", "output", "the output that the loss is on (default: the first float one)");
    text("--batch-norm", "batch_norm", "batch | frozen: statistics in training (default batch)");
    yes("--assume-batch-norm", "assume_batch_norm", "put a BatchNormalization after every Conv it looks folded into");
    list("--train", "train", "train only parameters whose names match this pattern; repeatable");
    list("--freeze", "freeze", "do not train parameters whose names match this pattern; repeatable");
    whole("--last-layers", "last_layers", "train only the last so many layers");
    yes("--biases-only", "biases_only", "train only biases");
    whole("--lora-rank", "lora_rank", "train only low-rank adapters of this rank on the weights chosen");
    list("--recompute", "recompute", "a saved tensor that backward computes again instead; repeatable");
    text("--unsupported", "unsupported",
         "refuse | stop | pass: the gradient at operators without a gradient rule (default refuse)");
    app.add_option("--settings", settings_file,
                   "a JSON file of settings, as reports hold them; other options override it");
    if (!costs) return;
    app.add_option("--hardware", hardware, "a preset's name or a file, JSON or YAML (default: none)");
    app.add_option("--mapping", mapping,
                   "a mapping file of Stream or ZigZag, JSON or YAML (default: cores' dataflows)");
    text("--objective", "objective", "latency | energy | edp: what a layer's mapping has least of (default latency)");
    whole("--factor-limit", "factor_limit", "temporal loops per layer (default 6)");
    text("--widths", "widths", "datapath | tensors: 8-bit operands as ZigZag, or as stored (default datapath)");
    text("--access-energy", "access_energy", "file | hp_65nm, ..., lstp_22nm: by a law of memory size (default file)");
    list("--correct", "corrections",
         "all | hold_floors | add_half_shared | leave_room_above | count_all_traffic | count_partial_words | "
         "count_uneven_tiles: of ZigZag's cost model; repeatable");
  }

  // Core files that the hardware file names.
  monet::FileResolver files() const {
    return fs::path(hardware).has_extension() ? resolver_beside(hardware) : monet::FileResolver();
  }

  static Json parsed(const std::string& path, const char* code) {
    try {
      return Json::parse(read_json(path));
    } catch (const Json::parse_error& e) {
      throw Refusal({code, path + " is not JSON: " + e.what(), "", "", ""});
    }
  }

  monet::Settings parse() {
    Json all = Json::object();
    if (!settings_file.empty()) all = monet::to_json(monet::parse_settings(read_file(settings_file)));
    if (!hardware.empty()) {
      settings["hardware"] = hardware;
      if (fs::path(hardware).has_extension()) settings["hardware"] = parsed(hardware, "bad-hardware");
    }
    if (!mapping.empty()) settings["mapping"] = parsed(mapping, "bad-mapping");
    for (const std::string& dim : dims) {
      size_t at = dim.find('=');
      int64_t value = 0;
      std::string digits = at == std::string::npos ? "" : dim.substr(at + 1);
      auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (at == 0 || digits.empty() || error != std::errc() || end != digits.data() + digits.size())
        throw CLI::ValidationError("--dim", "expects NAME=VALUE with a whole number, got " + dim);
      all["dims"][dim.substr(0, at)] = value;
    }
    all.update(settings, false);
    return monet::parse_settings(all.dump());
  }
};

std::unique_ptr<monet::Session> open_model(const std::string& path) {
  std::unique_ptr<monet::ByteSource> source = monet::open_file(path);
  return std::make_unique<monet::Session>(*source, fs::path(path).filename().string());
}

// Solves every program of the search; what it is at goes to stderr where that is a terminal.
Json fused(monet::Session& session, const monet::Settings& settings, bool inference, const monet::FileResolver& files) {
  std::unique_ptr<monet::FusionRun> run = session.fuse(settings, inference, files);
  bool told = isatty(STDERR_FILENO) != 0;
  auto tell = [&](const std::string& what) {
    if (told) std::cerr << "\r\033[K" << what << std::flush;
  };
  while (true) {
    while (run->step()) tell("fusion: " + std::to_string(static_cast<int>(100 * run->done())) + "%");
    if (!run->program()) break;
    run->answer(monet::solve(*run->program(), run->limits(), run->start(), [&](const monet::Solution& best) {
      tell("fusion: solving, gap " + monet::formatted("%.2f%%", 100 * std::min(1.0, best.gap())));
      return true;
    }));
  }
  tell("");
  return run->report();
}

// Of the strategies that could be scheduled, what the settings ask least of.
Json best_plan(const Json& report) {
  const Json* best = nullptr;
  double least = 0;
  std::string objective = report["settings"]["fusion"]["objective"];
  for (const Json& s : report["strategies"]) {
    if (s["schedule"].is_null()) continue;
    double cycles = s["schedule"]["latency_cycles"], pj = s["schedule"]["energy_pj"];
    double value = objective == "latency"  ? cycles
                   : objective == "energy" ? pj
                   : objective == "edp"    ? cycles * pj
                   : objective == "groups" ? s["groups"].get<double>()
                                           : s["schedule"]["offchip_bytes"].get<double>();
    if (!best || value < least) {
      best = &s;
      least = value;
    }
  }
  if (!best) throw Refusal({"no-plan", "no plan could be scheduled", "", "", "see the reasons in the table"});
  return (*best)["plan"];
}

void print_problems(const std::vector<monet::Diagnostic>& problems) {
  for (const monet::Diagnostic& d : problems)
    std::cerr << "monet: " << d.message << (d.hint.empty() ? "" : " (" + d.hint + ")") << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("MONET: what training a network costs on a dataflow accelerator", "monet");
  app.require_subcommand(1);
  app.set_version_flag("--version", monet::kEngineVersion);
  std::string model, json, out, preset;
  SettingsFlags flags;

  CLI::App* analyze = app.add_subcommand("analyze", "memory, time and energy of a training step");
  analyze->add_option("MODEL", model, "an ONNX file")->required();
  analyze->add_option_function<int64_t>(
      "--capacity", [&](int64_t v) { flags.settings["capacity_bytes"] = v; }, "bytes that the peak is compared with");
  analyze->add_option_function<std::string>(
      "--update", [&](const std::string& v) { flags.settings["update"] = v; },
      "end | immediate: when gradients are applied and freed (default end)");
  analyze->add_option("--json", json, "write the report (monet.report/1) to a file, or - for standard output");
  flags.add(*analyze, true);

  CLI::App* graph = app.add_subcommand("graph", "the training graph as a runnable ONNX model");
  graph->add_option("MODEL", model, "an ONNX file")->required();
  graph->add_option("--out", out, "the ONNX file to write, or - for standard output")->required();
  flags.add(*graph, false);

  std::optional<int> core;
  bool training = false, nests = false;
  CLI::App* cost = app.add_subcommand("cost", "the best mapping of every layer on a core, with its cycles and energy");
  cost->add_option("FILE", model, "an ONNX model, or a workload file of Stream or ZigZag, JSON or YAML")->required();
  cost->add_option("--core", core, "the core's id (default: the first that runs contractions)");
  cost->add_flag("--training", training, "of a model: the layers of a training step, gradients included");
  cost->add_flag("--nests", nests, "print every layer's loop nest");
  cost->add_option("--json", json, "write monet.cost/1 to a file, or - for standard output");
  flags.add(*cost, true);

  bool write_back = false, by_layer = false;
  std::string partition, trace;
  CLI::App* schedule =
      app.add_subcommand("schedule", "when and where everything runs: inference and a training step, tile by tile");
  schedule->add_option("MODEL", model, "an ONNX file")->required();
  schedule->add_flag("--training", training, "of a training step too (default: inference alone, as Stream runs it)");
  schedule->add_flag("--layer-by-layer", by_layer, "as Stream: every layer streams its operands from off the chip");
  schedule->add_flag("--write-back", write_back, "what crosses fused groups goes off the chip");
  schedule->add_option("--partition", partition, "a JSON file of fused groups");
  schedule->add_option("--trace", trace,
                       "write the events (Chrome's trace format) to a file, or - for standard output");
  schedule->add_option("--json", json, "write monet.schedule/1 to a file, or - for standard output");
  flags.add(*schedule, true);

  bool inference = false;
  std::string plan;
  CLI::App* fuse =
      app.add_subcommand("fuse", "which units to run as fused groups: by hand, greedily, by integer program");
  fuse->add_option("MODEL", model, "an ONNX file")->required();
  fuse->add_flag("--inference", inference, "of inference (default: of a training step)");
  fuse->add_flag("--write-back", write_back, "what crosses fused groups goes off the chip");
  Json fusion = Json::object();
  fuse->add_option_function<std::string>(
      "--least", [&](const std::string& v) { fusion["objective"] = v; },
      "latency | energy | edp | traffic | groups: what a plan has least of (default latency)");
  fuse->add_option_function<std::vector<int>>(
      "--max-group", [&](const std::vector<int>& v) { fusion["max_group"] = v; },
      "units of a group at most, 0 for any number; a search for each (default 4 6)");
  for (auto [flag, field, help] :
       {std::tuple{"--contractions", "contractions",
                   "of a group at most, of both kinds (MONET's code: 1; default: any)"},
        std::tuple{"--convolutions", "convolutions", "of a group at most (default 3)"},
        std::tuple{"--products", "products", "matrix products of a group at most (default 2)"},
        std::tuple{"--nodes", "nodes", "of the solver's search tree at most (default: any number)"}})
    fuse->add_option_function<int64_t>(
        flag, [&fusion, field = field](int64_t v) { fusion[field] = v; }, help);
  for (auto [flag, field, value, help] :
       {std::tuple{"--several-outputs", "one_output", false, "any number of a group's units may be read outside"},
        std::tuple{"--updates-apart", "updates_apart", true, "no optimizer's update beside a weight's gradient"},
        std::tuple{"--activations-apart", "activations_apart", true, "no activation beside the product that it reads"}})
    fuse->add_flag_callback(
        flag, [&fusion, field = field, value = value] { fusion[field] = value; }, help);
  fuse->add_option_function<double>(
      "--gap", [&](double v) { fusion["gap"] = v; }, "relative, at which the solver may stop (default 0)");
  fuse->add_option("--plan", plan, "write the best plan's groups, as --partition reads them, or - for standard output");
  fuse->add_option("--json", json, "write monet.fusion/1 to a file, or - for standard output");
  flags.add(*fuse, true);

  CLI::App* presets = app.add_subcommand("hardware", "list the accelerator presets, or print one");
  presets->add_option("NAME", preset, "a preset's name");

  CLI::App* operators = app.add_subcommand("operators", "which ONNX operators have a gradient (Markdown)");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }

  int usage = 0;
  std::vector<monet::Diagnostic> problems = monet::problems_of([&] {
    if (*operators) return write_output("-", monet::operators_markdown());
    if (*presets) {
      for (const monet::Preset& p : monet::hardware_presets()) {
        if (preset == p.name) return write_output("-", p.json);
        if (preset.empty()) std::cout << p.name << "\t" << p.title << "\n";
      }
      if (!preset.empty())
        throw Refusal({"unknown-hardware", "no hardware preset is called \"" + preset + "\"", "", "",
                       "monet hardware lists them"});
      return;
    }
    monet::Settings settings;
    try {
      settings = flags.parse();
    } catch (const CLI::ParseError& e) {
      std::cerr << "monet: " << e.what() << "\n";
      usage = 2;
      return;
    }
    auto deliver = [&](const Json& report, const std::string& table) {
      if (!json.empty()) write_output(json, monet::to_bytes(report) + "\n");
      if (json != "-") std::cout << table;
    };
    if (*cost && fs::path(model).extension() != ".onnx") {
      Json report =
          monet::cost_layers_report(monet::layers_of_workload(read_json(model)), settings, flags.files(), core);
      return deliver(report, monet::cost_table(report, nests));
    }
    std::unique_ptr<monet::Session> session = open_model(model);
    if (*graph) return write_output(out, session->training_graph(settings));
    if (*cost) {
      Json report = monet::cost_layers_report(monet::layers_of_model(*session, settings, training), settings,
                                              flags.files(), core);
      return deliver(report, monet::cost_table(report, nests));
    }
    if (*schedule) {
      if (!partition.empty()) settings.partition = flags.parsed(partition, "bad-partition");
      settings.schedule.as_stream = !training;
      settings.schedule.write_back = settings.schedule.write_back || write_back || by_layer;
      Json report = session->schedule(settings, !training, flags.files());
      if (!trace.empty()) write_output(trace, session->trace(settings, !training, flags.files()));
      return deliver(report, monet::schedule_table(report));
    }
    if (*fuse) {
      settings.schedule.write_back = settings.schedule.write_back || write_back;
      Json all = monet::to_json(settings);
      all["fusion"].update(fusion);
      settings = monet::parse_settings(all.dump());
      Json report = fused(*session, settings, inference, flags.files());
      if (!plan.empty()) write_output(plan, best_plan(report).dump() + "\n");
      return deliver(report, plan == "-" ? "" : monet::fusion_table(report));
    }
    Json report = session->analyze(settings, flags.files());
    deliver(report, monet::text_table(report));
  });
  print_problems(problems);
  return usage ? usage : problems.empty() ? 0 : 1;
}
