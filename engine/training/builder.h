// Appends nodes to a graph in units. Every emitted tensor's shape is stated by the caller or follows from its operands
// by one broadcast: no shape rule of ONNX is repeated here, and the exporter compares every declared shape with the one
// that ONNX infers.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "engine/ir/graph.h"

namespace monet {

class Builder {
 public:
  explicit Builder(Graph& graph) : graph_(graph) {}

  const Graph& graph() const { return graph_; }
  Shape shape(TensorId tensor) const { return graph_.tensors[tensor].shape; }
  DType dtype(TensorId tensor) const { return graph_.tensors[tensor].dtype; }

  // Nodes emitted from now on belong to a unit with these fields. A unit without nodes leaves no trace.
  void begin_unit(Unit unit);

  // One node with one output of the first input's type, or of the given one. Tensors stay unnamed until name_tensors.
  TensorId emit(const char* op, std::vector<TensorId> inputs, Shape shape, std::vector<Attribute> attributes = {});
  TensorId emit_as(DType type, const char* op, std::vector<TensorId> inputs, Shape shape,
                   std::vector<Attribute> attributes = {});

  // Constants; equal ones are one tensor.
  TensorId ints(const std::vector<int64_t>& values);  // int64 [values.size()]
  TensorId scalar(double value, DType type);          // [], of a float or integer type
  TensorId floats(const std::vector<double>& values, const Shape& shape, DType type);

  // Operators by name, with numpy broadcasting where ONNX has it.
  TensorId binary(const char* op, TensorId a, TensorId b);
  TensorId add(TensorId a, TensorId b) { return binary("Add", a, b); }
  TensorId sub(TensorId a, TensorId b) { return binary("Sub", a, b); }
  TensorId mul(TensorId a, TensorId b) { return binary("Mul", a, b); }
  TensorId div(TensorId a, TensorId b) { return binary("Div", a, b); }
  TensorId scaled(TensorId a, double factor);  // `a` itself when the factor is 1
  TensorId unary(const char* op, TensorId a) { return emit(op, {a}, shape(a)); }
  TensorId compare(const char* op, TensorId a, TensorId b);  // bool
  TensorId greater(TensorId a, TensorId b) { return compare("Greater", a, b); }
  TensorId less(TensorId a, TensorId b) { return compare("Less", a, b); }
  TensorId where(TensorId mask, TensorId a, TensorId b);             // a where the mask holds, b elsewhere
  TensorId keep_where(TensorId mask, TensorId value);                // value where the mask holds, 0 elsewhere
  TensorId clear_where(TensorId mask, TensorId value);               // 0 where the mask holds, value elsewhere
  TensorId cast(TensorId a, DType type);                             // `a` itself when it is of that type
  TensorId reshape(TensorId a, const Shape& shape);                  // `a` itself when the shape is the same
  TensorId expand(TensorId a, const Shape& shape);                   // likewise
  TensorId transpose(TensorId a, const std::vector<int64_t>& perm);  // the original of what a Transpose has turned
  // What `a` is the Transpose of, if `perm` turns it back; kNone otherwise. Linear layers are exported with their
  // weight transposed: a gradient that reads the original needs no transposed copy kept from the forward pass.
  TensorId untransposed(TensorId a, const std::vector<int64_t>& perm) const;
  TensorId reduce(const char* op, TensorId a, const std::vector<int64_t>& axes, bool keepdims);  // axes ascending, >= 0
  TensorId slice(TensorId a, const std::vector<int64_t>& axes, const std::vector<int64_t>& starts,
                 const std::vector<int64_t>& ends);
  // Of shape `shape`, every element `value`.
  TensorId filled(const Shape& shape, double value, DType type);
  // The gradient of a numpy broadcast from `shape`: sums over the dimensions that were repeated.
  TensorId reduce_to(TensorId a, const Shape& shape);

  // A graph input or another tensor without producer.
  TensorId add_tensor(Tensor tensor) { return graph_.add(std::move(tensor)); }
  Graph& mutable_graph() { return graph_; }

 private:
  TensorId constant(DType type, const Shape& shape, std::string data);

  Graph& graph_;
  Unit unit_;
  UnitId current_ = kNone;  // index of the open unit once it has a node
  std::map<std::tuple<DType, Shape, std::string>, TensorId> constants_;
};

// One element in ONNX's raw_data layout. Types: floats of 16 bits and more, and integers.
std::string encode(double value, DType type);
// The value of a one-element tensor whose data is known; false when it is not.
bool known_scalar(const Tensor& tensor, double* value);

}  // namespace monet
