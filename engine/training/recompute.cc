#include "engine/training/recompute.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "engine/ir/names.h"
#include "engine/training/builder.h"
#include "engine/training/training_graph.h"

namespace monet {

namespace {

bool is_random(const Node& node) {
  static const std::unordered_set<std::string> kRandom = {
      "Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"};
  return kRandom.count(node.op) > 0 && !is_view(node);
}

bool has_subgraph(const Node& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(),
                     [](const Attribute& a) { return std::holds_alternative<OpaqueAttribute>(a.value); });
}

// Whether the node's output `t` would come out another if computed again. A Dropout is replayed with its mask.
bool is_unrepeatable(const Node& node, TensorId t) {
  bool replayed = node.op == "Dropout" && t == node.outputs[0];
  return has_subgraph(node) || (is_random(node) && !replayed);
}

// Copies the graph unit by unit, with the units of recomputation put in.
class Rewriter {
 public:
  Rewriter(const Graph& old, const std::vector<TensorId>& dropped)
      : old_(old), storage_(storage(old)), is_dropped_(old.tensors.size()), copies_(old.tensors.size(), kNone) {
    for (TensorId t : dropped) is_dropped_[t] = true;
    for (TensorId t : saved_for_backward(old)) is_saved_.insert(t);
    for (const Tensor& tensor : old.tensors) names_.add(tensor.name);
    graph_ = old;
    graph_.nodes.clear();
    graph_.units.clear();
  }

  Graph run() {
    for (const Unit& unit : old_.units) {
      if (unit.phase == Phase::backward)
        for (NodeId id : unit.nodes)
          for (TensorId t : old_.nodes[id].inputs)
            if (t != kNone) copy(t);
      add(unit);
    }
    return std::move(graph_);
  }

 private:
  bool is_forward(TensorId t) const {
    NodeId producer = old_.tensors[t].producer;
    return producer != kNone && old_.nodes[producer].phase == Phase::forward;
  }

  bool is_kept(TensorId t) const {
    if (!is_forward(t)) return true;
    TensorId at = storage_[t];
    return !is_forward(at) || (is_saved_.count(at) && !is_dropped_[at]);
  }

  // Finds what the backward pass reads in place of `wanted`. Depth first over an explicit stack: chains can be long.
  void copy(TensorId wanted) {
    std::vector<TensorId> stack = {wanted};
    while (!stack.empty()) {
      TensorId t = stack.back();
      if (copies_[t] != kNone) {
        stack.pop_back();
        continue;
      }
      const Node* node = is_kept(t) ? nullptr : &old_.nodes[old_.tensors[t].producer];
      if (!node || is_unrepeatable(*node, t)) {
        copies_[t] = t;
        stack.pop_back();
        continue;
      }
      size_t before = stack.size();
      for (TensorId input : node->inputs)
        if (input != kNone && copies_[input] == kNone) stack.push_back(input);
      if (stack.size() > before) continue;
      is_random(*node) ? replay(old_.tensors[t].producer) : repeat(old_.tensors[t].producer);
      stack.pop_back();
    }
  }

  TensorId copied_tensor(TensorId t) {
    Tensor tensor = old_.tensors[t];
    tensor.name = names_.unique(tensor.name + "_recomputed");
    tensor.of = kNone;
    TensorId added = graph_.add(std::move(tensor));
    copies_[t] = is_kept(t) ? t : added;
    return added;
  }

  // A unit that does the forward node again.
  void repeat(NodeId id) {
    Node node = old_.nodes[id];
    if (!node.name.empty()) node.name += "_recomputed";
    for (TensorId& t : node.inputs)
      if (t != kNone) t = copies_[t];
    for (TensorId& t : node.outputs)
      if (t != kNone) t = copied_tensor(t);
    begin(id);
    append(std::move(node));
    if (is_contraction(graph_.nodes.back())) graph_.units.back().contraction = graph_.units.back().nodes.back();
  }

  // Dropout with the mask of the forward pass: y = x / (1 - ratio) where the mask holds, else 0.
  void replay(NodeId id) {
    const Node& dropout = old_.nodes[id];
    TensorId x = copies_[dropout.inputs[0]], mask = kNone;
    if (dropout.outputs.size() > 1) mask = dropout.outputs[1];
    if (mask == kNone) {  // forward nodes keep their indices
      const Tensor& y = old_.tensors[dropout.outputs[0]];
      mask = graph_.add(
          Tensor{.name = names_.unique(y.name + "_mask"), .dtype = DType::boolean, .shape = y.shape, .producer = id});
      graph_.nodes[id].outputs.resize(2, kNone);
      graph_.nodes[id].outputs[1] = mask;
    }
    double ratio = 0.5;  // ONNX's default
    if (dropout.inputs.size() > 1 && dropout.inputs[1] != kNone) known_scalar(old_.tensors[dropout.inputs[1]], &ratio);
    DType type = old_.tensors[dropout.outputs[0]].dtype;
    auto constant = [&](double value) {
      return graph_.add(Tensor{.name = names_.unique("recompute_constant"),
                               .dtype = type,
                               .kind = TensorKind::constant,
                               .data = encode(value, type)});
    };
    begin(id);
    TensorId y = copied_tensor(dropout.outputs[0]);
    Tensor kept = graph_.tensors[y];
    kept.name = names_.unique(kept.name + "/Where");
    TensorId selected = graph_.add(std::move(kept));
    append(Node{.op = "Where", .inputs = {mask, x, constant(0)}, .outputs = {selected}});
    append(Node{.op = "Mul", .inputs = {selected, constant(1 / (1 - ratio))}, .outputs = {y}});
  }

  void begin(NodeId origin) {
    graph_.units.push_back({.op = old_.nodes[origin].op, .phase = Phase::recompute, .origin = origin});
  }

  // To the last unit.
  void append(Node node) {
    Unit& unit = graph_.units.back();
    node.phase = unit.phase;
    if (unit.phase == Phase::recompute) node.origin = unit.origin;
    node.unit = static_cast<UnitId>(graph_.units.size()) - 1;
    unit.nodes.push_back(graph_.add(std::move(node)));
  }

  void add(const Unit& unit) {
    graph_.units.push_back(unit);
    graph_.units.back().nodes.clear();
    for (NodeId id : unit.nodes) {
      Node node = old_.nodes[id];
      if (unit.phase == Phase::backward)
        for (TensorId& t : node.inputs)
          if (t != kNone) t = copies_[t];
      append(std::move(node));
      if (unit.contraction == id) graph_.units.back().contraction = graph_.units.back().nodes.back();
    }
  }

  const Graph& old_;
  std::vector<TensorId> storage_;
  std::vector<bool> is_dropped_;
  std::unordered_set<TensorId> is_saved_;
  std::vector<TensorId> copies_;  // what to read instead: itself when kept; kNone: not yet known
  Names names_;
  Graph graph_;
};

}  // namespace

bool is_recomputable(const Graph& training, TensorId t) {
  NodeId producer = training.tensors[t].producer;
  return producer != kNone && !is_unrepeatable(training.nodes[producer], t);
}

void recompute(Graph& training, const std::vector<std::string>& dropped, std::vector<Diagnostic>& problems) {
  if (dropped.empty()) return;
  std::unordered_map<std::string, TensorId> saved;
  for (TensorId t : saved_for_backward(training))
    if (training.tensors[t].kind == TensorKind::computed) saved.emplace(training.tensors[t].name, t);
  std::vector<TensorId> chosen;
  for (const std::string& name : dropped) {
    auto at = saved.find(name);
    if (at == saved.end()) {
      problems.push_back({"not-saved", "tensor " + name + " is not saved for the backward pass", "recompute", name,
                          "the report's memory.saved lists the tensors that are"});
    } else if (!is_recomputable(training, at->second)) {
      const Node& node = training.nodes[training.tensors[at->second].producer];
      problems.push_back({"not-recomputable",
                          "tensor " + name + " cannot be computed again: " + node.op +
                              (is_random(node) ? " draws it at random" : " has a subgraph"),
                          "recompute", name, "keep it"});
    } else {
      chosen.push_back(at->second);
    }
  }
  if (problems.empty()) training = Rewriter(training, chosen).run();
}

}  // namespace monet
