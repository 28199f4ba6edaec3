// Gradients of pooling.
#include <algorithm>

#include "engine/training/gradient_rules.h"
#include "engine/training/window_gradients.h"

namespace monet {

namespace {

// Indices that count the first spatial axis fastest (storage_order = 1), as those that count the last one fastest.
TensorId row_major(Builder& b, TensorId index, const Shape& x) {
  auto scalar = [&](int64_t value) { return b.scalar(static_cast<double>(value), DType::int64); };
  int64_t plane = elements(Shape(x.begin() + 2, x.end()));
  TensorId rest = b.binary("Mod", index, scalar(plane)), start = b.sub(index, rest), place = kNone;
  for (size_t axis = 2; axis < x.size(); ++axis) {
    TensorId at = b.binary("Mod", rest, scalar(x[axis]));
    rest = b.div(rest, scalar(x[axis]));
    place = place == kNone ? at : b.add(b.mul(place, scalar(x[axis])), at);
  }
  return b.add(start, place);
}

}  // namespace

// Each output's gradient goes to the element that was the maximum, found through the Indices output (positions in the
// flattened input): one ScatterElements that adds, since windows overlap.
void max_pool_gradient(Backward& g) {
  Builder& b = g.b;
  Shape x = g.shape(g.input(0)), y = g.shape(g.gradient());
  TensorId indices = g.saved_output(1, DType::int64, y);
  if (attribute(g.node, "storage_order", int64_t{0}) != 0) indices = row_major(b, indices, x);
  Shape flat = {elements(y)}, total = {elements(x)};
  TensorId zeros = b.filled(total, 0, b.dtype(g.gradient()));
  TensorId scattered = b.emit("ScatterElements", {zeros, b.reshape(indices, flat), b.reshape(g.gradient(), flat)},
                              total, {{"axis", int64_t{0}}, {"reduction", std::string("add")}});
  g.give(0, b.reshape(scattered, x));
}

namespace {

// How many elements the window at each position averages over, along one axis: those in [low, high) of the large side.
std::vector<double> window_counts(const WindowAxis& axis, int64_t low, int64_t high) {
  std::vector<double> counts;
  for (int64_t i = 0; i < axis.small; ++i) {
    int64_t start = i * axis.stride - axis.begin;
    int64_t first = low <= start ? 0 : (low - start + axis.dilation - 1) / axis.dilation;
    int64_t last = high <= start ? -1 : std::min(axis.kernel - 1, (high - 1 - start) / axis.dilation);
    counts.push_back(static_cast<double>(std::max<int64_t>(1, last - first + 1)));
  }
  return counts;
}

// Adds each element of dY, times `factor`, to all elements of its window. Every channel by itself: a ConvTranspose of
// dY, as [N * C, 1, ...], with a kernel of one value.
TensorId spread_evenly(Builder& b, TensorId dy, double factor, const Window& window, const Shape& x) {
  Shape plane_y = b.shape(dy), plane_x = x, kernel(x.size(), 1);
  plane_y[0] = plane_x[0] = x[0] * x[1];
  plane_y[1] = plane_x[1] = 1;
  for (size_t i = 0; i < window.size(); ++i) kernel[i + 2] = window[i].kernel;
  TensorId weight = b.filled(kernel, factor, b.dtype(dy));
  return b.reshape(spread(b, b.reshape(dy, plane_y), weight, window, 1, plane_x), x);
}

}  // namespace

// dY spread over the windows after division by the number of elements that each averaged. That number is a product over
// axes; where it is the same for all windows it becomes the kernel's value.
void average_pool_gradient(Backward& g) {
  // Count maps are constants of the graph: an axis longer than this with windows of differing counts is no real model.
  constexpr int64_t kMaxCounts = int64_t{1} << 20;
  Builder& b = g.b;
  TensorId dy = g.gradient();
  DType type = b.dtype(dy);
  Shape x = g.shape(g.input(0)), y = g.shape(dy);
  size_t axes = x.size() - 2;
  Shape kernel = attribute(g.node, "kernel_shape", Shape(axes, 1));
  Window window = conv_window(g.node, x, y, kernel);
  if (window.empty()) return refuse_window(g);
  bool include_pad = attribute(g.node, "count_include_pad", int64_t{0});
  bool explicit_pads = attribute(g.node, "auto_pad", "NOTSET") == "NOTSET";
  std::vector<int64_t> given = attribute(g.node, "pads", std::vector<int64_t>(2 * axes, 0));

  double factor = 1;
  for (size_t i = 0; i < axes; ++i) {
    const WindowAxis& axis = window[i];
    // In ceil mode a window may reach beyond the end pad; that part counts in neither case.
    int64_t end_pad = explicit_pads ? given[axes + i] : std::max<int64_t>(0, axis.end());
    int64_t low = include_pad ? -axis.begin : 0, high = axis.large + (include_pad ? end_pad : 0);
    if (axis.begin <= -low && axis.large + axis.end() <= high) {  // all windows whole
      factor /= static_cast<double>(axis.kernel);
      continue;
    }
    if (axis.small > kMaxCounts) {
      return g.refuse("the counts of its " + std::to_string(axis.small) + " windows along axis " +
                          std::to_string(i + 2) + " differ",
                      "use pads that no average counts differently");
    }
    std::vector<double> counts = window_counts(axis, low, high);
    Shape shape(y.size(), 1);
    shape[i + 2] = axis.small;
    dy = b.div(dy, b.floats(counts, shape, type));
  }
  g.give(0, spread_evenly(b, dy, factor, window, x));
}

void global_average_pool_gradient(Backward& g) {
  Shape x = g.shape(g.input(0));
  double count = static_cast<double>(elements(x)) / static_cast<double>(elements(g.shape(g.output(0))));
  g.give(0, g.b.expand(g.b.scaled(g.gradient(), 1 / count), x));
}

// All of it goes to the first element that is the maximum, as in PyTorch's adaptive_max_pool.
void global_max_pool_gradient(Backward& g) {
  Builder& b = g.b;
  Shape x = g.shape(g.input(0));
  Shape flat = {x[0], x[1], elements(Shape(x.begin() + 2, x.end()))}, column = {x[0], x[1], 1};
  TensorId index = b.emit_as(DType::int64, "ArgMax", {b.reshape(g.input(0), flat)}, column, {{"axis", int64_t{2}}});
  TensorId dy = b.reshape(g.gradient(), column);
  TensorId scattered =
      b.emit("ScatterElements", {b.filled(flat, 0, b.dtype(dy)), index, dy}, flat, {{"axis", int64_t{2}}});
  g.give(0, b.reshape(scattered, x));
}

namespace {

// Y = (sum of |X|^p)^(1/p) has dX = sign(X) |X|^(p - 1) * (dY / Y^(p - 1)). The second factor, 0 where Y is (as PyTorch
// has it), ...
TensorId norm_share(Builder& b, TensorId dy, TensorId y, int64_t p) {
  if (p == 1) return dy;
  TensorId power = p == 2 ? y : b.binary("Pow", y, b.scalar(static_cast<double>(p - 1), b.dtype(y)));
  return b.keep_where(b.greater(y, b.scalar(0, b.dtype(y))), b.div(dy, power));
}
// ... and the first.
TensorId norm_slope(Builder& b, TensorId x, int64_t p) {
  if (p == 2) return x;
  TensorId sign = b.unary("Sign", x);
  if (p == 1) return sign;
  return b.mul(sign, b.binary("Pow", b.unary("Abs", x), b.scalar(static_cast<double>(p - 1), b.dtype(x))));
}

}  // namespace

void lp_pool_gradient(Backward& g) {
  Shape x = g.shape(g.input(0)), y = g.shape(g.output(0));
  Shape kernel = attribute(g.node, "kernel_shape", Shape(x.size() - 2, 1));
  Window window = conv_window(g.node, x, y, kernel);
  if (window.empty()) return refuse_window(g);
  int64_t p = attribute(g.node, "p", int64_t{2});
  if (p < 1) return g.refuse("p is " + std::to_string(p), "use a norm of p = 1 or more");
  TensorId share = spread_evenly(g.b, norm_share(g.b, g.gradient(), g.output(0), p), 1, window, x);
  g.give(0, g.b.mul(norm_slope(g.b, g.input(0), p), share));
}

// Each element went to the place that its index names in the flattened output.
void max_unpool_gradient(Backward& g) {
  if (g.shape(g.input(1)) != g.shape(g.input(0)))
    return g.refuse("it has not one index for each element", "check the shapes of its inputs");
  TensorId flat = g.b.reshape(g.gradient(), {elements(g.shape(g.gradient()))});
  g.give(0, g.b.emit("Gather", {flat, g.input(1)}, g.shape(g.input(0)), {{"axis", int64_t{0}}}));
}

}  // namespace monet
