// Writes nodes into a graph that is being rewritten: names that are free, constants, lists of outputs.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "engine/onnx/proto.h"

namespace monet {

using Nodes = google::protobuf::RepeatedPtrField<::onnx::NodeProto>;

::onnx::AttributeProto int_attribute(const std::string& name, int64_t value);
::onnx::AttributeProto ints_attribute(const std::string& name, const std::vector<int64_t>& values);
// Reads of a node's attributes; `otherwise` when absent.
int64_t int_of(const ::onnx::NodeProto& n, const char* name, int64_t otherwise);
std::vector<int64_t> ints_of(const ::onnx::NodeProto& n, const char* name, std::vector<int64_t> otherwise);

// Nodes made, and their outputs, are named after `prefix`, so that one sees where they come from; each name once, as
// ONNX Runtime wants it of nodes as well.
class Emitter {
 public:
  Emitter(Nodes& to, Names& names, std::string prefix) : to_(to), names_(names), prefix_(std::move(prefix)) {}
  void set_place(const std::string& place) { place_ = place; }  // between prefix and operator: "forward/3"

  using Attributes = std::vector<::onnx::AttributeProto>;
  // One node with one output, which gets the given name or the node's own. Trailing absent inputs are left out.
  std::string op(const std::string& type, std::vector<std::string> inputs, const Attributes& attributes = {},
                 const std::string& output = "");
  std::vector<std::string> ops(const std::string& type, const std::vector<std::string>& inputs, int outputs,
                               const Attributes& attributes);
  std::string ints(const std::vector<int64_t>& values);                          // int64 [n]
  std::string constant(DType type, const Shape& shape, const std::string& raw);  // of raw_data
  // Equal parts along an axis; the tensor itself when it is one part.
  std::vector<std::string> split(const std::string& tensor, int64_t axis, int64_t parts);
  std::string reshape(const std::string& tensor, const Shape& shape);
  std::string squeeze(const std::string& tensor, int64_t axis) { return op("Squeeze", {tensor, ints({axis})}); }
  std::string concat(const std::vector<std::string>& parts, int64_t axis, const std::string& output = "");

  Nodes& nodes() { return to_; }
  Names& names() { return names_; }
  const std::string& prefix() const { return prefix_; }

 private:
  ::onnx::NodeProto* add(const std::string& type);

  Nodes& to_;
  Names& names_;
  std::string prefix_, place_;
};

}  // namespace monet
