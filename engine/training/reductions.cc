// Gradients of reductions: the output's gradient repeated over the reduced elements.
#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

void give_repeated(Backward& g, double factor) {
  Shape x = g.shape(g.input(0)), y = g.shape(g.gradient());
  Shape kept = x;  // the output's shape as keepdims would leave it
  if (g.input(1) == kNone) {
    if (!attribute(g.node, "noop_with_empty_axes", int64_t{0})) kept.assign(x.size(), 1);
  } else {
    std::vector<int64_t> axes = integers(g.tensor(g.input(1)));
    if (axes.empty() && elements(g.shape(g.input(1))) > 0) {
      return g.refuse("its axes are not a constant", "export the model with fixed axes");
    }
    if (axes.empty() && !attribute(g.node, "noop_with_empty_axes", int64_t{0})) kept.assign(x.size(), 1);
    for (int64_t axis : axes) kept[axis < 0 ? axis + static_cast<int64_t>(x.size()) : axis] = 1;
  }
  g.give(0, g.b.expand(g.b.reshape(g.b.scaled(g.gradient(), factor), kept), x));
}

}  // namespace

void reduce_sum_gradient(Backward& g) { give_repeated(g, 1); }

void reduce_mean_gradient(Backward& g) {
  double count =
      static_cast<double>(elements(g.shape(g.input(0)))) / static_cast<double>(elements(g.shape(g.output(0))));
  give_repeated(g, 1 / count);
}

}  // namespace monet
