// Gradients of operators that move elements without changing them.
#include <algorithm>
#include <numeric>

#include "engine/training/gradient_rules.h"

namespace monet {

void identity_gradient(Backward& g) { g.give(0, g.gradient()); }

void reshape_gradient(Backward& g) { g.give(0, g.b.reshape(g.gradient(), g.shape(g.input(0)))); }

void transpose_gradient(Backward& g) {
  int64_t rank = static_cast<int64_t>(g.shape(g.input(0)).size());
  std::vector<int64_t> reversed(rank);
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  std::vector<int64_t> perm = attribute(g.node, "perm", reversed), inverse(rank);
  for (int64_t i = 0; i < rank; ++i) inverse[perm[i]] = i;
  g.give(0, g.b.transpose(g.gradient(), inverse));
}

void concat_gradient(Backward& g) {
  int64_t axis = attribute(g.node, "axis", int64_t{0});
  if (axis < 0) axis += static_cast<int64_t>(g.shape(g.output(0)).size());
  int64_t at = 0;
  for (size_t i = 0; i < g.node.inputs.size(); ++i) {
    int64_t size = g.shape(g.input(i))[axis];
    if (g.wants(i)) g.give(i, g.b.slice(g.gradient(), {axis}, {at}, {at + size}));
    at += size;
  }
}

namespace {

// Where Pad takes element `i` (counted from the first unpadded one; may be negative) of an axis of `size` from.
int64_t padded_source(const std::string& mode, int64_t i, int64_t size) {
  if (mode == "edge") return std::clamp<int64_t>(i, 0, size - 1);
  if (mode == "wrap") return (i % size + size) % size;
  if (size == 1) return 0;
  int64_t period = 2 * (size - 1);  // reflect: without repeating the border
  int64_t at = (i % period + period) % period;
  return at < size ? at : period - at;
}

}  // namespace

// Constant padding: the inverse padding, which cuts what was added. The other modes repeat elements, whose gradients
// add up: axis by axis, a ScatterElements that adds.
void pad_gradient(Backward& g) {
  // Index tables are constants of the graph; see kMaxCounts in pooling.cc.
  constexpr int64_t kMaxIndices = int64_t{1} << 20;
  Builder& b = g.b;
  Shape x = g.shape(g.input(0));
  int64_t rank = static_cast<int64_t>(x.size());
  std::vector<int64_t> given = g.input(1) == kNone ? std::vector<int64_t>() : integers(g.tensor(g.input(1)));
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  if (g.input(3) != kNone) axes = integers(g.tensor(g.input(3)));
  if (given.size() != 2 * axes.size())
    return g.refuse("its pads are not constants", "export the model with fixed pads");
  std::vector<int64_t> begin(rank, 0), end(rank, 0);
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    begin[axis] = given[i];
    end[axis] = given[axes.size() + i];
  }
  std::string mode = attribute(g.node, "mode", "constant");
  TensorId dx = g.gradient();
  if (mode == "constant") {
    std::vector<int64_t> inverse;
    for (const std::vector<int64_t>* side : {&begin, &end})
      for (int64_t pad : *side) inverse.push_back(-pad);
    g.give(0, b.emit("Pad", {dx, b.ints(inverse)}, x));
    return;
  }
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (begin[axis] == 0 && end[axis] == 0) continue;
    Shape from = b.shape(dx), to = from, line(rank, 1);
    if (from[axis] > kMaxIndices || x[axis] < 1) {
      return g.refuse("it repeats elements along an axis of " + std::to_string(from[axis]), "pad with constants");
    }
    to[axis] = x[axis];
    line[axis] = from[axis];
    std::vector<int64_t> sources;
    for (int64_t i = 0; i < from[axis]; ++i) sources.push_back(padded_source(mode, i - begin[axis], x[axis]));
    TensorId indices = b.expand(b.reshape(b.ints(sources), line), from);
    dx = b.emit("ScatterElements", {b.filled(to, 0, b.dtype(dx)), indices, dx}, to,
                {{"axis", axis}, {"reduction", std::string("add")}});
  }
  g.give(0, dx);
}

}  // namespace monet
