#include "engine/onnx/to_ir.h"

#include <algorithm>
#include <map>
#include <optional>

#include "engine/onnx/metadata.h"

namespace monet {

namespace {

using ::onnx::AttributeProto;
using ::onnx::NodeProto;
using ::onnx::TensorProto;

Attribute attribute_of(const AttributeProto& a) {
  Attribute out;
  out.name = a.name();
  switch (a.type()) {
    case AttributeProto::INT:
      out.value = static_cast<int64_t>(a.i());
      break;
    case AttributeProto::FLOAT:
      out.value = a.f();
      break;
    case AttributeProto::STRING:
      out.value = a.s();
      break;
    case AttributeProto::INTS:
      out.value = std::vector<int64_t>(a.ints().begin(), a.ints().end());
      break;
    case AttributeProto::FLOATS:
      out.value = std::vector<float>(a.floats().begin(), a.floats().end());
      break;
    case AttributeProto::STRINGS:
      out.value = std::vector<std::string>(a.strings().begin(), a.strings().end());
      break;
    case AttributeProto::TENSOR:
      if (a.t().has_raw_data() || elements(shape_of(a.t())) == 0) {
        out.value = TensorAttribute{dtype_of(a.t().data_type()), shape_of(a.t()), a.t().raw_data()};
        break;
      }
      [[fallthrough]];
    default:
      out.value = OpaqueAttribute{a.SerializeAsString()};
      break;
  }
  return out;
}

class Builder {
 public:
  Builder(const ::onnx::ModelProto& model, const Inferred& inferred, const std::vector<Stored>& stored)
      : model_(model), source_(model.graph()), inferred_(inferred), stored_(stored) {}

  Graph run(bool keep_all) {
    graph_.name = source_.name();
    for (const auto& import : model_.opset_import()) {
      if (import.domain().empty()) {
        graph_.opset = static_cast<int>(import.version());
      } else {
        graph_.opsets[import.domain()] = static_cast<int>(import.version());
      }
    }
    find_live(keep_all);
    add_inputs();
    for (int i = 0; i < source_.node_size(); ++i)
      if (live_[i]) add_node(source_.node(i));
    for (const auto& v : source_.output()) graph_.outputs.push_back(tensor(v.name()));
    restore_metadata();
    assign_single_units(graph_);
    return std::move(graph_);
  }

 private:
  // Nodes that outputs need and that folding did not replace; names that those read.
  void find_live(bool keep_all) {
    std::unordered_map<std::string, int> producer;
    for (int i = 0; i < source_.node_size(); ++i)
      for (const auto& output : source_.node(i).output())
        if (!output.empty()) producer[output] = i;
    live_.assign(static_cast<size_t>(source_.node_size()), false);
    std::vector<int> pending;
    auto need = [&](const std::string& name) {
      used_.insert(name);
      auto found = producer.find(name);
      if (found == producer.end() || live_[found->second]) return;
      live_[found->second] = true;
      pending.push_back(found->second);
    };
    for (const auto& v : source_.output()) need(v.name());
    for (const auto& n : source_.node())
      for (const auto& output : n.output())
        if (keep_all && !output.empty()) need(output);
    while (!pending.empty()) {
      int n = pending.back();
      pending.pop_back();
      for_each_read(source_.node(n), [&](const std::string& name) {
        if (inferred_.values.count(name)) {
          used_.insert(name);
        } else {
          need(name);
        }
      });
    }
  }

  TensorId add_tensor(const std::string& name, TensorKind kind) {
    Tensor t;
    t.name = name;
    t.kind = kind;
    const auto& type = inferred_.types.at(name);
    known_shape(type, t.shape);
    t.dtype = dtype_of(type.tensor_type().elem_type());
    TensorId id = graph_.add(std::move(t));
    ids_[name] = id;
    return id;
  }

  void add_inputs() {
    constexpr size_t kSmall = 1024;  // bytes: the IR keeps values of parameters and buffers up to here
    std::unordered_set<std::string> is_stored;
    for (const Stored& s : stored_) is_stored.insert(s.name);
    for (const auto& t : source_.initializer()) initializers_[t.name()] = &t;
    for (const auto& v : source_.input()) {
      if (is_stored.count(v.name())) continue;
      graph_.inputs.push_back(add_tensor(v.name(), TensorKind::input));
    }
    for (TensorKind kind : {TensorKind::parameter, TensorKind::buffer})
      for (const Stored& s : stored_) {
        if (s.kind != kind || !used_.count(s.name)) continue;
        TensorId id = add_tensor(s.name, kind);
        graph_.inputs.push_back(id);
        auto value = initializers_.find(s.name);
        if (value != initializers_.end() && value->second->raw_data().size() <= kSmall)
          graph_.tensors[id].data = value->second->raw_data();
      }
  }

  // The tensor of this name; a constant is made when first met.
  TensorId tensor(const std::string& name) {
    if (name.empty()) return kNone;
    auto found = ids_.find(name);
    if (found != ids_.end()) return found->second;
    const TensorProto* value = nullptr;
    auto folded = inferred_.values.find(name);
    if (folded != inferred_.values.end()) {
      value = &folded->second;
    } else {
      auto stored = initializers_.find(name);
      if (stored != initializers_.end()) value = stored->second;
    }
    TensorId id = add_tensor(name, value ? TensorKind::constant : TensorKind::computed);
    if (value) graph_.tensors[id].data = value->raw_data();
    return id;
  }

  void add_node(const NodeProto& n) {
    Node node;
    node.name = n.name();
    node.op = n.op_type();
    node.domain = n.domain();
    for (const auto& input : n.input()) node.inputs.push_back(tensor(input));
    while (!node.inputs.empty() && node.inputs.back() == kNone) node.inputs.pop_back();
    for_each_read(n, [&](const std::string& name) { tensor(name); });  // what subgraphs capture must exist
    for (const auto& output : n.output()) node.outputs.push_back(output.empty() ? kNone : output_tensor(output));
    while (!node.outputs.empty() && node.outputs.back() == kNone) node.outputs.pop_back();
    for (const auto& a : n.attribute()) node.attributes.push_back(attribute_of(a));
    protos_.push_back(&n);
    graph_.add(std::move(node));
  }

  // An output is computed here even when its value is known (a constant graph output keeps its node).
  TensorId output_tensor(const std::string& name) { return add_tensor(name, TensorKind::computed); }

  void restore_metadata();

  const ::onnx::ModelProto& model_;
  const ::onnx::GraphProto& source_;
  const Inferred& inferred_;
  const std::vector<Stored>& stored_;
  Graph graph_;
  std::vector<bool> live_;
  std::unordered_set<std::string> used_;
  std::unordered_map<std::string, TensorId> ids_;
  std::unordered_map<std::string, const TensorProto*> initializers_;
  std::vector<const NodeProto*> protos_;  // of graph_.nodes
};

// Numbers in metadata are untrusted: anything out of range counts as absent.
void Builder::restore_metadata() {
  if (!has_phases(source_)) return;
  std::map<std::string, NodeId> by_index;  // index in the exported file -> node here
  for (size_t i = 0; i < protos_.size(); ++i) by_index[metadata(*protos_[i], kIndexKey)] = static_cast<NodeId>(i);
  auto node_at = [&](const std::string& text) {
    auto found = text.empty() ? by_index.end() : by_index.find(text);
    return found == by_index.end() ? kNone : found->second;
  };
  auto tensor_at = [&](const std::string& name) {
    auto found = name.empty() ? ids_.end() : ids_.find(name);
    return found == ids_.end() ? kNone : found->second;
  };
  std::string open_unit;  // a unit's nodes are contiguous: another key starts another unit
  for (size_t i = 0; i < protos_.size(); ++i) {
    Node& node = graph_.nodes[i];
    const NodeProto& n = *protos_[i];
    node.phase = phase_named(metadata(n, kPhaseKey));
    node.origin = node_at(metadata(n, kOriginKey));
    std::string key = metadata(n, kUnitKey);
    if (key.empty() || key != open_unit) {
      Unit unit;
      unit.op = metadata(n, kUnitOpKey);
      unit.role = role_named(metadata(n, kRoleKey));
      unit.phase = node.phase;
      unit.origin = node_at(metadata(n, kUnitOriginKey));
      unit.target = tensor_at(metadata(n, kTargetKey));
      graph_.units.push_back(std::move(unit));
    }
    open_unit = key;
    Unit& unit = graph_.units.back();
    if (!metadata(n, kContractionKey).empty()) unit.contraction = static_cast<NodeId>(i);
    unit.nodes.push_back(static_cast<NodeId>(i));
    node.unit = static_cast<UnitId>(graph_.units.size() - 1);
  }
  for (Node& node : graph_.nodes)
    if (node.origin != kNone && graph_.nodes[node.origin].phase != Phase::forward) node.origin = kNone;
  auto describe_tensor = [&](const ::onnx::ValueInfoProto& v) {
    TensorId id = tensor_at(v.name());
    if (id == kNone) return;
    Tensor& t = graph_.tensors[id];
    t.of = tensor_at(metadata(v, kOfKey));
    std::string kind = metadata(v, kKindKey);
    if (t.kind == TensorKind::input && !kind.empty()) t.kind = input_kind_named(kind);
  };
  for (const auto& v : source_.input()) describe_tensor(v);
  for (const auto& v : source_.value_info()) describe_tensor(v);
  for (const auto& v : source_.output()) describe_tensor(v);
  std::stable_sort(graph_.inputs.begin(), graph_.inputs.end(), [&](TensorId a, TensorId b) {
    return input_rank(graph_.tensors[a].kind) < input_rank(graph_.tensors[b].kind);
  });
}

}  // namespace

Graph to_ir(const ::onnx::ModelProto& model, const Inferred& inferred, const std::vector<Stored>& stored,
            bool keep_all) {
  return Builder(model, inferred, stored).run(keep_all);
}

bool has_phases(const ::onnx::GraphProto& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(),
                     [](const NodeProto& n) { return !metadata(n, kPhaseKey).empty(); });
}

bool has_phases_after_forward(const ::onnx::GraphProto& graph) {
  return std::any_of(graph.node().begin(), graph.node().end(),
                     [](const NodeProto& n) { return phase_named(metadata(n, kPhaseKey)) != Phase::forward; });
}

}  // namespace monet
