// Gradients of quantisation: rounding counts as the identity and clipping cuts the gradient off (the straight-through
// estimator: Bengio et al., arXiv 1308.3432; Jacob et al., arXiv 1712.05877, for quantisation). A gradient with respect
// to quantised integers is in floats, per step of the quantiser.
#include <optional>

#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

struct Range {
  double low, high;
};

// What the quantised type holds.
std::optional<Range> range_of(DType type) {
  switch (type) {
    case DType::uint4:
      return Range{0, 15};
    case DType::int4:
      return Range{-8, 7};
    case DType::uint8:
      return Range{0, 255};
    case DType::int8:
      return Range{-128, 127};
    case DType::uint16:
      return Range{0, 65535};
    case DType::int16:
      return Range{-32768, 32767};
    case DType::float8e4m3fn:
      return Range{-448, 448};
    case DType::float8e4m3fnuz:
      return Range{-240, 240};
    case DType::float8e5m2:
    case DType::float8e5m2fnuz:
      return Range{-57344, 57344};
    default:
      return std::nullopt;
  }
}

// Whether the scale is one number, one per slice along the axis, or one per block of slices, and no other.
bool scale_fits(Backward& g) {
  Shape x = g.shape(g.input(0)), scale = g.shape(g.input(1));
  int64_t rank = static_cast<int64_t>(x.size()), axis = attribute(g.node, "axis", int64_t{1});
  if (axis < 0) axis += rank;
  bool has_axis = axis >= 0 && axis < rank;
  bool fits = elements(scale) == 1 || (has_axis && scale.size() == 1 && scale[0] == x[axis]) ||
              (has_axis && scale.size() == x.size() && attribute(g.node, "block_size", int64_t{0}) > 0);
  if (g.input(2) != kNone) fits = fits && elements(g.shape(g.input(2))) == elements(scale);
  if (!fits) g.refuse("its scale or zero point does not fit its input", "check the model");
  return fits;
}

// A scale or zero point so that it broadcasts against `x`: one for the tensor, one per slice along the axis, or one per
// block of `block_size` slices.
TensorId spread_over(const Backward& g, TensorId per, const Shape& x) {
  Builder& b = g.b;
  Shape given = b.shape(per);
  int64_t rank = static_cast<int64_t>(x.size()), axis = attribute(g.node, "axis", int64_t{1});
  if (axis < 0) axis += rank;
  if (elements(given) == 1) return b.reshape(per, {});
  if (given.size() == 1) {
    Shape line(x.size(), 1);
    line[axis] = given[0];
    return b.reshape(per, line);
  }
  int64_t block = attribute(g.node, "block_size", int64_t{0});
  Shape column = given, blocks = given, whole = given;
  column.insert(column.begin() + axis + 1, 1);
  blocks.insert(blocks.begin() + axis + 1, block);
  whole[axis] *= block;
  TensorId repeated = b.reshape(b.expand(b.reshape(per, column), blocks), whole);
  return whole == x ? repeated : b.slice(repeated, {axis}, {0}, {x[axis]});  // the last block may be shorter
}

}  // namespace

// dX = dY / scale where the rounded value lies within the type's range, as in PyTorch's fake quantisation.
void quantize_linear_gradient(Backward& g) {
  if (!scale_fits(g)) return;
  Builder& b = g.b;
  TensorId x = g.input(0), zero_point = g.input(2);
  DType type = b.dtype(x), quantised = b.dtype(g.output(0));
  std::optional<Range> range = range_of(quantised);
  if (!range || !is_float(type)) {
    return g.refuse(std::string("it quantises ") + name(type) + " to " + name(quantised),
                    "quantise floats to integers of at most 16 bits");
  }
  Shape shape = g.shape(x);
  TensorId scale = b.cast(spread_over(g, g.input(1), shape), type);
  TensorId value = b.div(x, scale);
  if (!is_float(quantised)) value = b.unary("Round", value);
  if (zero_point != kNone && !is_float(quantised))
    value = b.add(value, spread_over(g, b.cast(zero_point, type), shape));
  TensorId above = b.compare("GreaterOrEqual", value, b.scalar(range->low, type));
  TensorId below = b.compare("LessOrEqual", value, b.scalar(range->high, type));
  TensorId inside = b.emit("And", {above, below}, shape);
  g.give(0, b.keep_where(inside, b.div(b.cast(g.gradient(), type), scale)));
}

// dX = dY * scale
void dequantize_linear_gradient(Backward& g) {
  if (scale_fits(g)) g.give(0, g.b.mul(g.gradient(), spread_over(g, g.input(1), g.shape(g.input(0)))));
}

}  // namespace monet
