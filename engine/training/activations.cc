// Gradients of activations. They read the output where the derivative can be written in it: the output is usually the
// saved input of the next operator, and then costs nothing more.
#include "engine/training/builder.h"
#include "engine/training/gradient_rules.h"

namespace monet {

// The derivative at 0 is 0, as in PyTorch.
void relu_gradient(Backward& g) {
  TensorId y = g.output(0);
  g.give(0, g.b.keep_where(g.b.greater(y, g.b.scalar(0, g.b.dtype(y))), g.gradient()));
}

// 1 strictly between the bounds, else 0 (as PyTorch's hardtanh, hence ReLU6): then the clipped value tells as much as
// the value before.
void clip_gradient(Backward& g) {
  TensorId y = g.output(0), low = g.input(1), high = g.input(2);
  TensorId above = low == kNone ? kNone : g.b.greater(y, low);
  TensorId below = high == kNone ? kNone : g.b.less(y, high);
  if (above == kNone && below == kNone) return g.give(0, g.gradient());
  TensorId mask = above == kNone ? below : below == kNone ? above : g.b.emit("And", {above, below}, g.shape(y));
  g.give(0, g.b.keep_where(mask, g.gradient()));
}

// dX = dY * Y * (1 - Y)
void sigmoid_gradient(Backward& g) {
  TensorId y = g.output(0);
  TensorId slope = g.b.mul(y, g.b.sub(g.b.scalar(1, g.b.dtype(y)), y));
  g.give(0, g.b.mul(g.gradient(), slope));
}

namespace {

std::vector<int64_t> softmax_axis(const Backward& g) {
  int64_t axis = attribute(g.node, "axis", int64_t{-1});
  if (axis < 0) axis += static_cast<int64_t>(g.shape(g.output(0)).size());
  return {axis};
}

}  // namespace

// dX = Y * (dY - sum(dY * Y))
void softmax_gradient(Backward& g) {
  TensorId y = g.output(0), dy = g.gradient();
  TensorId sum = g.b.reduce("ReduceSum", g.b.mul(dy, y), softmax_axis(g), true);
  g.give(0, g.b.mul(y, g.b.sub(dy, sum)));
}

// dX = dY - exp(Y) * sum(dY)
void log_softmax_gradient(Backward& g) {
  TensorId y = g.output(0), dy = g.gradient();
  TensorId sum = g.b.reduce("ReduceSum", dy, softmax_axis(g), true);
  g.give(0, g.b.sub(dy, g.b.mul(g.b.unary("Exp", y), sum)));
}

// Out of training the identity; in training dX = dY / (1 - ratio) where the mask kept the element (Srivastava et al.,
// JMLR 15, 2014).
void dropout_gradient(Backward& g) {
  constexpr double kDefaultRatio = 0.5;  // ONNX's
  double training = 0, ratio = kDefaultRatio;
  TensorId mode = g.input(2);
  if (mode != kNone && !known_scalar(g.tensor(mode), &training)) {
    return g.refuse("its training_mode is not a constant", "export the model with a fixed training mode");
  }
  if (training == 0) return g.give(0, g.gradient());
  if (g.input(1) != kNone && !known_scalar(g.tensor(g.input(1)), &ratio)) {
    return g.refuse("its ratio is not a constant", "export the model with a fixed dropout ratio");
  }
  TensorId mask = g.saved_output(1, DType::boolean, g.shape(g.output(0)));
  g.give(0, g.b.keep_where(mask, g.b.scaled(g.gradient(), 1 / (1 - ratio))));
}

}  // namespace monet
