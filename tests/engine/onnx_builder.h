// Builds small ONNX files for tests by writing the protobuf wire format by hand: independent of the ONNX library, able
// to write what no library would, and the same bytes everywhere. Field numbers are those of onnx.proto (IR version 10).
#pragma once

#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/onnx/model.h"

namespace monet::test {

// A protobuf message under construction.
class Message {
 public:
  Message& number(int field, int64_t value) {
    varint(static_cast<uint64_t>(field) << 3);
    varint(static_cast<uint64_t>(value));
    return *this;
  }
  Message& bytes(int field, const std::string& value) {
    varint(static_cast<uint64_t>(field) << 3 | 2);
    varint(value.size());
    out_ += value;
    return *this;
  }
  Message& fixed32(int field, float value) {
    varint(static_cast<uint64_t>(field) << 3 | 5);
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  Message& message(int field, const Message& value) { return bytes(field, value.out_); }
  Message& varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
    return *this;
  }
  const std::string& str() const { return out_; }

 private:
  std::string out_;
};

template <typename T>
std::string raw(std::initializer_list<T> values) {
  std::string bytes;
  for (T v : values) bytes.append(reinterpret_cast<const char*>(&v), sizeof v);
  return bytes;
}

// A dimension: a number, a name, or (empty name) unknown.
struct Dim {
  Dim(int64_t v) : value(v), fixed(true) {}  // NOLINT: implicit on purpose
  Dim(const char* n) : name(n) {}            // NOLINT
  int64_t value = 0;
  std::string name;
  bool fixed = false;
};

inline Message tensor_proto(const std::string& name, DType dtype, const Shape& shape, const std::string& raw_data = "",
                            bool has_data = true) {
  Message t;
  for (int64_t d : shape) t.number(1, d);
  t.number(2, static_cast<int64_t>(dtype));
  if (!name.empty()) t.bytes(8, name);
  if (has_data) t.bytes(9, raw_data);
  return t;
}

inline Message tensor_type(DType dtype, const std::vector<Dim>& dims) {
  Message shape;
  for (const Dim& d : dims) {
    Message dim;
    if (d.fixed) {
      dim.number(1, d.value);
    } else if (!d.name.empty()) {
      dim.bytes(2, d.name);
    }
    shape.message(1, dim);
  }
  return Message().message(1, Message().number(1, static_cast<int64_t>(dtype)).message(2, shape));
}

inline Message value_info(const std::string& name, const Message& type) {
  return Message().bytes(1, name).message(2, type);
}

// Attributes.
inline Message attr(const std::string& name, int64_t v) { return Message().bytes(1, name).number(3, v).number(20, 2); }
inline Message attr(const std::string& name, int v) { return attr(name, static_cast<int64_t>(v)); }
inline Message attr(const std::string& name, float v) { return Message().bytes(1, name).fixed32(2, v).number(20, 1); }
inline Message attr(const std::string& name, const char* v) {
  return Message().bytes(1, name).bytes(4, v).number(20, 3);
}
inline Message attr(const std::string& name, const std::vector<int64_t>& v) {
  Message a;
  a.bytes(1, name);
  for (int64_t i : v) a.number(8, i);
  return a.number(20, 7);
}
inline Message attr_tensor(const std::string& name, const Message& t) {
  return Message().bytes(1, name).message(5, t).number(20, 4);
}
inline Message attr_graph(const std::string& name, const Message& g) {
  return Message().bytes(1, name).message(6, g).number(20, 5);
}

inline Message node(const std::string& op, const std::vector<std::string>& inputs,
                    const std::vector<std::string>& outputs, const std::vector<Message>& attributes = {},
                    const std::string& name = "", const std::string& domain = "") {
  Message n;
  for (const auto& i : inputs) n.bytes(1, i);
  for (const auto& o : outputs) n.bytes(2, o);
  if (!name.empty()) n.bytes(3, name);
  n.bytes(4, op);
  for (const auto& a : attributes) n.message(5, a);
  if (!domain.empty()) n.bytes(7, domain);
  return n;
}

// A graph and the model around it.
class Builder {
 public:
  explicit Builder(int opset = 22, int ir_version = 8) : opset_(opset), ir_version_(ir_version) {
    graph_.bytes(2, "g");
  }

  Builder& input(const std::string& name, const std::vector<Dim>& dims, DType dtype = DType::float32) {
    graph_.message(11, value_info(name, tensor_type(dtype, dims)));
    return *this;
  }
  Builder& input(const std::string& name, const Message& type) {
    graph_.message(11, value_info(name, type));
    return *this;
  }
  Builder& output(const std::string& name) {
    graph_.message(12, Message().bytes(1, name));
    return *this;
  }
  // The declared type of an inner tensor.
  Builder& value(const std::string& name, const std::vector<Dim>& dims, DType dtype = DType::float32) {
    graph_.message(13, value_info(name, tensor_type(dtype, dims)));
    return *this;
  }
  // A stored tensor whose values are not in the file (as if skipped).
  Builder& weight(const std::string& name, const Shape& shape, DType dtype = DType::float32) {
    graph_.message(5, tensor_proto(name, dtype, shape, "", false));
    return *this;
  }
  Builder& initializer(const Message& tensor) {
    graph_.message(5, tensor);
    return *this;
  }
  Builder& ints(const std::string& name, std::initializer_list<int64_t> values) {
    return initializer(tensor_proto(name, DType::int64, {static_cast<int64_t>(values.size())}, raw(values)));
  }
  Builder& floats(const std::string& name, std::initializer_list<float> values) {
    return initializer(tensor_proto(name, DType::float32, {static_cast<int64_t>(values.size())}, raw(values)));
  }
  Builder& constant(const std::string& name, const Message& tensor) {
    return add(node("Constant", {}, {name}, {attr_tensor("value", tensor)}));
  }
  Builder& add(const Message& node) {
    graph_.message(1, node);
    return *this;
  }
  Builder& op(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
              const std::vector<Message>& attributes = {}, const std::string& name = "",
              const std::string& domain = "") {
    return add(node(op, inputs, outputs, attributes, name, domain));
  }
  Builder& import(const std::string& domain, int version) {
    model_.message(8, Message().bytes(1, domain).number(2, version));
    return *this;
  }
  Builder& function(const Message& f) {
    model_.message(25, f);
    return *this;
  }

  const Message& graph() const { return graph_; }
  std::string bytes() const {
    Message all;
    all.number(1, ir_version_);
    if (opset_ > 0) all.message(8, Message().bytes(1, "").number(2, opset_));
    return all.str() + model_.str() + Message().message(7, graph_).str();
  }

 private:
  int opset_, ir_version_;
  Message graph_, model_;
};

inline Model open(const std::string& bytes, const std::string& name = "test.onnx") {
  MemorySource source(bytes);
  return Model::open(source, name);
}
inline Model open(const Builder& b) { return open(b.bytes()); }
inline BoundModel bind(const Builder& b, const BindOptions& options = {}) { return open(b).bind(options); }

inline const Tensor& tensor(const Graph& graph, const std::string& name) {
  for (const Tensor& t : graph.tensors)
    if (t.name == name) return t;
  throw std::runtime_error("no tensor " + name);
}
inline bool has_tensor(const Graph& graph, const std::string& name) {
  for (const Tensor& t : graph.tensors)
    if (t.name == name) return true;
  return false;
}

// Operators of a graph in order, separated by blanks.
inline std::string operators(const Graph& graph) {
  std::string all;
  for (const Node& n : graph.nodes) all += (all.empty() ? "" : " ") + n.op;
  return all;
}
inline std::string codes(const std::vector<Diagnostic>& problems) {
  std::string all;
  for (const Diagnostic& d : problems) all += (all.empty() ? "" : " ") + d.code;
  return all;
}
// Problems that `action` is refused with; empty when it is not.
template <typename Action>
std::vector<Diagnostic> refusal(Action action) {
  try {
    action();
  } catch (const Refusal& refused) {
    return refused.problems();
  }
  return {};
}
inline std::vector<Diagnostic> refusal(const Builder& b, const BindOptions& options = {}) {
  return refusal([&] { bind(b, options); });
}

}  // namespace monet::test
