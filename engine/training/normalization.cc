// Gradient of BatchNormalization (Ioffe and Szegedy, arXiv 1502.03167, section 3).
#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

// Per-channel vectors [C] against data [N, C, ...]: [1, C, 1, ...].
Shape channel_shape(const Shape& data) {
  Shape shape(data.size(), 1);
  shape[1] = data[1];
  return shape;
}

}  // namespace

// What is kept from the forward pass is X alone: mean and variance of the batch are reduced from it again, since ONNX's
// operator returns running statistics only, and getting the batch's from those would divide rounding errors by
// 1 - momentum. With c = X - mean, s = 1 / sqrt(var + epsilon) and means over the M elements of a channel:
//   dscale = s * sum(dY * c),  dbias = sum(dY),
//   dX = scale * s * (dY - dbias / M - c * s * dscale / M)
// and for frozen statistics dX = scale * s * dY.
void batch_normalization_gradient(Backward& g) {
  Builder& b = g.b;
  TensorId x = g.input(0), dy = g.gradient();
  Shape shape = g.shape(x);
  if (shape.size() < 2) return g.refuse("its input has no channel axis", "give it data of at least two dimensions");
  Shape channel = channel_shape(shape), vector = {shape[1]};
  DType type = b.dtype(x);
  bool frozen = g.frozen_batch_norm();
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < static_cast<int64_t>(shape.size()); ++i)
    if (i != 1) axes.push_back(i);
  double per_channel = static_cast<double>(elements(shape)) / static_cast<double>(shape[1]);
  TensorId epsilon = b.scalar(attribute(g.node, "epsilon", 1e-5f), type);

  // Without trainable scale and bias, frozen statistics make this a plain scaling.
  bool batch_input = g.wants(0) && !frozen;
  bool need_scale_sum = g.wants(1) || batch_input;
  bool need_bias_sum = g.wants(2) || batch_input;

  TensorId centred = kNone, variance = kNone;
  if (frozen) {
    variance = b.reshape(g.input(4), channel);
    if (need_scale_sum) centred = b.sub(x, b.reshape(g.input(3), channel));
  } else if (need_scale_sum) {
    centred = b.sub(x, b.reduce("ReduceMean", x, axes, true));
    variance = b.scaled(b.reduce("ReduceSumSquare", centred, axes, true), 1 / per_channel);
  }
  TensorId inverse = kNone;
  if (variance != kNone && (need_scale_sum || g.wants(0)))
    inverse = b.unary("Reciprocal", b.unary("Sqrt", b.add(variance, epsilon)));

  TensorId scale_sum = kNone, bias_sum = kNone;
  if (need_bias_sum) {
    bias_sum = b.reduce("ReduceSum", dy, axes, true);
    if (g.wants(2)) g.give(2, b.reshape(bias_sum, vector));
  }
  if (need_scale_sum) {
    scale_sum = b.mul(inverse, b.reduce("ReduceSum", b.mul(dy, centred), axes, true));
    if (g.wants(1)) g.give(1, b.reshape(scale_sum, vector));
  }
  if (!g.wants(0)) return;
  TensorId factor = b.mul(b.reshape(g.input(1), channel), inverse);
  TensorId dx = b.mul(dy, factor);
  if (!frozen) {
    TensorId mean_factor = b.scaled(factor, 1 / per_channel);
    TensorId slope = b.mul(b.mul(mean_factor, inverse), scale_sum);
    dx = b.sub(b.sub(dx, b.mul(centred, slope)), b.mul(mean_factor, bias_sum));
  }
  g.give(0, dx);
}

}  // namespace monet
