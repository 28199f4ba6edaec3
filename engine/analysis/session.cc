#include "engine/analysis/session.h"

#include <algorithm>
#include <new>
#include <unordered_map>

#include "engine/cost/bounds.h"
#include "engine/cost/unit_cost.h"
#include "engine/hardware/access_energy.h"
#include "engine/ir/saturating.h"
#include "engine/report/report.h"
#include "engine/report/schedule_report.h"
#include "engine/schedule/memory.h"
#include "engine/schedule/scheduler.h"
#include "engine/training/existing.h"
#include "engine/workload/work.h"

namespace monet {

namespace {

// Up to three batches of one model (the search for the largest needs two), under the settings before and after a
// change.
constexpr size_t kKept = 6;

template <typename Value, typename Make>
std::shared_ptr<const Value> recent(std::list<std::pair<std::string, std::shared_ptr<const Value>>>& list,
                                    const std::string& key, const Make& make) {
  auto it = std::find_if(list.begin(), list.end(), [&](const auto& entry) { return entry.first == key; });
  if (it != list.end()) {
    list.splice(list.begin(), list, it);
  } else {
    list.emplace_front(key, std::shared_ptr<const Value>(new Value(make())));  // made where it stays
    if (list.size() > kKept) list.pop_back();
  }
  return list.front().second;
}

std::string bound_key(const Settings& settings, std::optional<int64_t> batch) {
  nlohmann::ordered_json dims(settings.dims);
  return dims.dump() + (batch ? std::to_string(*batch) : "") + (settings.assume_batch_norm ? "+bn" : "");
}

std::string training_key(const Settings& settings, std::optional<int64_t> batch) {
  nlohmann::ordered_json all = to_json(settings);
  // Everything that TrainingOptions holds: the rest of the settings is left out.
  for (const char* other : {"hardware", "capacity_bytes", "batch", "dims", "precision", "update", "assume_batch_norm",
                            "widths", "mapping", "objective", "factor_limit", "corrections", "access_energy",
                            "partition", "write_back", "accumulation", "fusion"})
    all.erase(other);
  return bound_key(settings, batch) + all.dump();
}

// Everything that a schedule depends on but the partition.
std::string planned_key(const Settings& settings, bool inference) {
  nlohmann::ordered_json all = to_json(settings), own;
  for (const char* setting : {"hardware", "mapping", "objective", "factor_limit", "corrections", "access_energy",
                              "precision", "widths", "write_back", "accumulation"})
    own[setting] = all[setting];
  return (inference ? "inference " + bound_key(settings, settings.batch)
                    : "step " + training_key(settings, settings.batch)) +
         own.dump() + (settings.schedule.as_stream ? "as Stream" : "");
}

std::string memory_key(const Settings& settings, int64_t batch, int64_t capacity) {
  nlohmann::ordered_json all = to_json(settings);
  return training_key(settings, batch) + nlohmann::ordered_json{all["precision"], all["update"], capacity}.dump();
}

void step(const Progress& progress, std::string_view stage, double done) {
  if (progress && !progress(stage, done)) throw Refusal({"cancelled", "cancelled", "", "", ""});
}

std::vector<int64_t> bytes_of(const Graph& graph, const Precision& precision) {
  std::vector<int64_t> all(graph.tensors.size());
  for (TensorId t = 0; t < static_cast<TensorId>(all.size()); ++t) all[t] = bytes(graph, t, precision);
  return all;
}

std::optional<int64_t> batch_of(const Graph& graph) {
  for (TensorId t : graph.inputs)
    if (graph.tensors[t].kind == TensorKind::input && !graph.tensors[t].shape.empty()) return graph.tensors[t].shape[0];
  return {};
}

// There is still a forward pass to analyse.
bool is_missing_gradient(const Diagnostic& d) { return d.code == "no-gradient" || d.code == "no-parameters"; }

// The forward part of a training graph that came as a file; the settings then name its own optimizer if they know it.
std::shared_ptr<const BoundModel> forward_of(const BoundModel& whole, Settings& settings) {
  auto forward = std::make_shared<BoundModel>(whole);
  forward->graph = forward_part(whole.graph);
  forward->warnings.push_back({"training-graph",
                               "the file is a training graph already: it is analysed as it is, whatever is chosen as "
                               "optimizer, loss and to be trained",
                               "", "", "give the forward model to choose these"});
  std::string optimizer = optimizer_of(whole.graph);
  for (char& c : optimizer) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  nlohmann::ordered_json named = to_json(settings);
  named["optimizer"] = optimizer;
  try {
    settings = parse_settings(named.dump());
  } catch (const Refusal&) {  // an optimizer of another name
  }
  return forward;
}

// One warning for all operators without a gradient.
Diagnostic forward_only(const std::vector<Diagnostic>& problems) {
  std::string list;
  for (const Diagnostic& d : problems) list += (list.empty() ? "" : "; ") + d.message;
  return {"forward-only", "forward pass only, without a training graph: " + list, problems.front().node, "",
          problems.front().hint};
}

// Of time and energy, for every unit, phase and the whole.
void add_bounds(Results& r, const Precision& widths) {
  const Graph& graph = r.graph();
  std::array<std::vector<Work>, kPhases> by_phase;
  for (size_t u = 0; u < r.works.size(); ++u) {
    r.unit_bounds.push_back(unit_bound(graph, graph.units[u], r.works[u], *r.accelerator, widths));
    by_phase[static_cast<size_t>(graph.units[u].phase)].push_back(r.works[u]);
  }
  for (size_t p = 0; p < by_phase.size(); ++p)
    r.phase_bounds[p] = total_bound(graph, by_phase[p], *r.accelerator, widths);
  r.step_bound = total_bound(graph, r.works, *r.accelerator, widths);
  r.inference_bound = total_bound(r.model->graph, r.inference_works, *r.accelerator, widths);
}

}  // namespace

Session::Session(ByteSource& source, std::string name) : file_(Model::open(source, std::move(name))) {}

std::shared_ptr<const BoundModel> Session::bound(const Settings& settings, std::optional<int64_t> batch) {
  return recent<BoundModel>(bound_, bound_key(settings, batch), [&] {
    BindOptions options;
    options.dims = settings.dims;
    options.batch = batch;
    options.has_rule = has_gradient_rule;
    options.assume_batch_norm = settings.assume_batch_norm;
    return file_.bind(options);
  });
}

std::shared_ptr<const TrainingGraph> Session::training(const Settings& settings, std::optional<int64_t> batch) {
  return recent<TrainingGraph>(training_, training_key(settings, batch), [&] {
    std::shared_ptr<const BoundModel> model = bound(settings, batch);
    return model->is_training_graph ? read_training_graph(model->graph)
                                    : build_training_graph(model->graph, settings.training);
  });
}

std::optional<Accelerator> accelerator_of(const Settings& settings, const FileResolver& hardware_files) {
  auto parsed = [&](const std::string& json, const FileResolver& files) {
    Accelerator accelerator = parse_accelerator(json, files);
    apply_access_energy(accelerator, settings.access_energy);
    return accelerator;
  };
  if (settings.hardware.is_object()) return parsed(settings.hardware.dump(), hardware_files);
  std::string wanted = settings.hardware.get<std::string>();
  if (wanted == "none") return {};
  std::string known = "none";
  for (const Preset& preset : hardware_presets()) {
    if (preset.name == wanted) return parsed(preset.json, {});
    known += ", " + preset.name;
  }
  throw Refusal({"unknown-hardware", "no hardware preset is called \"" + wanted + "\"", "hardware", "",
                 "one of: " + known + "; or a hardware file"});
}

MappingFile mapping_of(const Settings& settings) {
  return settings.mapping.is_null() ? MappingFile() : parse_mapping(settings.mapping.dump());
}

LargestBatch Session::find_largest_batch(const Settings& settings, int64_t batch, MemoryOptions options,
                                         int64_t capacity) {
  try {
    // Not at batch 1: there broadcasts of the batch need no reduction, and the graph is another one.
    int64_t small = std::max<int64_t>(batch, 2), large = 2 * small + 1;
    std::shared_ptr<const TrainingGraph> a = training(settings, small), b = training(settings, large);
    std::vector<int64_t> bytes_a = bytes_of(a->graph, settings.precision), bytes_b = bytes_a;
    // By name: equal constants are shared, and which are equal can depend on the batch.
    std::unordered_map<std::string_view, TensorId> by_name;
    for (TensorId t = 0; t < static_cast<TensorId>(b->graph.tensors.size()); ++t)
      by_name.emplace(b->graph.tensors[t].name, t);
    for (TensorId t = 0; t < static_cast<TensorId>(bytes_a.size()); ++t) {
      const Tensor& tensor = a->graph.tensors[t];
      if (tensor.kind == TensorKind::constant) continue;
      auto it = by_name.find(tensor.name);
      if (it == by_name.end()) return {{}, "the model's operators change with the batch"};
      bytes_b[t] = bytes(b->graph, it->second, settings.precision);
    }
    if (!options.master_weights.empty()) options.master_weights = a->parameters;
    return {largest_batch(a->graph, {small, bytes_a}, {large, bytes_b}, options, capacity), ""};
  } catch (const Refusal& refusal) {
    return {{}, refusal.problems().front().message};
  }
}

void Session::add_costs(Results& r, const MappingFile& mapping, const Settings& settings, const Progress& progress) {
  auto cost = [&](const Graph& graph, const std::vector<Work>& works, double from, double to) {
    return graph_cost(graph, works, *r.accelerator, settings.widths(), mapping, settings.cost, costs_,
                      [&](double done) { step(progress, "mappings", from + (to - from) * done); });
  };
  r.cost = cost(r.graph(), r.works, 0.8, 0.9);
  r.inference_cost = r.training ? cost(r.model->graph, r.inference_works, 0.9, 0.95) : *r.cost;
  r.warnings.insert(r.warnings.end(), r.cost->warnings.begin(), r.cost->warnings.end());
}

nlohmann::ordered_json Session::analyze(const Settings& settings, const FileResolver& hardware_files,
                                        const Progress& progress) {
  step(progress, "hardware", 0);
  std::optional<Accelerator> accelerator = accelerator_of(settings, hardware_files);
  MappingFile mapping = mapping_of(settings);

  step(progress, "shapes", 0.05);
  std::shared_ptr<const BoundModel> model = bound(settings, settings.batch);
  Settings applied = settings;
  if (model->is_training_graph) model = forward_of(*model, applied);
  Results r;
  r.file = &file_;
  r.model = model.get();
  r.settings = to_json(applied);
  r.precision = settings.precision;
  r.warnings = model->warnings;

  step(progress, "training graph", 0.4);
  std::shared_ptr<const TrainingGraph> trained;
  try {
    trained = training(settings, settings.batch);
    r.training = trained.get();
    r.warnings.insert(r.warnings.end(), trained->warnings.begin(), trained->warnings.end());
  } catch (const Refusal& refusal) {
    if (!std::all_of(refusal.problems().begin(), refusal.problems().end(), is_missing_gradient)) throw;
    r.warnings.push_back(forward_only(refusal.problems()));
  }
  const Graph& graph = r.graph();
  r.parameters = trained ? trained->parameters : parameters(graph);
  if (trained) r.saved = saved_for_backward(graph);
  r.tensor_bytes = bytes_of(graph, settings.precision);

  step(progress, "memory", 0.6);
  MemoryOptions options;
  options.update_immediately = settings.update_immediately;
  options.keep_outputs = !trained;
  if (settings.precision.master_weights && trained) options.master_weights = r.parameters;
  r.memory = memory(graph, r.tensor_bytes, options);
  MemoryOptions inference;
  inference.keep_outputs = true;
  r.inference_memory = memory(model->graph, bytes_of(model->graph, settings.precision), inference);

  if (accelerator && accelerator->offchip_bytes() > 0) r.capacity = accelerator->offchip_bytes();
  if (settings.capacity_bytes) r.capacity = settings.capacity_bytes;
  if (r.capacity && trained) {
    step(progress, "largest batch", 0.7);
    if (std::optional<int64_t> batch = batch_of(graph)) {
      r.largest_batch = *recent<LargestBatch>(largest_, memory_key(settings, *batch, *r.capacity), [&] {
        return find_largest_batch(settings, *batch, options, *r.capacity);
      });
    } else {
      r.largest_batch = LargestBatch{{}, "the model has no data input with a batch dimension"};
    }
  }

  step(progress, "bounds", 0.75);
  r.works = works(graph);
  for (const Work& work : r.works) {
    Traffic bytes = unit_traffic(graph, work, settings.precision);
    r.unit_bytes.push_back(saturating_add(bytes.read, bytes.written));
  }
  if (accelerator) {
    r.accelerator = &*accelerator;
    r.warnings.insert(r.warnings.end(), accelerator->warnings.begin(), accelerator->warnings.end());
    r.warnings.insert(r.warnings.end(), mapping.warnings.begin(), mapping.warnings.end());
    r.inference_works = works(model->graph);
    add_bounds(r, settings.widths());
    if (only_compute_core(*accelerator)) add_costs(r, mapping, settings, progress);
  }
  step(progress, "report", 0.95);
  return report(r);
}

Planned::Planned(std::shared_ptr<const Graph> graph_, Accelerator accelerator_, const Settings& settings,
                 CostCache& costs)
    : graph(std::move(graph_)),
      accelerator(std::move(accelerator_)),
      mapping(mapping_of(settings)),
      cost(settings.cost),
      works(monet::works(*graph)),
      bound(total_bound(*graph, works, accelerator, settings.widths())),
      planner(std::make_unique<Planner>(*graph, works, accelerator, settings.widths(), mapping, cost, settings.schedule,
                                        costs)) {}

std::shared_ptr<const Planned> Session::planned(const Settings& settings, bool inference, const std::string& key,
                                                const FileResolver& hardware_files) {
  return recent<Planned>(planned_, key, [&] {
    std::optional<Accelerator> accelerator = accelerator_of(settings, hardware_files);
    if (!accelerator)
      throw Refusal({"no-hardware", "a schedule needs an accelerator", "hardware", "", "choose one of the presets"});
    std::shared_ptr<const Graph> own_graph = graph(settings, !inference);
    if (std::shared_ptr<const BoundModel> file = bound(settings, settings.batch);
        inference && file->is_training_graph) {
      Settings applied = settings;
      file = forward_of(*file, applied);
      own_graph = {file, &file->graph};
    }
    return Planned(std::move(own_graph), std::move(*accelerator), settings, costs_);
  });
}

std::shared_ptr<const Scheduled> Session::scheduled(const Settings& settings, bool inference,
                                                    const FileResolver& hardware_files, const Progress& progress) {
  std::string key = planned_key(settings, inference);
  return recent<Scheduled>(scheduled_, key + settings.partition.dump(), [&] {
    Scheduled made;
    made.planned = planned(settings, inference, key, hardware_files);
    const Graph& graph = *made.planned->graph;
    bool fused = settings.schedule.as_stream && !settings.schedule.write_back;
    made.partition = !settings.partition.is_null() ? parse_partition(settings.partition.dump(), graph)
                     : fused                       ? all_fused(graph)
                                                   : layer_by_layer(graph);
    made.program = made.planned->planner->program(made.partition,
                                                  [&](double done) { step(progress, "mappings", 0.1 + 0.8 * done); });
    step(progress, "schedule", 0.9);
    made.schedule = Scheduler(*made.planned->planner).schedule(made.program);
    return made;
  });
}

std::shared_ptr<CandidateCosts> Session::candidates(const Settings& settings, const std::string& key,
                                                    const std::shared_ptr<const Planned>& planned) {
  FusionSettings rules = settings.fusion;
  nlohmann::ordered_json of = to_json(settings)["fusion"];
  for (const char* other : {"objective", "gap", "nodes"}) of.erase(other);
  of["max_group"] = rules.rules().most_units;
  std::string own = key + of.dump();
  if (!candidates_ || candidates_key_ != own) {
    candidates_ = std::make_shared<CandidateCosts>(*planned->planner, rules.rules());
    candidates_key_ = own;
    candidates_of_ = planned;
  }
  return candidates_;
}

std::unique_ptr<FusionRun> Session::fuse(const Settings& settings, bool inference, const FileResolver& hardware_files) {
  std::string key = planned_key(settings, inference);
  std::shared_ptr<const Planned> on = planned(settings, inference, key, hardware_files);
  nlohmann::ordered_json head = {
      {"schema", "monet.fusion/1"},
      {"engine", {{"name", "monet"}, {"version", kEngineVersion}}},
      {"settings", to_json(settings)},
      {"model", {{"name", file_.name()}}},
      {"hardware", {{"name", on->accelerator.name}, {"description", on->accelerator.description}}},
      {"graph", inference ? "inference" : "step"}};
  return std::make_unique<FusionRun>(on, candidates(settings, key, on), settings.fusion, std::move(head));
}

nlohmann::ordered_json Session::growth(const Settings& settings, bool inference, const std::vector<int64_t>& units,
                                       const FileResolver& hardware_files) {
  std::string key = planned_key(settings, inference);
  std::shared_ptr<const Planned> on = planned(settings, inference, key, hardware_files);
  std::shared_ptr<CandidateCosts> costs = candidates(settings, key, on);
  std::vector<UnitId> set;
  for (int64_t u : units) {
    if (u < 0 || u >= static_cast<int64_t>(on->graph->units.size()))
      throw Refusal({"unknown-unit", "no layer has the id " + std::to_string(u), "", "",
                     "ids are 0 to " + std::to_string(on->graph->units.size() - 1)});
    set.push_back(static_cast<UnitId>(u));
  }
  std::sort(set.begin(), set.end());
  set.erase(std::unique(set.begin(), set.end()), set.end());
  std::vector<UnitId> around;
  for (UnitId u : set)
    for (UnitId v : costs->graph().neighbours(u))
      if (!std::binary_search(set.begin(), set.end(), v)) around.push_back(v);
  std::sort(around.begin(), around.end());
  around.erase(std::unique(around.begin(), around.end()), around.end());
  auto limit = [&](const std::vector<UnitId>& of) {
    std::string why;
    Limit broken = costs->limit(of, &why);
    return nlohmann::ordered_json{{"limit", name(broken)}, {"why", why}};
  };
  nlohmann::ordered_json json = {{"units", set}};
  json.update(limit(set));
  json["neighbours"] = nlohmann::ordered_json::array();
  for (UnitId v : around) {
    std::vector<UnitId> with = set;
    with.insert(std::lower_bound(with.begin(), with.end(), v), v);
    nlohmann::ordered_json one = {{"unit", v}, {"name", unit_name(*on->graph, on->graph->units[v])}};
    one.update(limit(with));
    json["neighbours"].push_back(one);
  }
  return json;
}

nlohmann::ordered_json Session::schedule(const Settings& settings, bool inference_only,
                                         const FileResolver& hardware_files, const Progress& progress) {
  nlohmann::ordered_json json = {{"schema", "monet.schedule/1"},
                                 {"engine", {{"name", "monet"}, {"version", kEngineVersion}}},
                                 {"settings", to_json(settings)},
                                 {"model", {{"name", file_.name()}}},
                                 {"hardware", nullptr}};
  std::vector<Diagnostic> warnings;
  json["inference"] = json["step"] = nullptr;
  std::shared_ptr<const Scheduled> trained;
  if (!inference_only) {
    try {
      trained = scheduled(settings, false, hardware_files, progress);
    } catch (const Refusal& refusal) {
      if (!std::all_of(refusal.problems().begin(), refusal.problems().end(), is_missing_gradient)) throw;
      warnings.push_back(forward_only(refusal.problems()));
    }
  }
  // A partition names the units of the graph that is asked for first.
  Settings forward = settings;
  if (trained) forward.partition = nullptr;
  std::shared_ptr<const Scheduled> inference = scheduled(forward, true, hardware_files, progress);
  const Planned& planned = *inference->planned;
  json["hardware"] = {{"name", planned.accelerator.name}, {"description", planned.accelerator.description}};
  json["inference"] = schedule_json(inference->view());
  if (trained) json["step"] = schedule_json(trained->view());
  warnings.insert(warnings.end(), planned.accelerator.warnings.begin(), planned.accelerator.warnings.end());
  warnings.insert(warnings.end(), planned.mapping.warnings.begin(), planned.mapping.warnings.end());
  json["warnings"] = nlohmann::ordered_json::array();
  for (const Diagnostic& warning : warnings) json["warnings"].push_back(to_json(warning));
  return json;
}

std::string Session::trace(const Settings& settings, bool inference, const FileResolver& hardware_files,
                           const Progress& progress) {
  return chrome_trace(scheduled(settings, inference, hardware_files, progress)->view());
}

std::shared_ptr<const Graph> Session::graph(const Settings& settings, bool with_training) {
  if (with_training) {
    std::shared_ptr<const TrainingGraph> made = training(settings, settings.batch);
    return {made, &made->graph};
  }
  std::shared_ptr<const BoundModel> model = bound(settings, settings.batch);
  return {model, &model->graph};
}

std::string Session::training_graph(const Settings& settings) {
  return export_model(training(settings, settings.batch)->graph);
}

std::vector<Diagnostic> problems_of(const std::function<void()>& work) {
  try {
    work();
    return {};
  } catch (const Refusal& refusal) {
    return refusal.problems();
  } catch (const std::bad_alloc&) {
    return {{"out-of-memory", "the analysis needs more memory than there is", "", "", "try a smaller model"}};
  } catch (const std::exception& e) {
    return {{"internal", "an error of MONET itself: " + std::string(e.what()), "", "",
             "please report it with the model's structure"}};
  }
}

std::string guarded(const std::function<std::string()>& work) {
  std::string result;
  std::vector<Diagnostic> problems = problems_of([&] { result = work(); });
  return problems.empty() ? result : to_bytes(errors_json(problems));
}

}  // namespace monet
