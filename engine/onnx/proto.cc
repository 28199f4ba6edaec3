#include "engine/onnx/proto.h"

#include <onnx/defs/schema.h>

#include <map>
#include <set>

namespace monet {

Shape shape_of(const ::onnx::TensorProto& tensor) { return Shape(tensor.dims().begin(), tensor.dims().end()); }

DType dtype_of(int32_t data_type) {
  bool known = data_type > 0 && data_type <= ::onnx::TensorProto_DataType_INT4;
  return known ? static_cast<DType>(data_type) : DType::undefined;
}

bool has_payload(const ::onnx::TensorProto& tensor) {
  return tensor.has_raw_data() || tensor.string_data_size() > 0 || elements(shape_of(tensor)) == 0;
}

void set_tensor_type(::onnx::TypeProto* type, int32_t data_type, const Shape& shape) {
  auto* tensor = type->mutable_tensor_type();
  tensor->set_elem_type(data_type);
  tensor->mutable_shape()->Clear();
  for (int64_t d : shape) tensor->mutable_shape()->add_dim()->set_dim_value(d);
}

std::string name_of(const ::onnx::NodeProto& node) {
  if (!node.name().empty()) return node.name();
  for (const std::string& output : node.output())
    if (!output.empty()) return output;
  return "";
}

std::string describe(const ::onnx::NodeProto& node, int index) {
  std::string name = name_of(node);
  std::string op = node.domain().empty() ? node.op_type() : node.domain() + "." + node.op_type();
  return op + (name.empty() ? " #" + std::to_string(index) : " \"" + name + "\"");
}

const ::onnx::AttributeProto* find_attribute(const ::onnx::NodeProto& node, const std::string& name) {
  for (const auto& a : node.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}

void add_default_attributes(const ::onnx::OpSchema& schema, ::onnx::NodeProto& node) {
  std::map<std::string, const ::onnx::AttributeProto*> absent;  // the schema's own order is not the same everywhere
  for (const auto& [name, attribute] : schema.attributes())
    if (attribute.default_value.type() != ::onnx::AttributeProto::UNDEFINED && !find_attribute(node, name))
      absent[name] = &attribute.default_value;
  for (const auto& [name, value] : absent) *node.add_attribute() = *value;
}

namespace {

void for_each_read_inside(const ::onnx::GraphProto& graph, std::set<std::string> local,
                          const std::function<void(const std::string&)>& visit) {
  for (const auto& v : graph.input()) local.insert(v.name());
  for (const auto& t : graph.initializer()) local.insert(t.name());
  for (const auto& t : graph.sparse_initializer()) local.insert(t.values().name());
  for (const auto& node : graph.node())
    for (const auto& output : node.output()) local.insert(output);
  auto outside = [&](const std::string& name) {
    if (!name.empty() && !local.count(name)) visit(name);
  };
  for (const auto& node : graph.node()) for_each_read(node, outside);
  for (const auto& v : graph.output()) outside(v.name());
}

template <typename Message>
std::string metadata_of(const Message& message, const std::string& key) {
  for (const auto& entry : message.metadata_props())
    if (entry.key() == kMetadataPrefix + key) return entry.value();
  return "";
}

void use_raw_data(::onnx::TensorProto& t) {
  if (t.has_raw_data() || t.int64_data_size() + t.float_data_size() + t.int32_data_size() == 0) return;
  std::string raw;
  auto append = [&raw](auto element) { raw.append(reinterpret_cast<const char*>(&element), sizeof element); };
  for (int64_t v : t.int64_data()) append(v);
  for (float v : t.float_data()) append(v);
  for (int32_t v : t.int32_data()) {
    int width = bits(dtype_of(t.data_type())) / 8;  // narrow types are widened in the typed field
    raw.append(reinterpret_cast<const char*>(&v), static_cast<size_t>(width));
  }
  t.clear_int64_data();
  t.clear_float_data();
  t.clear_int32_data();
  t.set_raw_data(raw);
}

}  // namespace

void use_raw_data(::onnx::GraphProto& graph) {
  for (auto& t : *graph.mutable_initializer()) use_raw_data(t);
  for (auto& n : *graph.mutable_node())
    for (auto& a : *n.mutable_attribute()) {
      if (a.has_t()) use_raw_data(*a.mutable_t());
      if (a.has_g()) use_raw_data(*a.mutable_g());
      for (auto& g : *a.mutable_graphs()) use_raw_data(g);
    }
}

void for_each_read(const ::onnx::NodeProto& node, const std::function<void(const std::string&)>& visit) {
  for (const std::string& input : node.input())
    if (!input.empty()) visit(input);
  for (const auto& a : node.attribute()) {
    if (a.has_g()) for_each_read_inside(a.g(), {}, visit);
    for (const auto& g : a.graphs()) for_each_read_inside(g, {}, visit);
  }
}

void add_names(const ::onnx::GraphProto& graph, Names& names) {
  for (const auto& v : graph.input()) names.add(v.name());
  for (const auto& t : graph.initializer()) names.add(t.name());
  for (const auto& n : graph.node()) {
    names.add(n.name());
    for (const std::string& output : n.output()) names.add(output);
    for (const auto& a : n.attribute()) {
      if (a.has_g()) add_names(a.g(), names);
      for (const auto& g : a.graphs()) add_names(g, names);
    }
  }
}

std::string metadata(const ::onnx::NodeProto& node, const std::string& key) { return metadata_of(node, key); }
std::string metadata(const ::onnx::ValueInfoProto& value, const std::string& key) { return metadata_of(value, key); }

}  // namespace monet
