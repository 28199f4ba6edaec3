// Gradients of pooling.
#include <algorithm>

#include "engine/training/gradient_rules.h"
#include "engine/training/window_gradients.h"

namespace monet {

// Each output's gradient goes to the element that was the maximum, found through the Indices output (positions in the
// flattened input): one ScatterElements that adds, since windows overlap.
void max_pool_gradient(Backward& g) {
  if (attribute(g.node, "storage_order", int64_t{0}) != 0) {
    return g.refuse("it asks for column-major indices (storage_order = 1)", "export it with storage_order = 0");
  }
  Builder& b = g.b;
  Shape x = g.shape(g.input(0)), y = g.shape(g.gradient());
  TensorId indices = g.saved_output(1, DType::int64, y);
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

}  // namespace

// Every channel by itself: a ConvTranspose of dY, as [N * C, 1, ...], with a kernel of ones, after division by the
// number of elements each window averaged. That number is a product over axes; where it is the same for all windows it
// becomes the kernel's value.
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
  Shape plane_y = y, plane_x = x, ones(x.size(), 1);
  plane_y[0] = plane_x[0] = y[0] * y[1];
  plane_y[1] = plane_x[1] = 1;
  std::copy(kernel.begin(), kernel.end(), ones.begin() + 2);
  TensorId spread_out = spread(b, b.reshape(dy, plane_y), b.filled(ones, factor, type), window, 1, plane_x);
  g.give(0, b.reshape(spread_out, x));
}

void global_average_pool_gradient(Backward& g) {
  Shape x = g.shape(g.input(0));
  double count = static_cast<double>(elements(x)) / static_cast<double>(elements(g.shape(g.output(0))));
  g.give(0, g.b.expand(g.b.scaled(g.gradient(), 1 / count), x));
}

}  // namespace monet
