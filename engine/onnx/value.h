// A small tensor whose elements are known, for folding: integers (and bools) as int64, floats as double, either way
// always representable in `dtype`. Strings, complex and 8-bit floats are not represented.
#pragma once

#include <optional>
#include <vector>

#include "engine/onnx/proto.h"

namespace monet {

// Largest tensor that folding reads or makes (DESIGN decision 1).
constexpr int64_t kMaxFolded = 4096;

struct Value {
  DType dtype = DType::int64;
  Shape shape;
  std::vector<int64_t> ints;   // when !is_float(dtype)
  std::vector<double> floats;  // when is_float(dtype)

  int64_t size() const { return elements(shape); }
  bool floating() const { return is_float(dtype); }
};

bool foldable(DType dtype);

// Nothing for types not represented, tensors over kMaxFolded elements, and values that are not there.
std::optional<Value> decode(const ::onnx::TensorProto& tensor);
::onnx::TensorProto encode(const Value& value, const std::string& name);

// The nearest value that `dtype` has: wraps integers, rounds floats to nearest even.
int64_t wrap(int64_t value, DType dtype);
double round_to(double value, DType dtype);

}  // namespace monet
