// Vector operations per operator: what an operator that is no contraction costs on a vector unit, in operations of
// which a lane does one per cycle (add, subtract, multiply, compare, select, logic, rounding, type conversion: 1).
//
// Reciprocal, reciprocal square root, exp2, log2, sine and cosine count 4: the ratio of the throughputs that NVIDIA's
// CUDA C++ Programming Guide gives in "Arithmetic Instructions" for compute capability 5.x (128 adds, multiplies or
// fused multiply-adds a cycle against 32 of these) and 8.0 (64 against 16). Everything else is built from these by the
// formula written beside its entry, e.g. division = reciprocal and multiplication = 5, exp(x) = exp2(x log2 e) = 5.
//
// Data movement (Transpose, Concat, Slice, Pad, Gather, ...) and views count no operation; they cost bytes.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/ir/graph.h"

namespace monet {

// Vector operations of one node at its shapes; saturates at INT64_MAX. An operator that the table does not have counts
// one operation per element of its outputs. A contraction counts one per multiply-accumulate (for those inside a unit
// whose origin is another operator, such as the gradient of an average pooling).
int64_t operations(const Graph& graph, NodeId node);

// Whether the table has an entry for the operator; if not, `operations` gives the default.
bool has_operation_cost(const Node& node);

// Operators whose every output element depends on the input elements at its own place only (broadcasting included), so
// that a chain of them can pass elements on without storing them.
bool is_elementwise(const Node& node);
// The same of an operator of ai.onnx by its type, as units name it.
bool is_elementwise(std::string_view op);
// Of these, the functions of one input that networks put after their layers (Relu, Gelu, ...), and Softmax.
bool is_activation(std::string_view op);
bool is_normalization(std::string_view op);
// Operators that fold elements as they come (ReduceSum and its like).
bool is_reduction(const Node& node);

}  // namespace monet
