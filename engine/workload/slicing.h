// How a unit's work is cut into slices that do not depend on each other (DESIGN decision 15): the axes of its output
// along which it can be cut, and which part of every tensor a slice reads and writes. Operators that are no contraction
// are cut where each output element depends on the same position of the inputs only (elementwise axes, the channels of
// a batch normalization, the rows of a softmax).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/workload/work.h"

namespace monet {

// Half-open range of positions along an axis.
struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

// What a slice takes of a tensor, along one axis of the shape that its bytes are stored in.
struct AxisUse {
  int axis = kNone;  // kNone: the whole tensor
  int64_t size = 1;  // of the axis
  // Positions [lo, hi) of the slicing take [lo * stride / divide - before, ((hi - 1) * stride) / divide + 1 + after).
  int64_t stride = 1, divide = 1, before = 0, after = 0;
  Range range(Range positions) const;  // clipped to the axis
  // The same axis cut at the same places, without overlap.
  bool exact() const { return before == 0 && after == stride - 1; }
};

struct SliceAxis {
  enum class Kind : uint8_t {
    batch,
    channels,  // of the output; columns of a product of matrices
    rows,      // of an image, of a product of matrices
    inputs,    // of a weight's gradient: its second axis
  };
  Kind kind = Kind::batch;
  int64_t size = 1;  // positions: at most so many slices
  // The loop that it divides, as mapping files name it: of layer_of for contractions; B, H, D, K for the axes of other
  // tensors (Stream's names).
  std::string dim;
  std::vector<AxisUse> reads;   // parallel to Work::reads
  std::vector<AxisUse> writes;  // parallel to Work::writes; whole only where `exchanged` says so
  // Elements of sums over this axis (a batch normalization's statistics, a bias's gradient): every slice makes a part
  // of them and needs, or leaves, their sum over all slices.
  int64_t exchanged = 0;
};
const char* name(SliceAxis::Kind kind);

// Positions of slice `index` of `parts`, as equal as they can be, larger ones first.
Range slice(int64_t size, int64_t parts, int64_t index);

// `storage`: of the graph (ir/graph.h). Empty for views and for units that can only run whole.
std::vector<SliceAxis> slice_axes(const Graph& graph, const std::vector<TensorId>& storage, const Unit& unit,
                                  const Work& work);

// Which of Work::reads are the second operand (W) of layer_of's nest; parallel to it. None of other units' are.
std::vector<char> second_operands(const Graph& graph, const std::vector<TensorId>& storage, const Unit& unit,
                                  const Work& work);

}  // namespace monet
