// Gradients of reductions and of what is made of them: sums along an axis, norms.
#include <algorithm>
#include <optional>

#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

struct Reduction {
  std::vector<int64_t> axes;  // ascending; none: every element is reduced by itself
  Shape kept;                 // the output's shape as keepdims would leave it
};

// Refuses and returns nothing when the axes are not constants.
std::optional<Reduction> reduction(Backward& g) {
  Shape x = g.shape(g.input(0));
  int64_t rank = static_cast<int64_t>(x.size());
  Reduction result{.axes = {}, .kept = x};
  if (g.input(1) != kNone) {
    result.axes = integers(g.tensor(g.input(1)));
    if (result.axes.empty() && elements(g.shape(g.input(1))) > 0) {
      g.refuse("its axes are not a constant", "export the model with fixed axes");
      return std::nullopt;
    }
  }
  if (result.axes.empty() && !attribute(g.node, "noop_with_empty_axes", int64_t{0}))
    for (int64_t axis = 0; axis < rank; ++axis) result.axes.push_back(axis);
  for (int64_t& axis : result.axes) {
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) {
      g.refuse("its axes lie outside its input", "check the model");
      return std::nullopt;
    }
    result.kept[axis] = 1;
  }
  std::sort(result.axes.begin(), result.axes.end());
  result.axes.erase(std::unique(result.axes.begin(), result.axes.end()), result.axes.end());
  return result;
}

// The output's gradient repeated over the reduced elements.
void give_repeated(Backward& g, double factor) {
  std::optional<Reduction> r = reduction(g);
  if (!r) return;
  g.give(0, g.b.expand(g.b.reshape(g.b.scaled(g.gradient(), factor), r->kept), g.shape(g.input(0))));
}

}  // namespace

void reduce_sum_gradient(Backward& g) { give_repeated(g, 1); }

void reduce_mean_gradient(Backward& g) {
  double count =
      static_cast<double>(elements(g.shape(g.input(0)))) / static_cast<double>(elements(g.shape(g.output(0))));
  give_repeated(g, 1 / count);
}

// In equal parts to all elements that are the extremum, as PyTorch's amax.
void reduce_max_gradient(Backward& g) {
  std::optional<Reduction> r = reduction(g);
  if (!r) return;
  if (r->axes.empty()) return g.give(0, g.gradient());
  Builder& b = g.b;
  TensorId dy = b.reshape(g.gradient(), r->kept);
  TensorId chosen = b.compare("Equal", g.input(0), b.reshape(g.output(0), r->kept));
  TensorId ties = b.reduce("ReduceSum", b.cast(chosen, b.dtype(dy)), r->axes, true);
  g.give(0, b.keep_where(chosen, b.div(dy, ties)));
}

// The product of the others. With zeros replaced by 1, that is the whole product divided by the element, unless there
// is a zero among the others.
void reduce_prod_gradient(Backward& g) {
  std::optional<Reduction> r = reduction(g);
  if (!r) return;
  if (r->axes.empty()) return g.give(0, g.gradient());
  Builder& b = g.b;
  TensorId x = g.input(0);
  DType type = b.dtype(x);
  TensorId is_zero = b.compare("Equal", x, b.scalar(0, type));
  TensorId factor = b.where(is_zero, b.scalar(1, type), x), zero = b.cast(is_zero, type);
  TensorId product = b.mul(b.reshape(g.gradient(), r->kept), b.reduce("ReduceProd", factor, r->axes, true));
  TensorId other_zeros = b.sub(b.reduce("ReduceSum", zero, r->axes, true), zero);
  g.give(0, b.clear_where(b.greater(other_zeros, b.scalar(0, type)), b.div(product, factor)));
}

// dX = dY * sign(X)
void reduce_l1_gradient(Backward& g) {
  std::optional<Reduction> r = reduction(g);
  if (!r) return;
  g.give(0, g.b.mul(g.b.reshape(g.gradient(), r->kept), g.b.unary("Sign", g.input(0))));
}

// dX = dY * X / Y, and 0 where Y is 0, as in PyTorch.
void reduce_l2_gradient(Backward& g) {
  std::optional<Reduction> r = reduction(g);
  if (!r) return;
  Builder& b = g.b;
  TensorId y = g.output(0);
  TensorId share = b.clear_where(b.compare("Equal", y, b.scalar(0, b.dtype(y))), b.div(g.gradient(), y));
  g.give(0, b.mul(b.reshape(share, r->kept), g.input(0)));
}

// dX = dY / sum = dY * exp(-Y)
void reduce_log_sum_gradient(Backward& g) {
  std::optional<Reduction> r = reduction(g);
  if (!r) return;
  Builder& b = g.b;
  TensorId share = b.mul(g.gradient(), b.unary("Exp", b.unary("Neg", g.output(0))));
  g.give(0, b.expand(b.reshape(share, r->kept), g.shape(g.input(0))));
}

// dX = dY * exp(X - Y), which never overflows.
void reduce_log_sum_exp_gradient(Backward& g) {
  std::optional<Reduction> r = reduction(g);
  if (!r) return;
  Builder& b = g.b;
  TensorId share = b.unary("Exp", b.sub(g.input(0), b.reshape(g.output(0), r->kept)));
  g.give(0, b.mul(b.reshape(g.gradient(), r->kept), share));
}

// dX = 2 dY * X
void reduce_sum_square_gradient(Backward& g) {
  std::optional<Reduction> r = reduction(g);
  if (!r) return;
  g.give(0, g.b.mul(g.b.reshape(g.b.scaled(g.gradient(), 2), r->kept), g.input(0)));
}

// An element enters the sums that come after it: the cumulative sum from the other end.
void cum_sum_gradient(Backward& g) {
  int64_t exclusive = attribute(g.node, "exclusive", int64_t{0}), reverse = attribute(g.node, "reverse", int64_t{0});
  g.give(0, g.b.emit("CumSum", {g.gradient(), g.input(1)}, g.shape(g.gradient()),
                     {{"exclusive", exclusive}, {"reverse", int64_t{!reverse}}}));
}

// Y = X / n with n = |X| of order p: dX = (dY - dn/dX * sum(dY * X) / n) / n, where dn/dX is X / n for p = 2 and
// sign(X) for p = 1. 0 where n is 0, as the output.
void lp_normalization_gradient(Backward& g) {
  Builder& b = g.b;
  TensorId x = g.input(0), dy = g.gradient();
  int64_t axis = attribute(g.node, "axis", int64_t{-1}), rank = static_cast<int64_t>(g.shape(x).size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return g.refuse("its axis lies outside its input", "check the model");
  bool euclidean = attribute(g.node, "p", int64_t{2}) == 2;
  TensorId norm = b.reduce(euclidean ? "ReduceL2" : "ReduceL1", x, {axis}, true);
  TensorId mean = b.div(b.reduce("ReduceSum", b.mul(dy, x), {axis}, true), norm);
  TensorId radial = euclidean ? b.mul(x, b.div(mean, norm)) : b.mul(b.unary("Sign", x), mean);
  TensorId is_zero = b.compare("Equal", norm, b.scalar(0, b.dtype(x)));
  g.give(0, b.clear_where(is_zero, b.div(b.sub(dy, radial), norm)));
}

}  // namespace monet
