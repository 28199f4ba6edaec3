#include "engine/onnx/emitter.h"

#include <cstring>

namespace monet {

using ::onnx::AttributeProto;

AttributeProto int_attribute(const std::string& name, int64_t value) {
  AttributeProto a;
  a.set_name(name);
  a.set_type(AttributeProto::INT);
  a.set_i(value);
  return a;
}

AttributeProto ints_attribute(const std::string& name, const std::vector<int64_t>& values) {
  AttributeProto a;
  a.set_name(name);
  a.set_type(AttributeProto::INTS);
  a.mutable_ints()->Assign(values.begin(), values.end());
  return a;
}

int64_t int_of(const ::onnx::NodeProto& n, const char* name, int64_t otherwise) {
  const auto* a = find_attribute(n, name);
  return a ? a->i() : otherwise;
}

std::vector<int64_t> ints_of(const ::onnx::NodeProto& n, const char* name, std::vector<int64_t> otherwise) {
  const auto* a = find_attribute(n, name);
  return a ? std::vector<int64_t>(a->ints().begin(), a->ints().end()) : otherwise;
}

::onnx::NodeProto* Emitter::add(const std::string& type) {
  auto* n = to_.Add();
  n->set_op_type(type);
  n->set_name(names_.unique(prefix_ + (place_.empty() ? "" : "/" + place_) + "/" + type));
  return n;
}

std::string Emitter::op(const std::string& type, std::vector<std::string> inputs, const Attributes& attributes,
                        const std::string& output) {
  auto* n = add(type);
  while (!inputs.empty() && inputs.back().empty()) inputs.pop_back();
  for (const std::string& input : inputs) n->add_input(input);
  for (const AttributeProto& a : attributes) *n->add_attribute() = a;
  n->add_output(output.empty() ? n->name() : output);
  return n->output(0);
}

std::vector<std::string> Emitter::ops(const std::string& type, const std::vector<std::string>& inputs, int outputs,
                                      const Attributes& attributes) {
  auto* n = add(type);
  for (const std::string& input : inputs) n->add_input(input);
  for (const AttributeProto& a : attributes) *n->add_attribute() = a;
  for (int i = 0; i < outputs; ++i) n->add_output(names_.unique(n->name() + "." + std::to_string(i)));
  return {n->output().begin(), n->output().end()};
}

std::string Emitter::ints(const std::vector<int64_t>& values) {
  std::string raw(values.size() * sizeof(int64_t), '\0');
  if (!values.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return constant(DType::int64, {static_cast<int64_t>(values.size())}, raw);
}

std::string Emitter::constant(DType type, const Shape& shape, const std::string& raw) {
  AttributeProto value;
  value.set_name("value");
  value.set_type(AttributeProto::TENSOR);
  value.mutable_t()->set_data_type(static_cast<int32_t>(type));
  value.mutable_t()->mutable_dims()->Assign(shape.begin(), shape.end());
  value.mutable_t()->set_raw_data(raw);
  return op("Constant", {}, {value});
}

std::vector<std::string> Emitter::split(const std::string& tensor, int64_t axis, int64_t parts) {
  if (parts == 1) return {tensor};
  return ops("Split", {tensor}, static_cast<int>(parts),
             {int_attribute("axis", axis), int_attribute("num_outputs", parts)});
}

std::string Emitter::reshape(const std::string& tensor, const Shape& shape) {
  return op("Reshape", {tensor, ints(shape)}, {int_attribute("allowzero", 1)});
}

std::string Emitter::concat(const std::vector<std::string>& parts, int64_t axis, const std::string& output) {
  if (parts.size() == 1 && output.empty()) return parts[0];
  return op("Concat", parts, {int_attribute("axis", axis)}, output);
}

}  // namespace monet
