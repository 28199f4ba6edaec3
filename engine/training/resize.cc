// Gradient of Resize: the transpose of its interpolation, axis by axis.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "engine/training/gradient_rules.h"
#include "engine/training/interpolation.h"

namespace monet {

namespace {

std::vector<float> known_floats(const Tensor& tensor) {
  std::vector<float> values;
  if (tensor.dtype != DType::float32 || tensor.data.size() != sizeof(float) * elements(tensor.shape)) return values;
  values.resize(tensor.data.size() / sizeof(float));
  std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
  return values;
}

bool given(const Backward& g, size_t input) { return g.input(input) != kNone && elements(g.shape(g.input(input))) > 0; }

// What the node's inputs say of each axis of X; false after a refusal.
bool read_axes(Backward& g, std::vector<ResizedAxis>& result) {
  Shape x = g.shape(g.input(0)), y = g.shape(g.output(0));
  int64_t rank = static_cast<int64_t>(x.size());
  result.resize(x.size());
  for (int64_t i = 0; i < rank; ++i) result[i] = {.in = x[i], .out = y[i]};
  std::vector<int64_t> axes(rank);
  std::iota(axes.begin(), axes.end(), 0);
  axes = attribute(g.node, "axes", axes);
  auto fail = [&](const std::string& what) {
    g.refuse("its " + what + " not constant", "export the model with fixed sizes");
    return false;
  };
  for (int64_t& axis : axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return fail("axes do not fit its input and are");
  }
  if (given(g, 1) && attribute(g.node, "coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize") {
    std::vector<float> roi = known_floats(g.tensor(g.input(1)));
    if (roi.size() != 2 * axes.size()) return fail("roi is");
    for (size_t i = 0; i < axes.size(); ++i) {
      result[axes[i]].roi_begin = roi[i];
      result[axes[i]].roi_end = roi[axes.size() + i];
    }
  }
  if (given(g, 2)) {
    std::vector<float> scales = known_floats(g.tensor(g.input(2)));
    if (scales.size() != axes.size()) return fail("scales are");
    for (size_t i = 0; i < axes.size(); ++i) result[axes[i]].scale = scales[i];
    return true;
  }
  std::vector<int64_t> sizes = given(g, 3) ? integers(g.tensor(g.input(3))) : std::vector<int64_t>();
  if (sizes.size() != axes.size()) return fail("sizes are");
  for (size_t i = 0; i < axes.size(); ++i)
    result[axes[i]].scale = static_cast<float>(sizes[i]) / static_cast<float>(x[axes[i]]);
  std::string policy = attribute(g.node, "keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || axes.empty()) return true;
  auto smaller = [&](int64_t a, int64_t b) { return result[a].scale < result[b].scale; };
  float scale = result[policy == "not_larger" ? *std::min_element(axes.begin(), axes.end(), smaller)
                                              : *std::max_element(axes.begin(), axes.end(), smaller)]
                    .scale;
  for (int64_t axis : axes) result[axis].scale = scale;
  return true;
}

// Every input element repeated `out / in` times.
bool repeats(const std::vector<Tap>& all, const ResizedAxis& axis) {
  if (all.size() != 1 || axis.out % axis.in != 0) return false;
  int64_t times = axis.out / axis.in;
  for (int64_t o = 0; o < axis.out; ++o)
    if (all[0].index[o] != o / times || all[0].weight[o] != 1) return false;
  return true;
}

// Sums of `times` neighbours along `axis`.
TensorId sum_neighbours(Builder& b, TensorId dy, size_t axis, int64_t times) {
  Shape split = b.shape(dy), to = split;
  to[axis] /= times;
  split[axis] = times;
  split.insert(split.begin() + static_cast<int64_t>(axis), to[axis]);
  return b.reduce("ReduceSum", b.reshape(dy, split), {static_cast<int64_t>(axis) + 1}, false);
}

// Each term's share of dY goes to the input element it came from. (A product with the interpolation matrix would be
// one node, but out / 2 times the work and a constant of in * out elements.)
TensorId scatter_taps(Builder& b, TensorId dy, size_t axis, const std::vector<Tap>& all, int64_t in) {
  Shape from = b.shape(dy), to = from, line(from.size(), 1);
  to[axis] = in;
  line[axis] = from[axis];
  DType type = b.dtype(dy);
  TensorId dx = b.filled(to, 0, type);
  for (const Tap& tap : all) {
    bool plain = std::all_of(tap.weight.begin(), tap.weight.end(), [](double weight) { return weight == 1; });
    TensorId share = plain ? dy : b.mul(dy, b.floats(tap.weight, line, type));
    TensorId index = b.expand(b.reshape(b.ints(tap.index), line), from);
    dx = b.emit("ScatterElements", {dx, index, share}, to,
                {{"axis", static_cast<int64_t>(axis)}, {"reduction", std::string("add")}});
  }
  return dx;
}

}  // namespace

void resize_gradient(Backward& g) {
  // Tables of indices and weights are constants of the graph: an axis longer than this is no image.
  constexpr int64_t kMaxSize = int64_t{1} << 16;
  constexpr double kMaxTaps = 64;  // an antialiased reduction to a 30th; each tap is three nodes
  Builder& b = g.b;
  Interpolation interpolation;
  interpolation.mode = attribute(g.node, "mode", "nearest");
  interpolation.coordinates = attribute(g.node, "coordinate_transformation_mode", "half_pixel");
  interpolation.nearest_mode = attribute(g.node, "nearest_mode", "round_prefer_floor");
  interpolation.cubic_a = attribute(g.node, "cubic_coeff_a", -0.75f);
  interpolation.exclude_outside = attribute(g.node, "exclude_outside", int64_t{0});
  interpolation.antialias = attribute(g.node, "antialias", int64_t{0});
  std::vector<ResizedAxis> axes;
  if (!read_axes(g, axes)) return;
  TensorId dx = g.gradient();
  for (size_t i = 0; i < axes.size(); ++i) {
    const ResizedAxis& axis = axes[i];
    if (axis.in == axis.out && axis.scale == 1 && axis.roi_begin == 0 && axis.roi_end == 1) continue;
    if (axis.in < 1 || axis.out < 1 || !(axis.scale > 0) || axis.out > kMaxSize ||
        tap_bound(interpolation, axis) > kMaxTaps) {
      return g.refuse("it resizes axis " + std::to_string(i) + " from " + std::to_string(axis.in) + " to " +
                          std::to_string(axis.out) + " elements",
                      "resize in several steps");
    }
    std::vector<Tap> all = taps(interpolation, axis);
    dx = repeats(all, axis) ? sum_neighbours(b, dx, i, axis.out / axis.in) : scatter_taps(b, dx, i, all, axis.in);
  }
  g.give(0, dx);
}

}  // namespace monet
