#include "engine/training/training_graph.h"

#include <algorithm>
#include <unordered_map>

#include "engine/ir/names.h"
#include "engine/training/builder.h"
#include "engine/training/differentiate.h"
#include "engine/training/gradient_rules.h"
#include "engine/training/lora.h"
#include "engine/training/loss.h"
#include "engine/training/optimizers.h"
#include "engine/training/path.h"
#include "engine/training/recompute.h"
#include "engine/training/selection.h"
#include "engine/training/unsupported.h"

namespace monet {

const char* name(Loss loss) {
  constexpr const char* kNames[] = {"auto", "cross_entropy", "mse", "sum"};
  return kNames[static_cast<size_t>(loss)];
}

const char* name(Unsupported unsupported) {
  constexpr const char* kNames[] = {"refuse", "stop", "pass"};
  return kNames[static_cast<size_t>(unsupported)];
}

const char* name(Optimizer optimizer) {
  constexpr const char* kNames[] = {"sgd", "momentum", "nesterov", "adam", "adamw", "adagrad", "rmsprop", "lion"};
  return kNames[static_cast<size_t>(optimizer)];
}

namespace {

// Float parameters that `reached` holds for, in order of first use.
std::vector<TensorId> reached_parameters(const Graph& graph, const std::vector<bool>& reached) {
  std::vector<TensorId> result;
  std::vector<bool> seen(graph.tensors.size());
  for (const Node& node : graph.nodes) {
    for (TensorId t : node.inputs) {
      if (t == kNone || seen[t]) continue;
      seen[t] = true;
      const Tensor& tensor = graph.tensors[t];
      if (tensor.kind == TensorKind::parameter && is_float(tensor.dtype) && reached[t]) result.push_back(t);
    }
  }
  return result;
}

TensorId choose_output(const Graph& graph, const std::string& wanted, std::vector<Diagnostic>& problems) {
  std::string names;
  for (TensorId t : graph.outputs) {
    const Tensor& tensor = graph.tensors[t];
    if (!is_float(tensor.dtype)) continue;
    if (wanted.empty() || tensor.name == wanted) return t;
    names += (names.empty() ? "" : ", ") + tensor.name;
  }
  if (wanted.empty()) {
    problems.push_back({"no-float-output", "the model has no floating-point output to put a loss on", "", "",
                        "training needs an output with a gradient"});
  } else {
    problems.push_back({"no-such-output", "the model has no floating-point output named " + wanted, "", wanted,
                        names.empty() ? "it has no floating-point output at all" : "its outputs: " + names});
  }
  return kNone;
}

void set_attribute(Node& node, const char* name, int64_t value) {
  for (Attribute& a : node.attributes) {
    if (a.name != name) continue;
    a.value = value;
    return;
  }
  node.attributes.push_back({name, value});
}

// Makes every BatchNormalization use the batch's statistics and return the updated running ones, or keep the latter
// frozen. Returns the updated running statistics.
std::vector<TensorId> set_batch_norm_mode(Graph& graph, bool frozen, std::vector<Diagnostic>& warnings) {
  std::vector<TensorId> updated;
  bool warned = false;
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    if (graph.nodes[id].op != "BatchNormalization" || !graph.nodes[id].domain.empty()) continue;
    set_attribute(graph.nodes[id], "training_mode", frozen ? 0 : 1);
    for (int i : {3, 4}) {
      Tensor& statistic = graph.tensors[graph.nodes[id].inputs[i]];
      if (statistic.kind == TensorKind::parameter) statistic.kind = TensorKind::buffer;
    }
    graph.nodes[id].outputs.resize(frozen ? 1 : 3, kNone);
    if (frozen) continue;
    for (int i : {1, 2}) {
      TensorId old = graph.nodes[id].inputs[i + 2], next = graph.nodes[id].outputs[i];
      if (next == kNone) {
        Tensor tensor{.name = graph.tensors[old].name + "_next",
                      .dtype = graph.tensors[old].dtype,
                      .shape = graph.tensors[old].shape,
                      .producer = id};
        next = graph.nodes[id].outputs[i] = graph.add(std::move(tensor));
      }
      graph.tensors[next].of = old;
      updated.push_back(next);
    }
    const Shape& x = graph.tensors[graph.nodes[id].inputs[0]].shape;
    if (!warned && x.size() >= 2 && elements(x) == x[1]) {
      warned = true;
      warnings.push_back(
          {"one-value-per-channel",
           "BatchNormalization " + label(graph, id) + " sees one value per channel: its batch variance is 0",
           label(graph, id), graph.tensors[graph.nodes[id].inputs[0]].name,
           "use a larger batch, or keep the running statistics"});
    }
  }
  return updated;
}

// Quantisers that a gradient passes: its rule is no derivative, so it is said.
void warn_straight_through(const Graph& graph, std::vector<Diagnostic>& warnings) {
  int count = 0;
  NodeId first = kNone;
  for (const Unit& unit : graph.units) {
    if (unit.op != "QuantizeLinear" || unit.role != Role::gradient) continue;
    ++count;
    first = unit.origin;  // units of the backward pass run backward
  }
  if (count == 0) return;
  warnings.push_back({"straight-through",
                      std::to_string(count) + (count == 1 ? " QuantizeLinear passes" : " QuantizeLinear pass") +
                          " the gradient on as if it did not round (straight-through estimator), first " +
                          label(graph, first),
                      label(graph, first), "", "nothing to do; it is how quantised networks are trained"});
}

// Names what was added: gradients after what they are the gradient of, other tensors after where they belong.
void name_tensors(Graph& graph, size_t forward_tensors, TensorId loss, const std::vector<TensorId>& gradients) {
  Names names;
  for (size_t t = 0; t < forward_tensors; ++t) names.add(graph.tensors[t].name);
  std::vector<bool> done(graph.tensors.size());
  auto once = [&](TensorId t, const std::string& wish) {
    if (!done[t]) graph.tensors[t].name = names.unique(wish);
    done[t] = true;
  };
  once(loss, "loss");
  // The complete gradients of parameters have first claim on the plain name; partial sums get a number.
  for (TensorId t : gradients) once(t, graph.tensors[graph.tensors[t].of].name + "_grad");
  for (TensorId t = static_cast<TensorId>(forward_tensors); t < static_cast<TensorId>(graph.tensors.size()); ++t) {
    const Tensor& tensor = graph.tensors[t];
    if (!tensor.name.empty()) {
      once(t, tensor.name);
    } else if (tensor.kind == TensorKind::constant) {
      once(t, "constant");
    } else if (tensor.of != kNone) {
      once(t, graph.tensors[tensor.of].name + "_grad");
    } else {
      const Node& node = graph.nodes[tensor.producer];
      const Unit& unit = graph.units[node.unit];
      std::string place = unit.target != kNone && unit.origin == kNone ? graph.tensors[unit.target].name + "_update"
                          : node.phase == Phase::optimizer             ? unit.op
                          : node.origin == kNone                       ? "loss"
                                                                       : label(graph, node.origin) + "_gradient";
      once(t, place + "/" + node.op);
    }
  }
}

std::vector<TensorId> graph_inputs(const Graph& graph) {
  std::vector<bool> used(graph.tensors.size());
  for (const Node& node : graph.nodes)
    for (TensorId t : node.inputs)
      if (t != kNone) used[t] = true;
  std::vector<TensorId> result;
  std::vector<bool> listed(graph.tensors.size());
  for (TensorKind kind : {TensorKind::input, TensorKind::label, TensorKind::parameter, TensorKind::buffer,
                          TensorKind::state, TensorKind::sum, TensorKind::scalar}) {
    auto list = [&](TensorId t) {
      if (graph.tensors[t].kind != kind || listed[t]) return;
      listed[t] = true;
      result.push_back(t);
    };
    for (TensorId t : graph.inputs)
      if (used[t] || kind == TensorKind::input) list(t);
    for (TensorId t = 0; t < static_cast<TensorId>(graph.tensors.size()); ++t)
      if (used[t]) list(t);
  }
  return result;
}

}  // namespace

std::vector<TensorId> parameters(const Graph& forward) {
  return reached_parameters(forward, reached_backward(forward, forward.outputs));
}

namespace {

// One attempt: if it finds nodes without a rule that `gaps` does not yet provide for, these are added to `missing` and
// the result is of no use.
TrainingGraph attempt(const Graph& forward, const std::vector<TensorId>& selected, const TrainingOptions& options,
                      const Gaps& gaps, std::vector<Diagnostic> problems, std::vector<MissingRule>& missing) {
  TrainingGraph result;
  TensorId output = choose_output(forward, options.output, problems);
  if (output == kNone) throw Refusal(problems);
  result.loss = choose_loss(forward, output, options.loss);
  if (result.loss == Loss::cross_entropy && forward.tensors[output].shape.empty()) {
    problems.push_back({"no-classes", "output " + forward.tensors[output].name + " is a scalar: it has no classes",
                        "loss", forward.tensors[output].name, "use loss sum or mse"});
    throw Refusal(problems);
  }

  result.graph = forward;
  Graph& graph = result.graph;
  assign_single_units(graph);
  std::vector<TensorId> statistics = set_batch_norm_mode(graph, options.frozen_batch_norm, result.warnings);
  size_t forward_nodes = graph.nodes.size(), forward_tensors = forward.tensors.size();

  Builder builder(graph);
  LossNodes loss = add_loss(builder, output, result.loss, result.warnings);
  result.loss_output = loss.reads;
  result.loss_value = loss.value;

  std::vector<bool> reached = reached_backward(forward, {loss.differentiated}, gaps.stopped);
  for (TensorId t : selected)
    if (reached[t]) result.parameters.push_back(t);
  if (result.parameters.empty() && problems.empty() && parameters(forward).empty()) {
    throw Refusal({"no-parameters", "the model has no floating-point parameter that a gradient can reach", "",
                   forward.tensors[output].name, "train the model before it is quantised or folded"});
  }
  if (result.parameters.empty()) {
    std::string where = "output " + forward.tensors[output].name;
    problems.push_back({"nothing-to-train", "no gradient of " + where + " reaches a parameter to be trained", "",
                        forward.tensors[output].name, "check the train and freeze patterns and the output chosen"});
    throw Refusal(problems);
  }
  BackwardPass pass{.forward_nodes = forward_nodes,
                    .from = loss.differentiated,
                    .gradient = loss.gradient,
                    .parameters = result.parameters,
                    .frozen_batch_norm = options.frozen_batch_norm,
                    .opaque = gaps.opaque,
                    .stopped = gaps.stopped};
  std::unordered_map<TensorId, TensorId> sums;  // by parameter
  if (options.micro_batches > 1)
    pass.complete = [&](TensorId t, TensorId gradient) { sums[t] = add_to_sum(builder, t, gradient); };
  result.gradients = differentiate(builder, pass, missing);
  if (options.unsupported == Unsupported::refuse)
    for (Diagnostic& problem : missing_rules(forward, missing)) problems.push_back(std::move(problem));
  if (!problems.empty()) throw Refusal(problems);
  if (!missing.empty()) return result;
  warn_straight_through(graph, result.warnings);
  graph.micro_batches = options.micro_batches;
  std::vector<TensorId> totals = result.gradients;  // what the updates take
  for (size_t i = 0; i < totals.size(); ++i)
    if (auto sum = sums.find(result.parameters[i]); sum != sums.end()) totals[i] = sum->second;
  std::vector<TensorId> updated = add_updates(builder, options, result.parameters, totals);
  if (options.micro_batches > 1) updated.insert(updated.begin(), totals.begin(), totals.end());

  name_tensors(graph, forward_tensors, result.loss_value, result.gradients);
  graph.inputs = graph_inputs(graph);
  graph.outputs = {result.loss_value};
  graph.outputs.insert(graph.outputs.end(), statistics.begin(), statistics.end());
  graph.outputs.insert(graph.outputs.end(), updated.begin(), updated.end());
  recompute(graph, options.recompute, problems);
  if (!problems.empty()) throw Refusal(problems);
  return result;
}

}  // namespace

TrainingGraph build_training_graph(const Graph& model, const TrainingOptions& options) {
  std::vector<Diagnostic> problems;  // of the selection; reported with whatever an attempt finds
  std::vector<TensorId> selected = select_parameters(model, parameters(model), options, problems);
  Adapted adapted;
  if (options.lora_rank > 0) {
    adapted = add_adapters(model, options.lora_rank, selected);
    selected = adapted.adapters;
    if (selected.empty() && problems.empty())
      problems.push_back({"no-weight-to-adapt", "no Conv, Gemm or MatMul has a weight among the parameters chosen",
                          "lora_rank", "", "check the train and freeze patterns"});
  }
  const Graph& forward = options.lora_rank > 0 ? adapted.graph : model;
  // The first attempt finds every node without a rule; the next provides for them from the start, so that no gradient
  // is computed that would end there.
  Gaps gaps;
  std::vector<MissingRule> all;
  for (;;) {
    std::vector<MissingRule> missing;
    TrainingGraph result = attempt(forward, selected, options, gaps, problems, missing);
    if (missing.empty()) {
      for (Diagnostic& warning : gap_warnings(forward, all, options.unsupported)) result.warnings.push_back(warning);
      return result;
    }
    gaps.add(forward, missing, options.unsupported);
    all.insert(all.end(), missing.begin(), missing.end());
  }
}

std::vector<TensorId> saved_for_backward(const Graph& training) {
  std::vector<TensorId> place = storage(training);
  std::vector<bool> saved(training.tensors.size());
  for (const Node& node : training.nodes) {
    if (node.phase == Phase::forward) continue;
    for (TensorId t : node.inputs) {
      if (t == kNone) continue;
      t = place[t];
      const Tensor& tensor = training.tensors[t];
      bool computed = tensor.producer != kNone && training.nodes[tensor.producer].phase == Phase::forward;
      if (computed || tensor.kind == TensorKind::input) saved[t] = true;
    }
  }
  std::vector<TensorId> result;
  for (size_t t = 0; t < saved.size(); ++t)
    if (saved[t]) result.push_back(static_cast<TensorId>(t));
  return result;
}

}  // namespace monet
