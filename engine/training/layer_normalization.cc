// Gradients of the normalisations whose statistics belong to one sample: LayerNormalization (Ba, Kiros and Hinton,
// arXiv 1607.06450), GroupNormalization (Wu and He, arXiv 1803.08494), InstanceNormalization (Ulyanov, Vedaldi and
// Lempitsky, arXiv 1607.08022) and MeanVarianceNormalization.
//
// All compute h = (X - mean) * s with s = 1 / sqrt(var + epsilon) over some axes, then Y = h * scale + bias:
//   dscale = sum(dY * h),  dbias = sum(dY),  dh = dY * scale,  dX = s * (dh - mean(dh) - h * mean(dh * h))
#include <numeric>

#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

// dX of h = (X - mean(X)) * inverse.
TensorId standardized_gradient(Builder& b, TensorId dh, TensorId h, TensorId inverse,
                               const std::vector<int64_t>& axes) {
  TensorId along = b.mul(h, b.reduce("ReduceMean", b.mul(dh, h), axes, true));
  return b.mul(b.sub(b.sub(dh, b.reduce("ReduceMean", dh, axes, true)), along), inverse);
}

// X - mean(X), and the mean of its square.
struct Moments {
  TensorId centred, variance;
};
Moments moments(Builder& b, TensorId x, const std::vector<int64_t>& axes) {
  Moments m;
  m.centred = b.sub(x, b.reduce("ReduceMean", x, axes, true));
  m.variance = b.reduce("ReduceMean", b.mul(m.centred, m.centred), axes, true);
  return m;
}

TensorId cast(Builder& b, TensorId a, DType type) {
  if (b.dtype(a) == type) return a;
  return b.emit_as(type, "Cast", {a}, b.shape(a), {{"to", static_cast<int64_t>(type)}});
}

// Whether a tensor of shape `part` can be broadcast to `whole`.
bool broadcasts(const Shape& part, const Shape& whole) {
  if (part.size() > whole.size()) return false;
  size_t shift = whole.size() - part.size();
  for (size_t i = 0; i < part.size(); ++i)
    if (part[i] != 1 && part[i] != whole[shift + i]) return false;
  return true;
}

bool all_scales_are(const Backward& g, const Shape& shape) {
  for (size_t i : {1, 2})
    if (g.input(i) != kNone && g.shape(g.input(i)) != shape) return false;
  return true;
}

// Channels in `groups` groups, each with statistics of its own per sample; scale and bias per channel. Kept from the
// forward pass is X alone; ONNX's operators give no statistics out.
void group_gradient(Backward& g, int64_t groups) {
  Builder& b = g.b;
  TensorId x = g.input(0), dy = g.gradient();
  Shape shape = g.shape(x);
  if (shape.size() < 2 || groups < 1 || shape[1] % groups != 0) {
    return g.refuse("its channels do not fall into " + std::to_string(groups) + " groups", "check num_groups");
  }
  if (!all_scales_are(g, {shape[1]})) return g.refuse("it has no scale and bias per channel", "check their shapes");
  int64_t spatial = elements(Shape(shape.begin() + 2, shape.end()));
  Shape grouped = {shape[0], groups, shape[1] / groups * spatial}, channels = {shape[0], shape[1], spatial};
  dy = b.reshape(dy, channels);
  if (g.wants(2)) g.give(2, b.reduce("ReduceSum", dy, {0, 2}, false));
  if (!g.wants(0) && !g.wants(1)) return;
  TensorId epsilon = b.scalar(attribute(g.node, "epsilon", 1e-5f), b.dtype(x));
  Moments m = moments(b, b.reshape(x, grouped), {2});
  TensorId inverse = b.unary("Reciprocal", b.unary("Sqrt", b.add(m.variance, epsilon)));
  TensorId h = b.mul(m.centred, inverse);
  if (g.wants(1)) g.give(1, b.reduce("ReduceSum", b.mul(dy, b.reshape(h, channels)), {0, 2}, false));
  if (!g.wants(0)) return;
  TensorId dh = b.reshape(b.mul(dy, b.reshape(g.input(1), {1, shape[1], 1})), grouped);
  g.give(0, b.reshape(standardized_gradient(b, dh, h, inverse, {2}), shape));
}

}  // namespace

// Mean and inverse deviation are outputs of the operator and are kept, as PyTorch keeps them.
void layer_normalization_gradient(Backward& g) {
  Builder& b = g.b;
  TensorId x = g.input(0), dy = g.gradient();
  DType type = b.dtype(x), stash = static_cast<DType>(attribute(g.node, "stash_type", int64_t{1}));
  Shape shape = g.shape(x), statistic = shape;
  int64_t rank = static_cast<int64_t>(shape.size()), axis = attribute(g.node, "axis", int64_t{-1});
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank || !is_float(stash))
    return g.refuse("its axis or stash_type is none that its input can have", "check the attributes of the node");
  for (size_t i : {1, 2})
    if (g.input(i) != kNone && !broadcasts(g.shape(g.input(i)), shape))
      return g.refuse("its scale or bias does not fit its input", "check their shapes");
  std::vector<int64_t> axes(rank - axis);
  std::iota(axes.begin(), axes.end(), axis);
  for (int64_t i : axes) statistic[i] = 1;
  if (g.wants(2)) g.give(2, b.reduce_to(dy, g.shape(g.input(2))));
  if (!g.wants(0) && !g.wants(1)) return;
  TensorId mean = cast(b, g.saved_output(1, stash, statistic), type);
  TensorId inverse = cast(b, g.saved_output(2, stash, statistic), type);
  TensorId h = b.mul(b.sub(x, mean), inverse);
  if (g.wants(1)) g.give(1, b.reduce_to(b.mul(dy, h), g.shape(g.input(1))));
  if (g.wants(0)) g.give(0, standardized_gradient(b, b.mul(dy, g.input(1)), h, inverse, axes));
}

void group_normalization_gradient(Backward& g) { group_gradient(g, attribute(g.node, "num_groups", int64_t{0})); }

void instance_normalization_gradient(Backward& g) {
  Shape shape = g.shape(g.input(0));
  group_gradient(g, shape.size() < 2 ? 0 : shape[1]);
}

// Y = (X - mean) / (sqrt(var) + 1e-9), as ONNX's function body has it: the derivative of the root is taken with the
// addend, so that a constant slice (var = 0) has a gradient of 0 and not 0 / 0.
void mean_variance_normalization_gradient(Backward& g) {
  constexpr double kEpsilon = 1e-9;
  Builder& b = g.b;
  TensorId x = g.input(0);
  int64_t rank = static_cast<int64_t>(g.shape(x).size());
  std::vector<bool> reduced(rank);
  for (int64_t axis : attribute(g.node, "axes", std::vector<int64_t>{0, 2, 3})) {
    if (axis < -rank || axis >= rank) {
      return g.refuse(
          "its axis " + std::to_string(axis) + " does not exist in an input of " + std::to_string(rank) + " dimensions",
          "set the axes attribute");
    }
    reduced[axis < 0 ? axis + rank : axis] = true;
  }
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < rank; ++i)
    if (reduced[i]) axes.push_back(i);
  Moments m = moments(b, x, axes);
  TensorId deviation = b.add(b.unary("Sqrt", m.variance), b.scalar(kEpsilon, b.dtype(x)));
  TensorId inverse = b.unary("Reciprocal", deviation);
  g.give(0, standardized_gradient(b, g.gradient(), b.mul(m.centred, inverse), inverse, axes));
}

}  // namespace monet
