// Unit -> what it computes and moves. Contractions get an iteration space (loop nest) whose three roles, forward, input
// gradient and weight gradient, are the same loops with another operand as output (DESIGN decision 3); everything else
// gets a count of vector operations.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ir/graph.h"

namespace monet {

// Loop dimensions in ZigZag's names and order. Conv: B K G OX OY C FX FY (1-D convolutions lack OX and FX; 3-D ones
// add OZ, FZ). Matrix products: B (batch) D (rows) C (reduction) K (columns).
struct Loop {
  std::string dim;
  int64_t size = 1;
};

struct LoopNest {
  std::vector<Loop> loops;
  std::vector<std::string> reduction;  // dims summed over in this role, e.g. {"C", "FX", "FY"} forward
  int64_t macs() const;                // product of all loop sizes
};

// The nest of a contraction unit: built from the FORWARD node's shapes and attributes (`unit.origin`), whatever operator
// the unit's gradient was exported as.
LoopNest loop_nest(const Graph& graph, const Unit& unit);

struct Work {
  int64_t macs = 0;               // multiply-accumulates of the contraction, if any
  int64_t operations = 0;         // vector operations: elements x cost per element of every other node (work.cc's table)
  std::vector<TensorId> reads;    // distinct tensors from outside the unit, views resolved to what they alias
  std::vector<TensorId> writes;   // distinct tensors that outlive the unit (read elsewhere or graph outputs)
  bool view = false;              // only reinterprets bytes: costs nothing
};
Work work(const Graph& graph, const Unit& unit);

// For every tensor, the tensor whose bytes it shares through views (itself when it has bytes of its own).
std::vector<TensorId> storage(const Graph& graph);

// Cost of one element of an operator in vector operations (add, multiply, compare = 1; division, exp, ... by the table
// in work.cc with its source).
}  // namespace monet
