// Gradient of GridSample (Jaderberg, Simonyan, Zisserman and Kavukcuoglu, Spatial Transformer Networks, arXiv
// 1506.02025): to the image, each output's gradient shared among the pixels around its point; to the grid, the slope of
// the interpolation there.
#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

// One spatial axis of all points, each field [N, points].
struct Coordinate {
  int64_t size = 1;        // pixels
  TensorId slope = kNone;  // d pixel / d grid
  TensorId low = kNone;    // the pixel before the point, as a float
  TensorId share = kNone;  // of the pixel after it; kNone when only the nearest pixel counts
};

struct Sampler {
  Builder& b;
  DType type;
  bool align_corners;
  std::string padding;

  TensorId scalar(double value) { return b.scalar(value, type); }
  TensorId ones(const Shape& shape) { return b.filled(shape, 1, type); }
  TensorId clip(TensorId a, double low, double high) {
    return b.emit("Clip", {a, scalar(low), scalar(high)}, b.shape(a));
  }
  // 1 where low < a < high, else 0.
  TensorId inside(TensorId a, double low, double high) {
    TensorId mask = b.emit("And", {b.greater(a, scalar(low)), b.less(a, scalar(high))}, b.shape(a));
    return b.emit_as(type, "Cast", {mask}, b.shape(a), {{"to", static_cast<int64_t>(type)}});
  }

  Coordinate locate(TensorId grid, int64_t size, bool nearest) {
    Coordinate c{.size = size};
    double last = static_cast<double>(size - 1), scale = (align_corners ? last : static_cast<double>(size)) / 2;
    TensorId pixel = b.add(b.scaled(grid, scale), scalar(last / 2));
    TensorId factor = scalar(scale);
    c.slope = ones(b.shape(grid));
    if (padding == "reflection") {
      double begin = align_corners ? 0 : -0.5, span = align_corners ? last : static_cast<double>(size);
      if (span == 0) {  // one pixel, corners aligned
        pixel = b.scaled(pixel, 0);
        c.slope = b.scaled(c.slope, 0);
      } else {
        TensorId offset = b.sub(pixel, scalar(begin)), distance = b.unary("Abs", offset);
        TensorId flips = b.unary("Floor", b.scaled(distance, 1 / span));
        TensorId extra = b.sub(distance, b.scaled(flips, span));
        // 1 after an odd number of flips, else 0.
        TensorId odd = b.sub(flips, b.scaled(b.unary("Floor", b.scaled(flips, 0.5)), 2));
        TensorId direction = b.sub(scalar(1), b.scaled(odd, 2));
        pixel = b.add(b.add(b.mul(direction, extra), b.scaled(odd, span)), scalar(begin));
        c.slope = b.mul(b.unary("Sign", offset), direction);
      }
    }
    if (padding != "zeros") {  // reflection about pixel borders leaves half a pixel beyond the last centres
      c.slope = b.mul(c.slope, inside(pixel, 0, last));
      pixel = clip(pixel, 0, last);
    }
    c.slope = b.mul(c.slope, factor);
    c.low = b.unary(nearest ? "Round" : "Floor", pixel);
    if (!nearest) c.share = b.sub(pixel, c.low);
    return c;
  }
};

}  // namespace

void grid_sample_gradient(Backward& g) {
  Builder& b = g.b;
  TensorId x = g.input(0), grid = g.input(1), dy = g.gradient();
  Shape x_shape = g.shape(x), y_shape = g.shape(dy), grid_shape = g.shape(grid);
  std::string mode = attribute(g.node, "mode", "linear");
  bool nearest = mode == "nearest";
  if (mode == "cubic" || mode == "bicubic") return g.refuse("its mode is cubic", "sample with mode linear or nearest");
  size_t axes = x_shape.size() - 2;
  if (x_shape.size() < 3 || grid_shape.size() != axes + 2 || grid_shape.back() != static_cast<int64_t>(axes) ||
      b.dtype(grid) != b.dtype(x))
    return g.refuse("its grid does not fit its input", "check the shapes of the node");
  int64_t samples = x_shape[0], channels = x_shape[1], pixels = elements(Shape(x_shape.begin() + 2, x_shape.end()));
  int64_t points = elements(Shape(y_shape.begin() + 2, y_shape.end()));
  Shape each = {samples, points}, deep = {samples, channels, points}, row = {samples, 1, points};
  Sampler sampler{b, b.dtype(x), attribute(g.node, "align_corners", int64_t{0}) != 0,
                  attribute(g.node, "padding_mode", "zeros")};

  // The last number of a grid point belongs to the first axis of the image.
  TensorId all = b.reshape(grid, {samples, points, static_cast<int64_t>(axes)});
  std::vector<Coordinate> coordinates;
  for (size_t j = 0; j < axes; ++j) {
    int64_t at = static_cast<int64_t>(axes - 1 - j);
    coordinates.push_back(sampler.locate(b.reshape(b.slice(all, {2}, {at}, {at + 1}), each), x_shape[j + 2], nearest));
  }
  dy = b.reshape(dy, deep);
  TensorId image = b.reshape(x, {samples, channels, pixels});
  TensorId dx = g.wants(0) ? b.filled({samples, channels, pixels}, 0, b.dtype(x)) : kNone;
  std::vector<TensorId> slopes(axes, kNone);
  // Corner k of the cell around the point: bit j says whether it is the later pixel of axis j.
  for (size_t k = 0; k < (nearest ? 1 : size_t{1} << axes); ++k) {
    TensorId place = kNone, weight = kNone, valid = kNone;
    std::vector<TensorId> shares;
    for (size_t j = 0; j < axes; ++j) {
      const Coordinate& c = coordinates[j];
      bool later = k >> j & 1;
      TensorId pixel = later ? b.add(c.low, sampler.scalar(1)) : c.low;
      double size = static_cast<double>(c.size);
      TensorId there = sampler.inside(pixel, -0.5, size - 0.5), at = sampler.clip(pixel, 0, size - 1);
      valid = valid == kNone ? there : b.mul(valid, there);
      at = b.emit_as(DType::int64, "Cast", {at}, each, {{"to", static_cast<int64_t>(DType::int64)}});
      place = place == kNone ? at : b.add(b.mul(place, b.scalar(size, DType::int64)), at);
      if (nearest) continue;
      shares.push_back(later ? c.share : b.sub(sampler.scalar(1), c.share));
      weight = weight == kNone ? shares[j] : b.mul(weight, shares[j]);
    }
    weight = weight == kNone ? valid : b.mul(weight, valid);
    TensorId index = b.expand(b.reshape(place, row), deep);
    if (g.wants(0))
      dx = b.emit("ScatterElements", {dx, index, b.mul(dy, b.reshape(weight, row))}, {samples, channels, pixels},
                  {{"axis", int64_t{2}}, {"reduction", std::string("add")}});
    if (!g.wants(1) || nearest) continue;
    TensorId value = b.emit("GatherElements", {image, index}, deep, {{"axis", int64_t{2}}});
    TensorId product = b.mul(b.reduce("ReduceSum", b.mul(dy, value), {1}, false), valid);
    for (size_t j = 0; j < axes; ++j) {
      TensorId term = product;
      for (size_t i = 0; i < axes; ++i)
        if (i != j) term = b.mul(term, shares[i]);
      bool later = k >> j & 1;
      slopes[j] =
          slopes[j] == kNone ? (later ? term : b.unary("Neg", term)) : b.binary(later ? "Add" : "Sub", slopes[j], term);
    }
  }
  if (g.wants(0)) g.give(0, b.reshape(dx, x_shape));
  if (!g.wants(1)) return;
  if (nearest) return g.give(1, b.filled(grid_shape, 0, b.dtype(grid)));
  std::vector<TensorId> columns;
  for (size_t j = axes; j-- > 0;)
    columns.push_back(b.reshape(b.mul(slopes[j], coordinates[j].slope), {samples, points, 1}));
  TensorId dgrid = b.emit("Concat", columns, {samples, points, static_cast<int64_t>(axes)}, {{"axis", int64_t{2}}});
  g.give(1, b.reshape(dgrid, grid_shape));
}

}  // namespace monet
