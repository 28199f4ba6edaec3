#include "engine/onnx/control_flow.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>

#include "engine/onnx/fold.h"
#include "engine/onnx/lower.h"

namespace monet {

namespace {

using ::onnx::GraphProto;
using ::onnx::NodeProto;
using Renaming = std::map<std::string, std::string>;
using Strings = std::vector<std::string>;

int64_t count_nodes(const GraphProto& graph) {
  int64_t count = graph.node_size();
  for (const auto& n : graph.node())
    for (const auto& a : n.attribute()) {
      if (a.has_g()) count += count_nodes(a.g());
      for (const auto& g : a.graphs()) count += count_nodes(g);
    }
  return count;
}

// Renames what a nested graph reads from outside; names it defines itself hide outer ones.
void rename_reads(GraphProto& graph, Renaming names) {
  for (const auto& v : graph.input()) names.erase(v.name());
  for (const auto& t : graph.initializer()) names.erase(t.name());
  for (const auto& n : graph.node())
    for (const auto& output : n.output()) names.erase(output);
  auto rename = [&](std::string* name) {
    auto found = names.find(*name);
    if (found != names.end()) *name = found->second;
  };
  for (auto& n : *graph.mutable_node()) {
    for (auto& input : *n.mutable_input()) rename(&input);
    for (auto& a : *n.mutable_attribute()) {
      if (a.has_g()) rename_reads(*a.mutable_g(), names);
      for (auto& g : *a.mutable_graphs()) rename_reads(g, names);
    }
  }
  for (auto& v : *graph.mutable_output()) rename(v.mutable_name());
}

class ControlFlow {
 public:
  ControlFlow(GraphProto& graph, const NodeProto& n, const Inferred& inferred, int64_t max_nodes,
              std::vector<Stored>& stored, Emitter& e)
      : graph_(graph), n_(n), inferred_(inferred), max_nodes_(max_nodes), stored_(stored), e_(e) {}

  std::string run() {
    if (n_.op_type() == "If") return branch();
    const auto* body = find_attribute(n_, "body");
    if (!body || !body->has_g() || !all_named(body->g())) return "it has no body with named inputs and outputs";
    return n_.op_type() == "Loop" ? loop(body->g()) : scan(body->g());
  }

 private:
  static bool all_named(const GraphProto& body) {
    auto named = [](const auto& v) { return !v.name().empty(); };
    return std::all_of(body.input().begin(), body.input().end(), named) &&
           std::all_of(body.output().begin(), body.output().end(), named);
  }

  std::string input(int i) const { return i < n_.input_size() ? n_.input(i) : std::string(); }

  std::string branch() {
    auto condition = known_value(graph_, inferred_, input(0));
    if (!condition || condition->ints.size() != 1) return "its condition depends on the data";
    const auto* taken = find_attribute(n_, condition->ints[0] ? "then_branch" : "else_branch");
    if (!taken || !taken->has_g() || taken->g().output_size() < n_.output_size() || !all_named(taken->g()))
      return "its branch does not fit it";
    if (count_nodes(taken->g()) > max_nodes_) return "its branch has too many nodes";
    Renaming hoisted = hoist(taken->g());
    copy(taken->g(), hoisted, "", {n_.output().begin(), n_.output().end()});
    return "";
  }

  std::string loop(const GraphProto& body) {
    int carried = n_.input_size() - 2, scanned = body.output_size() - 1 - carried;
    if (carried < 0 || body.input_size() != 2 + carried || scanned < 0 || n_.output_size() > carried + scanned)
      return "its body does not fit it";
    int64_t rounds = 0;
    std::string problem = count_rounds(body, rounds);
    if (!problem.empty()) return problem;
    if (rounds == 0 && scanned > 0) return "it has no rounds, and what it would stack has no known shape";

    Renaming hoisted = hoist(body);
    Strings state(n_.input().begin() + 2, n_.input().end());
    std::vector<Strings> stacks(static_cast<size_t>(scanned));
    std::string always = e_.constant(DType::boolean, {}, std::string(1, '\1'));
    for (int64_t i = 0; i < rounds; ++i) {
      Renaming names = hoisted;
      std::string raw(sizeof i, '\0');
      std::memcpy(raw.data(), &i, sizeof i);
      bool vector = body.input(0).type().tensor_type().shape().dim_size() == 1;
      names[body.input(0).name()] = e_.constant(DType::int64, vector ? Shape{1} : Shape{}, raw);
      names[body.input(1).name()] = always;
      for (int c = 0; c < carried; ++c) names[body.input(2 + c).name()] = state[c];
      Strings outputs = copy(body, names, std::to_string(i), {});
      for (int c = 0; c < carried; ++c) state[c] = outputs[1 + c];
      for (int s = 0; s < scanned; ++s) stacks[s].push_back(outputs[1 + carried + s]);
    }
    for (int k = 0; k < n_.output_size(); ++k) {
      if (k < carried) {
        give(k, state[k]);
      } else {
        stack(k, stacks[k - carried], 0);
      }
    }
    return "";
  }

  std::string scan(const GraphProto& body) {
    int scans = static_cast<int>(std::clamp<int64_t>(int_of(n_, "num_scan_inputs", 0), 0, n_.input_size()));
    int carried = n_.input_size() - scans, scanned = body.output_size() - carried;
    if (scans < 1 || body.input_size() != n_.input_size() || scanned < 0 || n_.output_size() > carried + scanned)
      return "its body does not fit it";
    std::vector<int64_t> axes = per_scan("scan_input_axes", scans),
                         directions = per_scan("scan_input_directions", scans);
    std::vector<int64_t> out_axes = per_scan("scan_output_axes", scanned);
    std::vector<int64_t> out_directions = per_scan("scan_output_directions", scanned);
    int64_t rounds = -1;
    for (int s = 0; s < scans; ++s) {
      Shape shape;
      auto type = inferred_.types.find(input(carried + s));
      if (type == inferred_.types.end() || !known_shape(type->second, shape))
        return "the shapes of its inputs are not known";
      int64_t rank = static_cast<int64_t>(shape.size());
      if (axes[s] < 0) axes[s] += rank;
      if (axes[s] < 0 || axes[s] >= rank || (rounds >= 0 && shape[axes[s]] != rounds))
        return "its axes do not fit its inputs";
      rounds = shape[axes[s]];
    }
    if (rounds < 1) return "it has no rounds, and what it would stack has no known shape";
    if (!fits(rounds, body)) return "its rounds would become too many nodes";

    Renaming hoisted = hoist(body);
    Strings state(n_.input().begin(), n_.input().begin() + carried);
    std::vector<Strings> slices, stacks(static_cast<size_t>(scanned));
    for (int s = 0; s < scans; ++s) slices.push_back(e_.split(input(carried + s), axes[s], rounds));
    for (int64_t i = 0; i < rounds; ++i) {
      Renaming names = hoisted;
      for (int c = 0; c < carried; ++c) names[body.input(c).name()] = state[c];
      for (int s = 0; s < scans; ++s) {
        int64_t at = directions[s] ? rounds - 1 - i : i;
        names[body.input(carried + s).name()] = e_.squeeze(slices[s][at], axes[s]);
      }
      Strings outputs = copy(body, names, std::to_string(i), {});
      for (int c = 0; c < carried; ++c) state[c] = outputs[c];
      for (int s = 0; s < scanned; ++s) stacks[s].push_back(outputs[carried + s]);
    }
    for (int k = 0; k < n_.output_size(); ++k) {
      if (k < carried) {
        give(k, state[k]);
      } else {
        Strings& parts = stacks[k - carried];
        if (out_directions[k - carried]) std::reverse(parts.begin(), parts.end());
        stack(k, parts, out_axes[k - carried]);
      }
    }
    return "";
  }

  std::vector<int64_t> per_scan(const char* name, int count) const {
    std::vector<int64_t> values = ints_of(n_, name, {});
    values.resize(static_cast<size_t>(count), 0);
    return values;
  }

  // Runs the part of the body that depends on known values alone (counters, mostly), until its condition is false or
  // the trip count is reached. Returns what is not known.
  std::string count_rounds(const GraphProto& body, int64_t& rounds) {
    constexpr int64_t kForever = std::numeric_limits<int64_t>::max();
    int64_t trips = kForever;
    if (!input(0).empty()) {
      const Value* known = outer_value(input(0));
      if (!known || known->ints.size() != 1) return "its trip count depends on the data";
      trips = known->ints[0];
    }
    Value go;
    go.dtype = DType::boolean;
    go.ints = {1};
    if (!input(1).empty()) {
      const Value* known = outer_value(input(1));
      if (!known || known->ints.size() != 1) return "its condition depends on the data";
      go = *known;
    }
    std::vector<std::optional<Value>> state;
    for (int c = 2; c < n_.input_size(); ++c) {
      const Value* known = outer_value(input(c));
      state.push_back(known ? std::optional<Value>(*known) : std::nullopt);
    }
    std::map<std::string, Value> constants;
    for (const auto& t : body.initializer())
      if (auto value = decode(t); value && !value->floating()) constants[t.name()] = std::move(*value);
    for (rounds = 0; rounds < trips && go.ints[0] != 0; ++rounds) {
      if (!fits(rounds + 1, body)) return "its rounds would become too many nodes";
      std::map<std::string, Value> values = constants;
      Value number;
      number.ints = {rounds};
      values[body.input(0).name()] = number;
      values[body.input(1).name()] = go;
      for (size_t c = 0; c < state.size(); ++c)
        if (state[c]) values[body.input(static_cast<int>(c) + 2).name()] = *state[c];
      evaluate(body, values);
      auto next = values.find(body.output(0).name());
      const Value* condition = next != values.end() ? &next->second : outer_value(body.output(0).name());
      if (condition && condition->ints.size() == 1) {
        go = *condition;
      } else if (rounds + 1 < trips) {
        return "its condition depends on the data";
      }
      for (size_t c = 0; c < state.size(); ++c) {
        auto found = values.find(body.output(static_cast<int>(c) + 1).name());
        state[c] = found == values.end() ? std::nullopt : std::optional<Value>(found->second);
      }
    }
    return "";
  }

  // Adds the values of what the body's nodes make of known single numbers: counters and flags need no more, and shapes
  // that differ from round to round are not what ONNX's inference saw.
  void evaluate(const GraphProto& body, std::map<std::string, Value>& values) {
    for (const auto& n : body.node()) {
      if (!can_fold(n)) continue;
      std::vector<const Value*> inputs;
      for (const auto& name : n.input()) {
        auto found = values.find(name);
        inputs.push_back(found != values.end() ? &found->second : outer_value(name));
      }
      if (std::any_of(inputs.begin(), inputs.end(), [](const Value* v) { return !v || v->size() != 1; })) continue;
      auto outputs = fold(n, inputs);
      if (!outputs) continue;
      for (int i = 0; i < n.output_size() && i < static_cast<int>(outputs->size()); ++i)
        values[n.output(i)] = std::move((*outputs)[i]);
    }
  }

  // Known values of the main graph, weights excepted; nullptr when not known there.
  const Value* outer_value(const std::string& name) {
    auto [at, fresh] = outer_.try_emplace(name);
    if (fresh && !name.empty()) {
      at->second = known_value(graph_, inferred_, name);
      if (at->second && at->second->floating() && !inferred_.values.count(name)) at->second.reset();
    }
    return at->second ? &*at->second : nullptr;
  }

  bool fits(int64_t rounds, const GraphProto& body) const {
    int64_t each = count_nodes(body) + body.input_size() + body.output_size();  // slices and stacks
    return rounds <= max_nodes_ / each;
  }

  // Initializers of a body, moved to the main graph: name in the body -> name there.
  Renaming hoist(const GraphProto& body) {
    Renaming names;
    for (const auto& t : body.initializer()) {
      std::string name = names[t.name()] = e_.names().unique(t.name());
      auto* hoisted = graph_.add_initializer();
      *hoisted = t;
      hoisted->set_name(name);
      if (is_float(dtype_of(t.data_type()))) stored_.push_back({name, TensorKind::parameter});
    }
    return names;
  }

  // One copy of the body's nodes. `names`: what its inputs and initializers are called outside. Returns what its
  // outputs are called; those that `wanted` names are made to have that name.
  Strings copy(const GraphProto& body, Renaming names, const std::string& round, const Strings& wanted) {
    std::set<std::string> made;
    for (const auto& n : body.node()) made.insert(n.output().begin(), n.output().end());
    for (size_t k = 0; k < wanted.size(); ++k)
      if (!wanted[k].empty() && made.count(body.output(static_cast<int>(k)).name()))
        names.emplace(body.output(static_cast<int>(k)).name(), wanted[k]);
    std::string place = e_.prefix() + "/" + (round.empty() ? "" : round + "/");
    for (const std::string& name : made)
      if (!name.empty() && !names.count(name)) names[name] = e_.names().unique(place + name);
    auto renamed = [&](const std::string& name) {
      auto found = names.find(name);
      return found == names.end() ? name : found->second;
    };
    for (const auto& n : body.node()) {
      NodeProto& added = *e_.nodes().Add();
      added = n;
      if (!n.name().empty()) added.set_name(e_.names().unique(place + n.name()));
      for (auto& name : *added.mutable_input()) name = renamed(name);
      for (auto& name : *added.mutable_output()) name = renamed(name);
      for (auto& a : *added.mutable_attribute()) {
        if (a.has_g()) rename_reads(*a.mutable_g(), names);
        for (auto& g : *a.mutable_graphs()) rename_reads(g, names);
      }
    }
    Strings outputs;
    for (int k = 0; k < body.output_size(); ++k) outputs.push_back(renamed(body.output(k).name()));
    for (size_t k = 0; k < wanted.size(); ++k)
      if (outputs[k] != wanted[k]) give(static_cast<int>(k), outputs[k]);
    return outputs;
  }

  void give(int output, const std::string& value) {
    if (!n_.output(output).empty()) e_.op("Identity", {value}, {}, n_.output(output));
  }

  void stack(int output, const Strings& parts, int64_t axis) {
    if (n_.output(output).empty()) return;
    Strings lines;
    std::string axes = e_.ints({axis});
    for (const std::string& part : parts) lines.push_back(e_.op("Unsqueeze", {part, axes}));
    e_.concat(lines, axis, n_.output(output));
  }

  GraphProto& graph_;
  const NodeProto& n_;
  const Inferred& inferred_;
  int64_t max_nodes_;
  std::vector<Stored>& stored_;
  Emitter& e_;
  std::map<std::string, std::optional<Value>> outer_;
};

}  // namespace

bool is_control_flow(const NodeProto& n) {
  return n.domain().empty() && (n.op_type() == "If" || n.op_type() == "Loop" || n.op_type() == "Scan");
}

std::string inline_control_flow(GraphProto& graph, const NodeProto& n, const Inferred& inferred, int64_t max_nodes,
                                std::vector<Stored>& stored, Emitter& e) {
  return ControlFlow(graph, n, inferred, max_nodes, stored, e).run();
}

}  // namespace monet
