// export_model: an ir::Graph as a valid ONNX model. Every tensor is declared with its shape, what ONNX cannot say goes
// into metadata_props (metadata.h), and the result is checked twice: by ONNX's checker with full inference, and by our
// own inference against every declared shape.
#include <onnx/checker.h>

#include "engine/onnx/foreign.h"
#include "engine/onnx/infer.h"
#include "engine/onnx/metadata.h"
#include "engine/onnx/model.h"

namespace monet {

namespace {

using ::onnx::AttributeProto;

template <typename Message>
void add_metadata(Message* message, const char* key, const std::string& value) {
  auto* entry = message->add_metadata_props();
  entry->set_key(std::string(kMetadataPrefix) + key);
  entry->set_value(value);
}

struct SetAttribute {
  AttributeProto* to;
  void operator()(int64_t v) const {
    to->set_type(AttributeProto::INT);
    to->set_i(v);
  }
  void operator()(float v) const {
    to->set_type(AttributeProto::FLOAT);
    to->set_f(v);
  }
  void operator()(const std::string& v) const {
    to->set_type(AttributeProto::STRING);
    to->set_s(v);
  }
  void operator()(const std::vector<int64_t>& v) const {
    to->set_type(AttributeProto::INTS);
    to->mutable_ints()->Assign(v.begin(), v.end());
  }
  void operator()(const std::vector<float>& v) const {
    to->set_type(AttributeProto::FLOATS);
    to->mutable_floats()->Assign(v.begin(), v.end());
  }
  void operator()(const std::vector<std::string>& v) const {
    to->set_type(AttributeProto::STRINGS);
    for (const auto& s : v) to->add_strings(s);
  }
  void operator()(const TensorAttribute& v) const {
    to->set_type(AttributeProto::TENSOR);
    to->mutable_t()->set_data_type(static_cast<int32_t>(v.dtype));
    to->mutable_t()->mutable_dims()->Assign(v.shape.begin(), v.shape.end());
    to->mutable_t()->set_raw_data(v.data);
  }
  void operator()(const OpaqueAttribute& v) const { to->ParseFromString(v.bytes); }
};

class Exporter {
 public:
  explicit Exporter(const Graph& graph) : graph_(graph), proto_(*model_.mutable_graph()) {}

  std::string run() {
    model_.set_ir_version(kIrVersion);
    model_.set_producer_name("monet");
    add_opset("", graph_.opset);
    for (const auto& [domain, version] : graph_.opsets) add_opset(domain, version);
    proto_.set_name(graph_.name.empty() ? "graph" : graph_.name);
    for (TensorId id : graph_.inputs) {
      auto* v = declare(id, proto_.add_input());
      if (graph_.tensors[id].kind != TensorKind::input)
        add_metadata(v, kKindKey, name_of_kind(graph_.tensors[id].kind));
    }
    for (const Tensor& t : graph_.tensors)
      if (t.kind == TensorKind::constant) add_initializer(t);
    for (NodeId id = 0; id < static_cast<NodeId>(graph_.nodes.size()); ++id) add_node(id);
    std::vector<bool> is_output(graph_.tensors.size(), false);
    for (TensorId id : graph_.outputs) {
      is_output[id] = true;
      declare(id, proto_.add_output());
    }
    for (TensorId id = 0; id < static_cast<TensorId>(graph_.tensors.size()); ++id)
      if (graph_.tensors[id].producer != kNone && !is_output[id]) declare(id, proto_.add_value_info());
    check();
    return model_.SerializeAsString();
  }

 private:
  void add_opset(const std::string& domain, int version) {
    auto* import = model_.add_opset_import();
    import->set_domain(domain);
    import->set_version(version);
  }

  ::onnx::ValueInfoProto* declare(TensorId id, ::onnx::ValueInfoProto* v) {
    const Tensor& t = graph_.tensors[id];
    v->set_name(t.name);
    set_tensor_type(v->mutable_type(), static_cast<int32_t>(t.dtype), t.shape);
    if (t.of != kNone) add_metadata(v, kOfKey, graph_.tensors[t.of].name);
    return v;
  }

  void add_initializer(const Tensor& t) {
    auto* init = proto_.add_initializer();
    init->set_name(t.name);
    init->set_data_type(static_cast<int32_t>(t.dtype));
    init->mutable_dims()->Assign(t.shape.begin(), t.shape.end());
    init->set_raw_data(t.data);
  }

  void add_node(NodeId id) {
    const Node& node = graph_.nodes[id];
    auto* n = proto_.add_node();
    n->set_name(node.name);
    n->set_op_type(node.op);
    n->set_domain(node.domain);
    for (TensorId t : node.inputs) n->add_input(t == kNone ? "" : graph_.tensors[t].name);
    for (TensorId t : node.outputs) n->add_output(t == kNone ? "" : graph_.tensors[t].name);
    for (const Attribute& a : node.attributes) {
      auto* to = n->add_attribute();
      std::visit(SetAttribute{to}, a.value);
      to->set_name(a.name);
    }
    add_metadata(n, kIndexKey, std::to_string(id));
    add_metadata(n, kPhaseKey, name(node.phase));
    if (node.origin != kNone) add_metadata(n, kOriginKey, std::to_string(node.origin));
    if (node.unit == kNone) return;
    const Unit& unit = graph_.units[node.unit];
    add_metadata(n, kUnitKey, std::to_string(node.unit));
    add_metadata(n, kUnitOpKey, unit.op);
    add_metadata(n, kRoleKey, name(unit.role));
    if (unit.origin != kNone) add_metadata(n, kUnitOriginKey, std::to_string(unit.origin));
    if (unit.target != kNone) add_metadata(n, kTargetKey, graph_.tensors[unit.target].name);
    if (unit.contraction == id) add_metadata(n, kContractionKey, "1");
  }

  void check() {
    register_foreign_schemas();
    Inferred inferred = infer(model_, true);
    std::vector<Diagnostic> problems = inferred.problems;
    for (const Tensor& t : graph_.tensors) {
      auto type = inferred.types.find(t.name);
      Shape shape;
      if (t.producer == kNone || type == inferred.types.end() || !known_shape(type->second, shape)) continue;
      DType dtype = dtype_of(type->second.tensor_type().elem_type());
      if (shape == t.shape && dtype == t.dtype) continue;
      problems.push_back({"export-shape",
                          "tensor \"" + t.name + "\" is declared " + name(t.dtype) + " " + to_string(t.shape) +
                              ", but ONNX infers " + name(dtype) + " " + to_string(shape),
                          label(graph_, t.producer), t.name, ""});
    }
    if (!problems.empty()) throw Refusal(std::move(problems));
    try {
      ::onnx::checker::check_model(model_, true);
    } catch (const std::exception& error) {
      std::string text = error.what();
      throw Refusal(
          {"export-invalid", "the exported graph is not valid ONNX: " + text.substr(0, text.find('\n')), "", "", ""});
    }
  }

  const Graph& graph_;
  ::onnx::ModelProto model_;
  ::onnx::GraphProto& proto_;
};

}  // namespace

std::string export_model(const Graph& graph) { return Exporter(graph).run(); }

}  // namespace monet
