// Gradients of operators that move elements without changing them.
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <utility>

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

// The outputs' gradients side by side, zeros where none flows in.
void split_gradient(Backward& g) {
  Builder& b = g.b;
  Shape x = g.shape(g.input(0));
  int64_t axis = attribute(g.node, "axis", int64_t{0});
  if (axis < 0) axis += static_cast<int64_t>(x.size());
  std::vector<TensorId> parts;
  for (size_t i = 0; i < g.node.outputs.size(); ++i) {
    if (g.output(i) == kNone) {
      return g.refuse("its output " + std::to_string(i) + " has no name", "export the model with all outputs named");
    }
    TensorId dy = g.gradient(i);
    parts.push_back(dy != kNone ? dy : b.filled(g.shape(g.output(i)), 0, b.dtype(g.output(i))));
  }
  g.give(0, parts.size() == 1 ? parts[0] : b.emit("Concat", parts, x, {{"axis", axis}}));
}

void expand_gradient(Backward& g) { g.give_reduced(0, g.gradient()); }

// Every copy's gradient: dY as [..., repeats, size, ...], summed over the repeats.
void tile_gradient(Backward& g) {
  Builder& b = g.b;
  Shape x = g.shape(g.input(0)), y = g.shape(g.gradient()), copies;
  if (elements(y) == 0) return g.give(0, b.filled(x, 0, b.dtype(g.gradient())));
  std::vector<int64_t> axes;
  for (size_t i = 0; i < x.size(); ++i) {
    if (y[i] != x[i]) {
      axes.push_back(static_cast<int64_t>(copies.size()));
      copies.push_back(y[i] / x[i]);
    }
    copies.push_back(x[i]);
  }
  TensorId dy = b.reshape(g.gradient(), copies);
  g.give(0, axes.empty() ? dy : b.reduce("ReduceSum", dy, axes, false));
}

namespace {

// Elements `step` apart along the axis, zeros between and `step - 1` of them behind.
TensorId spaced(Builder& b, TensorId a, int64_t axis, int64_t step) {
  Shape column = b.shape(a), result = column;
  column.insert(column.begin() + axis + 1, 1);
  Shape wide = column;
  wide[axis + 1] = step;
  result[axis] *= step;
  std::vector<int64_t> pads(2 * column.size(), 0);
  pads[column.size() + axis + 1] = step - 1;
  return b.reshape(b.emit("Pad", {b.reshape(a, column), b.ints(pads)}, wide), result);
}

}  // namespace

// The inverse movements, from the last to the first: reversed axes back, spaced out by the step, padded to the size.
void slice_gradient(Backward& g) {
  Builder& b = g.b;
  TensorId dx = g.gradient();
  Shape x = g.shape(g.input(0)), y = g.shape(dx);
  int64_t rank = static_cast<int64_t>(x.size());
  std::vector<int64_t> starts = integers(g.tensor(g.input(1))), axes(starts.size()), steps(starts.size(), 1);
  std::iota(axes.begin(), axes.end(), 0);
  if (g.input(3) != kNone) axes = integers(g.tensor(g.input(3)));
  if (g.input(4) != kNone) steps = integers(g.tensor(g.input(4)));
  auto outside = [&](int64_t axis) { return axis < -rank || axis >= rank; };
  if (static_cast<int64_t>(starts.size()) != elements(g.shape(g.input(1))) || axes.size() != starts.size() ||
      steps.size() != starts.size() || std::any_of(axes.begin(), axes.end(), outside)) {
    return g.refuse("its starts, axes or steps are not constants that fit its input",
                    "export the model with fixed slices");
  }
  if (elements(y) == 0) return g.give(0, b.filled(x, 0, b.dtype(dx)));

  std::vector<int64_t> reversed, pads(2 * rank, 0);
  std::vector<std::pair<int64_t, int64_t>> spacings;  // axis, step
  for (size_t i = 0; i < axes.size(); ++i) {
    int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i];
    int64_t size = x[axis], step = steps[i], count = y[axis];
    int64_t start = std::clamp<int64_t>(starts[i] < 0 ? starts[i] + size : starts[i], 0, step < 0 ? size - 1 : size);
    if (step < 0) reversed.push_back(axis);
    int64_t apart = count == 1 ? 1 : std::abs(step);  // the step after the only element does not matter
    if (apart > 1) spacings.emplace_back(axis, apart);
    int64_t low = step < 0 ? start - (count - 1) * apart : start;
    pads[axis] = low;
    pads[rank + axis] = size - low - count * apart;  // negative where zeros of the spacing stand out
  }
  if (!reversed.empty()) {
    std::vector<int64_t> from(reversed.size(), -1), beyond, back(reversed.size(), -1);
    for (int64_t axis : reversed) beyond.push_back(-y[axis] - 1);  // before the first element
    dx = b.emit("Slice", {dx, b.ints(from), b.ints(beyond), b.ints(reversed), b.ints(back)}, y);
  }
  for (auto [axis, step] : spacings) dx = spaced(b, dx, axis, step);
  if (std::any_of(pads.begin(), pads.end(), [](int64_t pad) { return pad != 0; }))
    dx = b.emit("Pad", {dx, b.ints(pads)}, x);
  g.give(0, dx);
}

namespace {

void refuse_blocks(Backward& g) {
  g.refuse("its blocks do not fit its input", "give it data [N, C, H, W] that its block size divides");
}

}  // namespace

// SpaceToDepth undoes the depth-column-row order; the column-row-depth order has no operator for its inverse.
void depth_to_space_gradient(Backward& g) {
  Builder& b = g.b;
  int64_t block = attribute(g.node, "blocksize", int64_t{1});
  Shape x = g.shape(g.input(0));
  if (x.size() != 4 || block < 1 || x[1] % block || x[1] / block % block) return refuse_blocks(g);
  if (attribute(g.node, "mode", "DCR") == "DCR")
    return g.give(0, b.emit("SpaceToDepth", {g.gradient()}, x, {{"blocksize", block}}));
  TensorId blocks = b.reshape(g.gradient(), {x[0], x[1] / (block * block), x[2], block, x[3], block});
  g.give(0, b.reshape(b.transpose(blocks, {0, 1, 3, 5, 2, 4}), x));
}

void space_to_depth_gradient(Backward& g) {
  int64_t block = attribute(g.node, "blocksize", int64_t{1});
  Shape x = g.shape(g.input(0));
  if (x.size() != 4 || block < 1 || x[2] % block || x[3] % block) return refuse_blocks(g);
  g.give(0, g.b.emit("DepthToSpace", {g.gradient()}, x, {{"blocksize", block}}));
}

namespace {

// The operator itself, with its other inputs and attributes, applied to the gradient.
void give_same_operator(Backward& g) {
  std::vector<TensorId> inputs = g.node.inputs;
  inputs[0] = g.gradient();
  g.give(0, g.b.emit(g.node.op.c_str(), inputs, g.shape(g.input(0)), g.node.attributes));
}

}  // namespace

void trilu_gradient(Backward& g) { give_same_operator(g); }

// Reversing twice changes nothing.
void reverse_sequence_gradient(Backward& g) { give_same_operator(g); }

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
