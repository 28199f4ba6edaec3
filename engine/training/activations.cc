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

// dX = dY * slope where `mask` holds, else dY
void give_sloped(Backward& g, TensorId mask, TensorId slope) {
  g.give(0, g.b.where(mask, g.b.mul(g.gradient(), slope), g.gradient()));
}

TensorId not_positive(Backward& g, TensorId a) { return g.b.compare("LessOrEqual", a, g.b.scalar(0, g.b.dtype(a))); }

TensorId constant(const Backward& g, double value) { return g.b.scalar(value, g.b.dtype(g.gradient())); }

}  // namespace

// Y = X * Phi(X) (Hendrycks and Gimpel, arXiv 1606.08415): the slope is Phi(X) + X * phi(X); with approximate = "tanh",
// Phi(X) = (1 + t) / 2 with t = tanh(u), u = sqrt(2 / pi) (X + 0.044715 X^3).
void gelu_gradient(Backward& g) {
  constexpr double kRootHalf = 0.7071067811865476, kRootTwoOverPi = 0.7978845608028654;
  constexpr double kCubic = 0.044715;
  Builder& b = g.b;
  TensorId x = g.input(0), square = b.mul(x, x);
  TensorId one = constant(g, 1);
  TensorId distribution, density;
  if (attribute(g.node, "approximate", "none") == "tanh") {
    TensorId u = b.scaled(b.mul(x, b.add(one, b.scaled(square, kCubic))), kRootTwoOverPi);
    TensorId t = b.unary("Tanh", u);
    TensorId inner = b.scaled(b.add(one, b.scaled(square, 3 * kCubic)), kRootTwoOverPi / 2);
    distribution = b.scaled(b.add(one, t), 0.5);
    density = b.mul(b.sub(one, b.mul(t, t)), inner);
  } else {
    distribution = b.scaled(b.add(one, b.unary("Erf", b.scaled(x, kRootHalf))), 0.5);
    density = b.scaled(b.unary("Exp", b.scaled(square, -0.5)), kRootTwoOverPi / 2);  // 1 / sqrt(2 pi)
  }
  g.give(0, b.mul(g.gradient(), b.add(distribution, b.mul(x, density))));
}

// Y = a (exp(X) - 1) below 0 (Clevert et al., arXiv 1511.07289): the slope is Y + a. With a < 0 the output's sign does
// not tell the two branches apart.
void elu_gradient(Backward& g) {
  Builder& b = g.b;
  double alpha = attribute(g.node, "alpha", 1.0f);
  if (alpha >= 0) return give_sloped(g, not_positive(g, g.output(0)), b.add(g.output(0), constant(g, alpha)));
  give_sloped(g, not_positive(g, g.input(0)), b.scaled(b.unary("Exp", g.input(0)), alpha));
}

// Y = gamma X above 0, gamma a (exp(X) - 1) below (Klambauer et al., arXiv 1706.02515), both positive: slopes gamma and
// Y + gamma a.
void selu_gradient(Backward& g) {
  Builder& b = g.b;
  double alpha = attribute(g.node, "alpha", 1.67326319217681884765625f);
  double gamma = attribute(g.node, "gamma", 1.05070102214813232421875f);
  if (alpha < 0 || gamma <= 0) {
    return g.refuse("its alpha or gamma is negative, and its branches overlap", "use positive alpha and gamma");
  }
  TensorId y = g.output(0), dy = g.gradient();
  TensorId below = b.mul(dy, b.add(y, constant(g, gamma * alpha)));
  g.give(0, b.where(not_positive(g, y), below, b.scaled(dy, gamma)));
}

// Y = a (exp(X / a) - 1) below 0 (Barron, arXiv 1704.07483): the slope is Y / a + 1, for a of either sign.
void celu_gradient(Backward& g) {
  Builder& b = g.b;
  double alpha = attribute(g.node, "alpha", 1.0f);
  TensorId y = g.output(0);
  give_sloped(g, not_positive(g, y), b.add(b.scaled(y, 1 / alpha), constant(g, 1)));
}

// With a negative slope the output's sign does not tell the two branches apart. The slope at 0 is that below, as in
// PyTorch.
void leaky_relu_gradient(Backward& g) {
  double alpha = attribute(g.node, "alpha", 0.01f);
  give_sloped(g, not_positive(g, alpha >= 0 ? g.output(0) : g.input(0)), constant(g, alpha));
}

// He et al., arXiv 1502.01852: the slope's gradient is dY * min(X, 0), summed over what shares it.
void prelu_gradient(Backward& g) {
  Builder& b = g.b;
  TensorId x = g.input(0), dy = g.gradient();
  Shape data = g.shape(x), slope = g.shape(g.input(1));
  bool fits = slope.size() <= data.size();
  for (size_t i = 1; fits && i <= slope.size(); ++i)
    fits = slope[slope.size() - i] == 1 || slope[slope.size() - i] == data[data.size() - i];
  if (!fits) return g.refuse("its slope does not broadcast to its input", "check the model");
  if (g.wants(0)) give_sloped(g, not_positive(g, x), g.input(1));
  if (g.wants(1)) g.give_reduced(1, b.mul(dy, b.binary("Min", x, constant(g, 0))));
}

// alpha strictly between the bounds 0 and 1.
void hard_sigmoid_gradient(Backward& g) {
  Builder& b = g.b;
  TensorId y = g.output(0);
  TensorId inside = b.emit("And", {b.greater(y, constant(g, 0)), b.less(y, constant(g, 1))}, g.shape(y));
  g.give(0, b.keep_where(inside, b.scaled(g.gradient(), attribute(g.node, "alpha", 0.2f))));
}

// Y = X * min(1, max(0, X / 6 + 1 / 2)) (Howard et al., arXiv 1905.02244): X / 3 + 1 / 2 between -3 and 3.
void hard_swish_gradient(Backward& g) {
  Builder& b = g.b;
  TensorId x = g.input(0), dy = g.gradient();
  TensorId inner = b.mul(dy, b.add(b.scaled(x, 1.0 / 3), constant(g, 0.5)));
  TensorId upper = b.where(b.greater(x, constant(g, 3)), dy, inner);
  g.give(0, b.clear_where(b.less(x, constant(g, -3)), upper));
}

// Y = X tanh(softplus(X)) (Misra, arXiv 1908.08681): with t = tanh(softplus(X)), t + X (1 - t^2) sigmoid(X).
void mish_gradient(Backward& g) {
  Builder& b = g.b;
  TensorId x = g.input(0);
  TensorId t = b.unary("Tanh", b.unary("Softplus", x));
  TensorId inner = b.mul(b.sub(constant(g, 1), b.mul(t, t)), b.unary("Sigmoid", x));
  g.give(0, b.mul(g.gradient(), b.add(t, b.mul(x, inner))));
}

// From the input: 1 - exp(-Y) would lose all digits where Y is small.
void softplus_gradient(Backward& g) { g.give(0, g.b.mul(g.gradient(), g.b.unary("Sigmoid", g.input(0)))); }

// Y = X / (1 + |X|): 1 / (1 + |X|) is 1 - |Y|, and the slope its square.
void softsign_gradient(Backward& g) {
  TensorId root = g.b.sub(constant(g, 1), g.b.unary("Abs", g.output(0)));
  g.give(0, g.b.mul(g.gradient(), g.b.mul(root, root)));
}

// 1 above alpha. From alpha = 0 on the output tells as much as the input.
void thresholded_relu_gradient(Backward& g) {
  double alpha = attribute(g.node, "alpha", 1.0f);
  TensorId passed = g.b.greater(alpha >= 0 ? g.output(0) : g.input(0), constant(g, alpha));
  g.give(0, g.b.keep_where(passed, g.gradient()));
}

// 1 beyond lambda on either side. Where the jump is not larger than lambda, exactly the others' output is 0.
void shrink_gradient(Backward& g) {
  Builder& b = g.b;
  double lambda = attribute(g.node, "lambd", 0.5f), bias = attribute(g.node, "bias", 0.0f);
  bool by_output = lambda >= 0 && bias <= lambda;
  TensorId size = b.unary("Abs", by_output ? g.output(0) : g.input(0));
  g.give(0, b.keep_where(b.greater(size, constant(g, by_output ? 0 : lambda)), g.gradient()));
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
