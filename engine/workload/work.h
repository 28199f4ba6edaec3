// Unit -> what it computes and moves. Contractions get an iteration space (loop nest) whose three roles, forward, input
// gradient and weight gradient, are the same loops with another operand as output (DESIGN decision 3; loop names as in
// ZigZag, arXiv 2007.11360); everything else gets a count of vector operations.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/ir/graph.h"

namespace monet {

// Loop dimensions in ZigZag's names and order. Conv: B K G OX OY C FX FY, K and C counted per group G (1-D convolutions
// lack OX and FX; 3-D ones add OZ after OY and FZ after FY). Matrix products: B (batch) D (rows) C (reduction) K
// (columns).
struct Loop {
  std::string dim;
  int64_t size = 1;
};

struct LoopNest {
  std::vector<Loop> loops;
  std::vector<std::string> reduction;  // dims summed over in this role, e.g. {"C", "FX", "FY"} forward
  int64_t macs() const;                // product of all loop sizes; saturates at INT64_MAX
};

// The nest of a contraction unit: built from the FORWARD node's shapes and attributes (`unit.origin`), whatever
// operator the unit's gradient was exported as; from `unit.contraction` where the origin is none or no contraction.
// `unit.target` says which operand is differentiated (by role where it is absent).
//
// - Conv: O* from the output, F* from the weight; every output point counts all its taps, padding included (as ZigZag).
// - ConvTranspose: the nest of the Conv that it is the gradient of. O* run over the positions of ITS INPUT, K over its
//   input channels per group, C over its output channels per group; so forward it reduces K and F*, its input gradient
//   (a Conv) reduces C and F*. Products that fall into a cropped border count.
// - Gemm: B is 1; transA and transB only change where operands lie. The addition of its C is no MAC.
// - MatMul: batch dims that both operands have fold into B. Those that only the left operand has are rows (D), those
//   that only the right one has are columns (K): exact, and a rank-2 weight gives B = 1, D = product of the leading
//   dims.
// - Einsum, where it is a product of matrices (ir/einsum.h): likewise, letter by letter.
LoopNest loop_nest(const Graph& graph, const Unit& unit);

struct Work {
  int64_t times = 1;       // how often a step runs the unit: once per micro-batch, but for the optimizer's
  int64_t macs = 0;        // multiply-accumulates of the contraction, if any
  int64_t operations = 0;  // vector operations of every other node (operations.h)
  // Distinct tensors from outside the unit, views resolved to what they alias, in order of first use. Not read: shape
  // operands of views, and tensors of which only the shape is asked (Shape, Size).
  std::vector<TensorId> reads;
  // Parallel to `reads`: the elements that the unit must touch at least: all, but for operators that select (Gather,
  // Slice, Split, ...) no more than they give out, and of a convolution's input those that its windows meet.
  std::vector<int64_t> read_elements;
  std::vector<TensorId>
      writes;         // distinct tensors that outlive the unit (they or a view: read elsewhere, graph outputs)
  bool view = false;  // only reinterprets bytes: costs nothing
};
Work work(const Graph& graph, const Unit& unit);
std::vector<Work> works(const Graph& graph);  // of every unit, parallel to graph.units; one pass over the graph

// A unit reads what another makes, views resolved.
struct UnitEdge {
  UnitId from = kNone, to = kNone;
  bool data = false;  // more than a scalar passes
  auto operator<=>(const UnitEdge&) const = default;
};
std::vector<UnitEdge> unit_edges(const Graph& graph, const std::vector<Work>& works);  // sorted, each pair once

}  // namespace monet
