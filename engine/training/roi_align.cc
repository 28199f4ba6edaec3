// Gradient of RoiAlign (He et al., Mask R-CNN, arXiv 1703.06870) with respect to the image. Averages of bilinear
// samples are separable: each region is Wy X Wx^T with one matrix of interpolation weights per axis, so its share of
// the image's gradient is Wy^T dY Wx. No gradient flows to the regions, as in torchvision.
#include <numeric>

#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

// [regions, bins, size]: what each bin along one axis takes of each of `size` elements. `first` and `last` are the
// region's edges in pixels, [regions, 1].
TensorId weights(Builder& b, TensorId first, TensorId last, int64_t bins, int64_t samples, int64_t size, bool legacy) {
  DType type = b.dtype(first);
  int64_t regions = b.shape(first)[0];
  auto number = [&](double v) { return b.scalar(v, type); };
  TensorId extent = b.sub(last, first);
  if (legacy) extent = b.binary("Max", extent, number(1));
  std::vector<double> places, elements(size);
  for (int64_t i = 0; i < bins * samples; ++i)
    places.push_back((static_cast<double>(i) + 0.5) / static_cast<double>(bins * samples));
  std::iota(elements.begin(), elements.end(), 0.0);
  TensorId at = b.add(first, b.mul(extent, b.floats(places, {1, bins * samples}, type)));
  double end = static_cast<double>(size);
  TensorId nearest = b.emit("Clip", {at, number(0), number(end - 1)}, b.shape(at));
  TensorId distance =
      b.unary("Abs", b.sub(b.reshape(nearest, {regions, bins * samples, 1}), b.floats(elements, {1, 1, size}, type)));
  TensorId weight = b.unary("Relu", b.sub(number(1), distance));
  // Samples more than a pixel outside count as zeros.
  for (TensorId inside : {b.greater(at, number(-1)), b.less(at, number(end))})
    weight = b.keep_where(
        b.emit("Reshape", {inside, b.ints({regions, bins * samples, 1})}, {regions, bins * samples, 1}), weight);
  return b.reduce("ReduceMean", b.reshape(weight, {regions, bins, samples, size}), {2}, false);
}

}  // namespace

void roi_align_gradient(Backward& g) {
  Builder& b = g.b;
  Shape x = g.shape(g.input(0)), y = g.shape(g.gradient());
  int64_t samples = attribute(g.node, "sampling_ratio", int64_t{0});
  if (attribute(g.node, "mode", "avg") != "avg") return g.refuse("its mode is max", "use mode avg");
  if (samples < 1) return g.refuse("its number of samples depends on the data", "export it with a sampling_ratio");
  bool legacy = attribute(g.node, "coordinate_transformation_mode", "half_pixel") == "output_half_pixel";
  TensorId edges = b.scaled(g.input(1), static_cast<double>(attribute(g.node, "spatial_scale", 1.0f)));
  if (!legacy) edges = b.sub(edges, b.scalar(0.5, b.dtype(edges)));
  auto edge = [&](int64_t i) { return b.slice(edges, {1}, {i}, {i + 1}); };
  int64_t regions = y[0];
  TensorId rows = weights(b, edge(1), edge(3), y[2], samples, x[2], legacy);
  TensorId columns = weights(b, edge(0), edge(2), y[3], samples, x[3], legacy);
  Shape half = {regions, x[1], x[2], y[3]}, each = {regions, x[1], x[2], x[3]};
  TensorId left = b.reshape(b.transpose(rows, {0, 2, 1}), {regions, 1, x[2], y[2]});
  TensorId share = b.emit("MatMul", {left, g.gradient()}, half);
  share = b.emit("MatMul", {share, b.reshape(columns, {regions, 1, y[3], x[3]})}, each);
  TensorId image = b.expand(b.reshape(g.input(2), {regions, 1, 1, 1}), each);
  g.give(0, b.emit("ScatterElements", {b.filled(x, 0, b.dtype(share)), image, share}, x,
                   {{"axis", int64_t{0}}, {"reduction", std::string("add")}}));
}

}  // namespace monet
