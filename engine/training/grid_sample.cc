// Gradient of GridSample (Jaderberg, Simonyan, Zisserman and Kavukcuoglu, Spatial Transformer Networks, arXiv
// 1506.02025): to the image, each output's gradient shared among the pixels around its point; to the grid, the slope of
// the interpolation there. Cubic: Keys, Cubic convolution interpolation for digital image processing, 1981.
#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

// A pixel near all points along one axis; fields are [N, points].
struct Neighbour {
  TensorId index = kNone;   // int64, within the axis
  TensorId weight = kNone;  // its share; 0 for those outside that count as 0
  TensorId slope = kNone;   // d weight / d grid; kNone for the nearest pixel, which does not depend on it smoothly
};

class Sampler {
 public:
  Sampler(Backward& g, const Shape& points)
      : b_(g.b),
        type_(g.b.dtype(g.input(0))),
        points_(points),
        align_corners_(attribute(g.node, "align_corners", int64_t{0}) != 0),
        padding_(attribute(g.node, "padding_mode", "zeros")),
        mode_(attribute(g.node, "mode", "linear")) {}

  std::vector<Neighbour> neighbours(TensorId grid, int64_t size) {
    size_ = size;
    double last = static_cast<double>(size - 1), scale = (align_corners_ ? last : static_cast<double>(size)) / 2;
    TensorId pixel = b_.add(b_.scaled(grid, scale), scalar(last / 2)), slope = b_.filled(points_, scale, type_);
    // Cubic interpolation pads pixels, the others the point.
    if (mode_ != "cubic" && padding_ == "reflection") pixel = reflect(pixel, &slope);
    if (mode_ != "cubic" && padding_ != "zeros") {  // half a pixel beyond the last centres may remain
      slope = b_.mul(slope, inside(pixel, 0, last));
      pixel = clip(pixel);
    }
    if (mode_ == "nearest") {
      pixel = b_.unary("Round", pixel);
      return {neighbour(pixel, b_.filled(points_, 1, type_), kNone)};
    }
    TensorId low = b_.unary("Floor", pixel), t = b_.sub(pixel, low), rest = b_.sub(scalar(1), t);
    TensorId next = b_.add(low, scalar(1)), falling = b_.unary("Neg", slope);
    if (mode_ == "linear") return {neighbour(low, rest, falling), neighbour(next, t, slope)};
    TensorId before = b_.add(t, scalar(1)), after = b_.add(rest, scalar(1));  // distances of the outer two
    return {neighbour(b_.sub(low, scalar(1)), far(before), b_.mul(far_slope(before), slope)),
            neighbour(low, near(t), b_.mul(near_slope(t), slope)),
            neighbour(next, near(rest), b_.mul(near_slope(rest), falling)),
            neighbour(b_.add(next, scalar(1)), far(after), b_.mul(far_slope(after), falling))};
  }

 private:
  static constexpr double kA = -0.75;  // of the cubic, fixed by the operator

  TensorId scalar(double value) { return b_.scalar(value, type_); }
  // ((c[0] x + c[1]) x + c[2]) x + ...
  TensorId polynomial(TensorId x, const std::vector<double>& c) {
    TensorId sum = b_.scaled(x, c[0]);
    for (size_t i = 1; i + 1 < c.size(); ++i) sum = b_.mul(c[i] == 0 ? sum : b_.add(sum, scalar(c[i])), x);
    return c.back() == 0 ? sum : b_.add(sum, scalar(c.back()));
  }
  TensorId near(TensorId x) { return polynomial(x, {kA + 2, -(kA + 3), 0, 1}); }
  TensorId far(TensorId x) { return polynomial(x, {kA, -5 * kA, 8 * kA, -4 * kA}); }
  TensorId near_slope(TensorId x) { return polynomial(x, {3 * (kA + 2), -2 * (kA + 3), 0}); }
  TensorId far_slope(TensorId x) { return polynomial(x, {3 * kA, -10 * kA, 8 * kA}); }

  TensorId clip(TensorId a) { return b_.emit("Clip", {a, scalar(0), scalar(static_cast<double>(size_ - 1))}, points_); }
  // 1 where low < a < high, else 0.
  TensorId inside(TensorId a, double low, double high) {
    TensorId mask = b_.emit("And", {b_.greater(a, scalar(low)), b_.less(a, scalar(high))}, points_);
    return b_.emit_as(type_, "Cast", {mask}, points_, {{"to", static_cast<int64_t>(type_)}});
  }

  // Into the image, back and forth at its borders: the centres of the last pixels when corners are aligned, else their
  // outer edges. `slope` is multiplied by the direction, 1 or -1.
  TensorId reflect(TensorId pixel, TensorId* slope) {
    double begin = align_corners_ ? 0 : -0.5, span = static_cast<double>(align_corners_ ? size_ - 1 : size_);
    if (span == 0) return b_.scaled(pixel, 0);
    TensorId offset = b_.sub(pixel, scalar(begin)), distance = b_.unary("Abs", offset);
    TensorId flips = b_.unary("Floor", b_.scaled(distance, 1 / span));
    TensorId extra = b_.sub(distance, b_.scaled(flips, span));
    TensorId odd = b_.sub(flips, b_.scaled(b_.unary("Floor", b_.scaled(flips, 0.5)), 2));  // 1 or 0
    TensorId direction = b_.sub(scalar(1), b_.scaled(odd, 2));
    if (slope) *slope = b_.mul(*slope, b_.mul(b_.unary("Sign", offset), direction));
    return b_.add(b_.add(b_.mul(direction, extra), b_.scaled(odd, span)), scalar(begin));
  }

  Neighbour neighbour(TensorId pixel, TensorId weight, TensorId slope) {
    if (padding_ == "zeros") {
      TensorId there = inside(pixel, -0.5, static_cast<double>(size_) - 0.5);
      weight = b_.mul(weight, there);
      if (slope != kNone) slope = b_.mul(slope, there);
    } else if (mode_ == "cubic" && padding_ == "reflection") {
      pixel = reflect(pixel, nullptr);
    }
    TensorId index =
        b_.emit_as(DType::int64, "Cast", {clip(pixel)}, points_, {{"to", static_cast<int64_t>(DType::int64)}});
    return {index, weight, slope};
  }

  Builder& b_;
  DType type_;
  Shape points_;
  bool align_corners_;
  std::string padding_, mode_;
  int64_t size_ = 1;  // of the axis at hand
};

}  // namespace

void grid_sample_gradient(Backward& g) {
  constexpr int64_t kMaxAxes = 3;  // what runtimes have; pixels around a point double (cubic: quadruple) with each
  Builder& b = g.b;
  TensorId grid = g.input(1);
  Shape x = g.shape(g.input(0)), y = g.shape(g.gradient()), grid_shape = g.shape(grid);
  int64_t axes = static_cast<int64_t>(x.size()) - 2;
  if (axes < 1 || axes > kMaxAxes || grid_shape.size() != x.size() || grid_shape.back() != axes ||
      grid_shape[0] != x[0] || b.dtype(grid) != b.dtype(g.input(0)))
    return g.refuse("its grid does not fit its input", "check the shapes and types of the node");
  int64_t samples = x[0], channels = x[1], points = elements(Shape(y.begin() + 2, y.end()));
  Shape image = {samples, channels, elements(Shape(x.begin() + 2, x.end()))}, deep = {samples, channels, points};
  Shape each = {samples, points}, row = {samples, 1, points};
  Sampler sampler(g, each);
  TensorId all = b.reshape(grid, {samples, points, axes});
  std::vector<std::vector<Neighbour>> near;
  for (int64_t j = 0; j < axes; ++j) {
    int64_t at = axes - 1 - j;  // the last number of a grid point belongs to the first axis of the image
    near.push_back(sampler.neighbours(b.reshape(b.slice(all, {2}, {at}, {at + 1}), each), x[j + 2]));
  }
  size_t per_axis = near[0].size(), pixels = 1;
  for (int64_t j = 0; j < axes; ++j) pixels *= per_axis;
  bool smooth = near[0][0].slope != kNone;

  TensorId dy = b.reshape(g.gradient(), deep), flat = b.reshape(g.input(0), image);
  TensorId dx = g.wants(0) ? b.filled(image, 0, b.dtype(dy)) : kNone;
  std::vector<TensorId> dgrid(axes, kNone);
  for (size_t pixel = 0; pixel < pixels; ++pixel) {
    std::vector<Neighbour> n;
    TensorId place = kNone, weight = kNone;
    for (int64_t j = 0, k = static_cast<int64_t>(pixel); j < axes; ++j, k /= static_cast<int64_t>(per_axis)) {
      n.push_back(near[j][k % static_cast<int64_t>(per_axis)]);
      TensorId scaled = place == kNone ? kNone : b.mul(place, b.scalar(static_cast<double>(x[j + 2]), DType::int64));
      place = place == kNone ? n[j].index : b.add(scaled, n[j].index);
      weight = weight == kNone ? n[j].weight : b.mul(weight, n[j].weight);
    }
    TensorId index = b.expand(b.reshape(place, row), deep);
    if (g.wants(0))
      dx = b.emit("ScatterElements", {dx, index, b.mul(dy, b.reshape(weight, row))}, image,
                  {{"axis", int64_t{2}}, {"reduction", std::string("add")}});
    if (!g.wants(1) || !smooth) continue;
    TensorId value = b.emit("GatherElements", {flat, index}, deep, {{"axis", int64_t{2}}});
    TensorId product = b.reduce("ReduceSum", b.mul(dy, value), {1}, false);
    for (int64_t j = 0; j < axes; ++j) {
      TensorId term = b.mul(product, n[j].slope);
      for (int64_t i = 0; i < axes; ++i)
        if (i != j) term = b.mul(term, n[i].weight);
      dgrid[j] = dgrid[j] == kNone ? term : b.add(dgrid[j], term);
    }
  }
  if (g.wants(0)) g.give(0, b.reshape(dx, x));
  if (!g.wants(1)) return;
  if (!smooth) return g.give(1, b.filled(grid_shape, 0, b.dtype(grid)));
  std::vector<TensorId> columns;
  for (int64_t j = axes; j-- > 0;) columns.push_back(b.reshape(dgrid[j], {samples, points, 1}));
  g.give(1, b.reshape(b.emit("Concat", columns, {samples, points, axes}, {{"axis", int64_t{2}}}), grid_shape));
}

}  // namespace monet
