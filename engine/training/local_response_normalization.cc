// Gradient of LRN (Krizhevsky, Sutskever and Hinton, ImageNet Classification with Deep Convolutional Neural Networks,
// 2012, section 3.3).
#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

// Mean over a window of `size` channels, `before` of them before the channel itself, those outside counting as 0. `a`
// is [N, 1, C, spatial]. A Conv, since ONNX Runtime's AveragePool takes one axis's pads for another's.
TensorId channel_mean(Builder& b, TensorId a, int64_t size, int64_t before) {
  TensorId kernel = b.filled({1, 1, size, 1}, 1 / static_cast<double>(size), b.dtype(a));
  return b.emit("Conv", {a, kernel}, b.shape(a), {{"pads", std::vector<int64_t>{before, 0, size - 1 - before, 0}}});
}

}  // namespace

// Y = X * D^-beta with D = bias + alpha * mean of X^2 over the window; channel j has channel i in its window when i has
// j in the mirrored one:
//   dX = dY * D^-beta - 2 alpha beta * X * mirrored mean(dY * X * D^(-beta - 1))
void lrn_gradient(Backward& g) {
  Builder& b = g.b;
  Shape shape = g.shape(g.input(0));
  DType type = b.dtype(g.input(0));
  int64_t size = attribute(g.node, "size", int64_t{1});
  if (shape.size() < 2 || size < 1) return g.refuse("its window or its input has no channels", "check size");
  double alpha = attribute(g.node, "alpha", 1e-4f), beta = attribute(g.node, "beta", 0.75f);
  Shape planes = {shape[0], 1, shape[1], elements(Shape(shape.begin() + 2, shape.end()))};
  TensorId x = b.reshape(g.input(0), planes), dy = b.reshape(g.gradient(), planes);
  int64_t before = (size - 1) / 2;
  TensorId squares = b.scaled(channel_mean(b, b.mul(x, x), size, before), alpha);
  TensorId d = b.add(squares, b.scalar(attribute(g.node, "bias", 1.0f), type));
  TensorId direct = b.mul(dy, b.binary("Pow", d, b.scalar(-beta, type)));
  TensorId others = channel_mean(b, b.div(b.mul(direct, x), d), size, size - 1 - before);
  g.give(0, b.reshape(b.sub(direct, b.mul(x, b.scaled(others, 2 * alpha * beta))), shape));
}

}  // namespace monet
