#include "engine/onnx/control_flow.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>

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
    if (!body || !body->has_g()) return "it has no body";
    return n_.op_type() == "Loop" ? loop(body->g()) : scan(body->g());
  }

 private:
  std::string input(int i) const { return i < n_.input_size() ? n_.input(i) : std::string(); }

  std::string branch() {
    auto condition = known_value(graph_, inferred_, input(0));
    if (!condition || condition->ints.size() != 1) return "its condition depends on the data";
    const auto* taken = find_attribute(n_, condition->ints[0] ? "then_branch" : "else_branch");
    if (!taken || !taken->has_g() || taken->g().output_size() < n_.output_size()) return "its branch does not fit it";
    if (count_nodes(taken->g()) > max_nodes_) return "its branch has too many nodes";
    Renaming hoisted = hoist(taken->g());
    copy(taken->g(), hoisted, "", {n_.output().begin(), n_.output().end()});
    return "";
  }

  std::string loop(const GraphProto& body) {
    int carried = n_.input_size() - 2, scanned = body.output_size() - 1 - carried;
    if (carried < 0 || body.input_size() != 2 + carried || scanned < 0 || n_.output_size() > carried + scanned)
      return "its body does not fit it";
    auto trips = known_value(graph_, inferred_, input(0));
    if (!trips || trips->ints.size() != 1) return "its trip count depends on the data";
    auto condition = input(1).empty() ? std::nullopt : known_value(graph_, inferred_, input(1));
    if (!input(1).empty() && (!condition || condition->ints.size() != 1)) return "its condition depends on the data";
    int64_t rounds = condition && !condition->ints[0] ? 0 : std::max<int64_t>(0, trips->ints[0]);
    if (rounds > 1 && !stays_true(body)) return "its condition depends on the data";
    if (rounds == 0 && scanned > 0) return "it has no rounds, and what it would stack has no known shape";
    if (!fits(rounds, body)) return too_many(rounds);

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
    if (!fits(rounds, body)) return too_many(rounds);

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

  // Whether the condition that the body gives out is true whenever the one it gets is.
  bool stays_true(const GraphProto& body) const {
    std::string name = body.output(0).name();
    for (int left = body.node_size(); left >= 0; --left) {
      if (name == body.input(1).name()) return true;
      for (const auto& t : body.initializer())
        if (t.name() == name) return is_true(decode(t));
      auto producer = std::find_if(body.node().begin(), body.node().end(), [&](const NodeProto& n) {
        return std::find(n.output().begin(), n.output().end(), name) != n.output().end();
      });
      if (producer == body.node().end()) return is_true(known_value(graph_, inferred_, name));
      if (producer->op_type() == "Constant") {
        const auto* value = find_attribute(*producer, "value");
        return value && value->has_t() && is_true(decode(value->t()));
      }
      if ((producer->op_type() != "Identity" && producer->op_type() != "Cast") || producer->input_size() != 1)
        return false;
      name = producer->input(0);
    }
    return false;
  }

  static bool is_true(const std::optional<Value>& value) {
    return value && value->ints.size() == 1 && value->ints[0] != 0;
  }

  bool fits(int64_t rounds, const GraphProto& body) const {
    int64_t each = count_nodes(body) + body.input_size() + body.output_size();  // slices and stacks
    return rounds <= max_nodes_ / each;
  }
  static std::string too_many(int64_t rounds) {
    return "its " + std::to_string(rounds) + " rounds would become too many nodes";
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
