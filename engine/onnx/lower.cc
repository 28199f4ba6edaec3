#include "engine/onnx/lower.h"

#include <set>

#include "engine/onnx/control_flow.h"
#include "engine/onnx/emitter.h"
#include "engine/onnx/recurrent.h"

namespace monet {

namespace {

using ::onnx::NodeProto;

bool is_global_norm_pool(const NodeProto& n) { return n.domain().empty() && n.op_type() == "GlobalLpPool"; }

std::string localise(const NodeProto& n, const Inferred& inferred, Emitter& e) {
  Shape shape;
  auto type = inferred.types.find(n.input(0));
  if (type == inferred.types.end() || !known_shape(type->second, shape) || shape.size() < 3)
    return "the shape of its input is not known";
  e.op("LpPool", {n.input(0)},
       {int_attribute("p", int_of(n, "p", 2)), ints_attribute("kernel_shape", {shape.begin() + 2, shape.end()})},
       n.output(0));
  return "";
}

// Before opset 21 scale and bias belong to groups; ONNX 1.17's converter leaves them so (it registers an adapter that
// does nothing over the right one). They are repeated for the channels of their group.
bool is_old_group_norm(const NodeProto& n, const Inferred& inferred) {
  if (!n.domain().empty() || n.op_type() != "GroupNormalization") return false;
  Shape x, scale;
  auto of = [&](int i, Shape& shape) {
    auto type = inferred.types.find(n.input(i));
    return type != inferred.types.end() && known_shape(type->second, shape);
  };
  int64_t groups = int_of(n, "num_groups", 0);
  return of(0, x) && of(1, scale) && x.size() >= 2 && groups > 0 && x[1] > groups && x[1] % groups == 0 &&
         scale == Shape{groups};
}

void repeat_for_channels(const NodeProto& n, const Inferred& inferred, Emitter& e) {
  Shape x;
  known_shape(inferred.types.at(n.input(0)), x);
  int64_t groups = int_of(n, "num_groups", 0);
  NodeProto norm = n;
  for (int i : {1, 2}) {
    std::string line = e.op("Expand", {e.reshape(n.input(i), {groups, 1}), e.ints({groups, x[1] / groups})});
    norm.set_input(i, e.reshape(line, {x[1]}));
  }
  *e.nodes().Add() = norm;
}

}  // namespace

bool lower(::onnx::ModelProto& model, const Inferred& inferred, std::vector<Stored>& stored, Lowered& lowered) {
  ::onnx::GraphProto& graph = *model.mutable_graph();
  lowered.kept.clear();
  auto concerned = [&](const NodeProto& n) {
    return is_control_flow(n) || is_recurrent(n) || is_global_norm_pool(n) || is_old_group_norm(n, inferred);
  };
  bool any = false;
  for (const auto& n : graph.node()) any = any || concerned(n);
  if (!any) return false;

  // ONNX finds a Scan of opset 8 (with a batch dimension of its own, which the converter leaves) unfit. An If may well
  // be unfit in the branch that is not taken.
  std::set<int> unfit;
  for (size_t k = 0; k < inferred.problems.size(); ++k)
    if (inferred.problems[k].code == "shape-error" && graph.node(inferred.failed[k]).op_type() == "Scan")
      unfit.insert(inferred.failed[k]);

  Names names;
  add_names(graph, names);
  Nodes nodes;
  bool changed = false;
  for (int i = 0; i < graph.node_size(); ++i) {
    NodeProto& n = *graph.mutable_node(i);
    if (!concerned(n) || unfit.count(i)) {
      nodes.Add()->Swap(&n);
      continue;
    }
    int before = nodes.size();
    int64_t room = kMaxLowered - lowered.nodes;
    Emitter e(nodes, names, name_of(n));
    if (is_old_group_norm(n, inferred)) {
      repeat_for_channels(n, inferred, e);
      changed = true;
      continue;
    }
    std::string reason = is_control_flow(n) ? inline_control_flow(graph, n, inferred, room, stored, e)
                         : is_recurrent(n)  ? unroll_recurrent(graph, n, inferred, room, e)
                                            : localise(n, inferred, e);
    if (reason.empty()) {
      changed = true;
      lowered.nodes += nodes.size() - before;
      ++lowered.replaced[n.op_type()];
    } else {
      lowered.kept.emplace(name_of(n), Lowered::Kept{reason, is_control_flow(n)});
      nodes.Add()->Swap(&n);
    }
  }
  graph.mutable_node()->Swap(&nodes);
  return changed;
}

const char* lowering_condition(const std::string& op) {
  constexpr const char* kRecurrent =
      "unrolled; no clip, sequence_lens constant and full, activations without parameters";
  static const std::map<std::string, const char*> table = {
      {"GRU", kRecurrent},
      {"GlobalLpPool", "LpPool over the whole image"},
      {"If", "its taken branch; the condition constant"},
      {"LSTM", kRecurrent},
      {"Loop", "unrolled; the trip count constant, the condition always true"},
      {"RNN", kRecurrent},
      {"Scan", "unrolled"},
  };
  auto found = table.find(op);
  return found == table.end() ? nullptr : found->second;
}

std::optional<Value> known_value(const ::onnx::GraphProto& graph, const Inferred& inferred, const std::string& name) {
  auto folded = inferred.values.find(name);
  if (folded != inferred.values.end()) return decode(folded->second);
  for (const auto& t : graph.initializer())
    if (t.name() == name) return decode(t);
  return std::nullopt;
}

}  // namespace monet
