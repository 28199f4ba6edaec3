#include "engine/onnx/training_artifact.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <unordered_map>

#include "engine/onnx/foreign.h"

namespace monet {

namespace {

constexpr const char* kGradientSuffix = "_grad";  // of a tensor's name
constexpr const char* kGradientOf = "_Grad/";     // in names of a node's gradient nodes

bool is_gradient_operator(const std::string& domain, const std::string& op) {
  return domain == kMicrosoft && op.size() > 4 && op.compare(op.size() - 4, 4, "Grad") == 0;
}

class Recogniser {
 public:
  explicit Recogniser(Graph& graph) : graph_(graph) {
    for (TensorId t = 0; t < static_cast<TensorId>(graph.tensors.size()); ++t) by_name_[graph.tensors[t].name] = t;
    for (NodeId id = 0; id < size(); ++id)
      if (!graph.nodes[id].name.empty()) nodes_.emplace(graph.nodes[id].name, id);
  }

  void run() {
    find_phases();
    find_kinds();
    find_gradients();
    find_origins();
    find_contractions();
    find_updates();
    make_units();
  }

 private:
  NodeId size() const { return static_cast<NodeId>(graph_.nodes.size()); }
  Phase phase(NodeId id) const { return graph_.nodes[id].phase; }

  template <typename Visit>
  void for_each_producer(NodeId id, const Visit& visit) const {
    for (TensorId t : graph_.nodes[id].inputs)
      if (t != kNone && graph_.tensors[t].producer != kNone) visit(graph_.tensors[t].producer);
  }

  void find_phases() {
    std::vector<bool> forward(graph_.nodes.size()), after_gradient(graph_.nodes.size());
    for (NodeId id = 0; id < size(); ++id) {
      bool gradient = is_gradient_operator(graph_.nodes[id].domain, graph_.nodes[id].op), after = false;
      for_each_producer(id, [&](NodeId p) { after = after || after_gradient[p]; });
      if (gradient && !after) {
        if (seed_ == kNone) seed_ = id;
        for_each_producer(id, [&](NodeId p) { forward[p] = true; });
      }
      after_gradient[id] = gradient || after;
    }
    for (NodeId id = size(); id-- > 0;)
      if (forward[id]) for_each_producer(id, [&](NodeId p) { forward[p] = true; });
    bool optimizer = false;
    for (NodeId id = 0; id < size(); ++id) {
      Node& node = graph_.nodes[id];
      optimizer = optimizer || node.op.find("Optimizer") != std::string::npos ||
                  node.name.find("Optimizer") != std::string::npos;
      node.phase = forward[id] ? Phase::forward : optimizer ? Phase::optimizer : Phase::backward;
    }
  }

  void find_kinds() {
    std::vector<std::array<bool, kPhases>> read(graph_.tensors.size());
    for (const Node& node : graph_.nodes)
      for (TensorId t : node.inputs)
        if (t != kNone) read[t][static_cast<size_t>(node.phase)] = true;
    auto by = [&](TensorId t, Phase p) { return read[t][static_cast<size_t>(p)]; };
    const Node& seed = graph_.nodes[seed_];
    constexpr size_t kLabels = 2;  // input of SoftmaxCrossEntropyLossGrad
    TensorId labels = seed.inputs.size() > kLabels ? seed.inputs[kLabels] : kNone;
    size_t last_data = 0;
    for (size_t i = 0; i < graph_.inputs.size(); ++i)
      if (graph_.inputs[i] == labels) last_data = i;
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      TensorId t = graph_.inputs[i];
      Tensor& tensor = graph_.tensors[t];
      if (t == labels) {
        tensor.kind = TensorKind::label;
      } else if (i > last_data && tensor.kind == TensorKind::input) {
        bool state = tensor.name.find("accumulation") != std::string::npos ||
                     (by(t, Phase::optimizer) && !by(t, Phase::backward));
        tensor.kind = by(t, Phase::forward) && is_float(tensor.dtype) ? TensorKind::parameter
                      : state                                         ? TensorKind::state
                                                                      : TensorKind::buffer;
      }
      // Stored numbers are constants of the computation, or settings of the optimizer.
      if (tensor.kind == TensorKind::parameter && !tensor.data.empty() && elements(tensor.shape) == 1)
        tensor.kind = by(t, Phase::optimizer) ? TensorKind::scalar : TensorKind::constant;
    }
    auto& inputs = graph_.inputs;
    inputs.erase(std::remove_if(inputs.begin(), inputs.end(),
                                [&](TensorId t) { return graph_.tensors[t].kind == TensorKind::constant; }),
                 inputs.end());
  }

  TensorId named(const std::string& name) const {
    auto found = by_name_.find(name);
    return found == by_name_.end() ? kNone : found->second;
  }

  // "X_grad", "X_grad_0" (one of several that are summed), "X_summed_grad", "X_optimizer_end",
  // "X_grad.accumulation.buffer", "X_optimizer_first_moment": what the tensor is about, if X is a tensor.
  void find_gradients() {
    for (Tensor& tensor : graph_.tensors) {
      if (tensor.producer != kNone && phase(tensor.producer) == Phase::forward) continue;
      for (const char* mark : {"_summed_grad", kGradientSuffix, "_optimizer"}) {
        size_t at = tensor.name.rfind(mark);
        if (at == std::string::npos) continue;
        TensorId of = named(tensor.name.substr(0, at));
        if (of == kNone) continue;
        bool inner = std::string(mark) == "_optimizer" && tensor.producer != kNone &&
                     tensor.name.find("_end") == std::string::npos;
        if (!inner) tensor.of = of;
        break;
      }
    }
  }

  NodeId forward_node(const std::string& text) const {
    size_t end = text.rfind(kGradientOf);
    if (end == std::string::npos) return kNone;
    // What precedes the node's name is the name of the piece: "padded_input/layer1/conv1/Conv_Grad/ConvGrad_0".
    for (size_t start = 0; start != std::string::npos && start < end; start = text.find('/', start + 1)) {
      auto found = nodes_.find(text.substr(start, end - start));
      if (found != nodes_.end() && phase(found->second) == Phase::forward) return found->second;
    }
    return kNone;
  }

  bool is_accumulation(const Node& node) const {
    if (node.op != "Sum" || node.outputs.empty()) return false;
    return std::all_of(node.inputs.begin(), node.inputs.end(), [&](TensorId t) {
      if (t == kNone) return false;
      const Tensor& tensor = graph_.tensors[t];
      return tensor.of != kNone || tensor.kind == TensorKind::state;
    });
  }

  static bool multiplies(const Node& node) {
    return is_contraction(node) || (node.domain == kMicrosoft && node.op == "FusedMatMul");
  }

  // A forward contraction that reads one of the node's inputs and makes something of another one's shape.
  NodeId contraction_with(const Node& node) const {
    for (NodeId id = 0; id < seed_; ++id) {
      const Node& forward = graph_.nodes[id];
      if (forward.phase != Phase::forward || !is_contraction(forward) || forward.inputs.size() < 2) continue;
      bool weight = false, shape = false;
      for (TensorId t : node.inputs) {
        weight = weight || (t != kNone && t == forward.inputs[1]);
        shape = shape || (t != kNone && graph_.tensors[t].shape == graph_.tensors[forward.outputs[0]].shape);
      }
      if (weight && shape) return id;
    }
    return kNone;
  }

  void find_origins() {
    for (NodeId id = 0; id < size(); ++id) {
      Node& node = graph_.nodes[id];
      if (node.phase != Phase::backward) continue;
      if (id == seed_) {
        node.origin =
            node.inputs.size() > 1 && node.inputs[1] != kNone ? graph_.tensors[node.inputs[1]].producer : kNone;
        continue;
      }
      if (is_accumulation(node)) {
        TensorId of = graph_.tensors[node.outputs[0]].of;
        node.origin = of == kNone ? kNone : graph_.tensors[of].producer;
        continue;
      }
      node.origin = forward_node(node.name);
      for (TensorId t : node.outputs)
        if (node.origin == kNone && t != kNone) node.origin = forward_node(graph_.tensors[t].name);
      for (TensorId t : node.inputs)  // unnamed: the gradient that it reads tells
        if (node.origin == kNone && t != kNone && graph_.tensors[t].of != kNone)
          node.origin = graph_.tensors[graph_.tensors[t].of].producer;
      if (node.origin != kNone && phase(node.origin) != Phase::forward) node.origin = kNone;
      // A gradient that several nodes share (of a sum's operands) tells nothing: then the weight does.
      if (multiplies(node) && (node.origin == kNone || !is_contraction(graph_.nodes[node.origin])))
        node.origin = contraction_with(node);
    }
  }

  // A node of a gradient's group: backward, same origin, no accumulation.
  bool in_group(NodeId id, NodeId origin) const {
    return phase(id) == Phase::backward && graph_.nodes[id].origin == origin && !is_accumulation(graph_.nodes[id]);
  }

  TensorId through_views(TensorId t) const {
    while (t != kNone && graph_.tensors[t].producer != kNone && is_view(graph_.nodes[graph_.tensors[t].producer]))
      t = graph_.nodes[graph_.tensors[t].producer].inputs[0];
    return t;
  }

  void find_contractions() {
    contraction_.assign(graph_.nodes.size(), kNone);
    target_.assign(graph_.nodes.size(), kNone);
    from_data_.assign(graph_.tensors.size(), false);
    for (size_t t = 0; t < graph_.tensors.size(); ++t) from_data_[t] = graph_.tensors[t].kind == TensorKind::input;
    for (const Node& node : graph_.nodes) {
      bool any = false;
      for (TensorId t : node.inputs) any = any || (t != kNone && from_data_[t]);
      for (TensorId t : node.outputs)
        if (t != kNone && any) from_data_[t] = true;
    }
    for (NodeId id = 0; id < size(); ++id) {
      const Node& node = graph_.nodes[id];
      if (node.phase != Phase::backward || node.origin == kNone || !multiplies(node)) continue;
      const Node& forward = graph_.nodes[node.origin];
      if (!is_contraction(forward) || !in_group(id, node.origin)) continue;
      // The layout moves before it, and the operand of the forward node that they start from.
      size_t differentiated = node.op == "ConvTranspose" ? 0 : 1;
      std::vector<NodeId> pending{id};
      while (!pending.empty()) {
        NodeId n = pending.back();
        pending.pop_back();
        contraction_[n] = id;
        for (TensorId t : graph_.nodes[n].inputs) {
          if (t == kNone) continue;
          NodeId p = graph_.tensors[t].producer;
          if (p != kNone && in_group(p, node.origin)) {
            if (contraction_[p] == kNone && !multiplies(graph_.nodes[p])) pending.push_back(p);
            continue;
          }
          for (size_t k : {0, 1})
            if (through_views(t) == through_views(forward.inputs[k])) differentiated = 1 - k;
        }
      }
      target_[id] = forward.inputs[differentiated];
    }
    for (NodeId id = 0; id < size(); ++id) {  // the layout moves after it
      if (contraction_[id] != kNone || phase(id) != Phase::backward || graph_.nodes[id].origin == kNone) continue;
      for_each_producer(id, [&](NodeId p) {
        if (contraction_[p] != kNone && in_group(id, graph_.nodes[p].origin)) contraction_[id] = contraction_[p];
      });
    }
  }

  // Of each optimizer node, the node whose graph output it leads to.
  void find_updates() {
    update_.assign(graph_.nodes.size(), kNone);
    for (TensorId t : graph_.outputs) {
      NodeId last = graph_.tensors[t].producer;
      if (last == kNone || phase(last) != Phase::optimizer) continue;
      std::vector<NodeId> pending{last};
      while (!pending.empty()) {
        NodeId n = pending.back();
        pending.pop_back();
        if (update_[n] != kNone) continue;
        update_[n] = last;
        for_each_producer(n, [&](NodeId p) {
          if (phase(p) == Phase::optimizer) pending.push_back(p);
        });
      }
    }
  }

  Unit unit_of(NodeId id) const {
    const Node& node = graph_.nodes[id];
    Unit unit{.op = node.op, .phase = node.phase, .origin = node.origin};
    if (node.phase == Phase::forward) {
      unit.origin = id;
      if (is_contraction(node)) unit.contraction = id;
    } else if (node.phase == Phase::optimizer) {
      NodeId last = update_[id];
      const std::string& name = last == kNone ? node.name : graph_.nodes[last].name;
      unit.op = name.substr(0, name.find('_'));  // "Adam_Update_conv1.weight"
      if (unit.op.empty()) unit.op = node.op;
      unit.role = Role::update;
      TensorId end = last == kNone ? kNone : graph_.nodes[last].outputs[0];
      unit.target = end == kNone ? kNone : graph_.tensors[end].of;
    } else if (is_accumulation(node)) {
      unit.role = Role::accumulate;
    } else {
      if (node.origin != kNone) unit.op = graph_.nodes[node.origin].op;
      unit.role = Role::gradient;
      if (contraction_[id] != kNone && target_[contraction_[id]] != kNone) {
        unit.contraction = contraction_[id];
        unit.target = target_[unit.contraction];
        unit.role = from_data_[unit.target] ? Role::input_gradient : Role::weight_gradient;
      }
    }
    return unit;
  }

  void make_units() {
    graph_.units.clear();
    std::optional<NodeId> open;  // update or contraction that the last unit belongs to
    for (NodeId id = 0; id < size(); ++id) {
      Unit unit = unit_of(id);
      // Neighbours that are one gradient or one update.
      bool joins = false;
      if (!graph_.units.empty() && unit.phase != Phase::forward && unit.role != Role::accumulate) {
        const Unit& last = graph_.units.back();
        bool same_update = unit.phase != Phase::optimizer || (update_[id] != kNone && update_[id] == open);
        joins = last.phase == unit.phase && last.role == unit.role && last.origin == unit.origin &&
                last.contraction == unit.contraction && same_update &&
                (unit.origin != kNone || unit.phase == Phase::optimizer);
      }
      open = update_[id];
      if (!joins) graph_.units.push_back(std::move(unit));
      graph_.units.back().nodes.push_back(id);
      graph_.nodes[id].unit = static_cast<UnitId>(graph_.units.size() - 1);
    }
    // A contraction whose layout moves stand apart counts once: where it stands itself.
    for (Unit& unit : graph_.units)
      if (unit.contraction != kNone &&
          std::find(unit.nodes.begin(), unit.nodes.end(), unit.contraction) == unit.nodes.end()) {
        unit.contraction = kNone;
        unit.target = kNone;
        unit.role = Role::gradient;
      }
  }

  Graph& graph_;
  std::unordered_map<std::string, TensorId> by_name_;
  std::unordered_map<std::string, NodeId> nodes_;
  NodeId seed_ = kNone;              // the first gradient node
  std::vector<NodeId> contraction_;  // by node: the multiplication that it belongs to
  std::vector<TensorId> target_;     // of contractions
  std::vector<bool> from_data_;      // tensors that depend on the step's data
  std::vector<NodeId> update_;       // by node
};

}  // namespace

bool is_training_artifact(const ::onnx::GraphProto& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(),
                     [](const auto& n) { return is_gradient_operator(n.domain(), n.op_type()); });
}

void recognise_training(Graph& graph) { Recogniser(graph).run(); }

}  // namespace monet
