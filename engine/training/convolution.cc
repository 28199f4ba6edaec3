// Gradients of Conv and ConvTranspose.
#include <numeric>

#include "engine/training/gradient_rules.h"
#include "engine/training/window_gradients.h"

namespace monet {

namespace {

// Bias [K] of an output [N, K, ...].
void bias_gradient(Backward& g) {
  if (!g.wants(2)) return;
  std::vector<int64_t> axes(g.shape(g.gradient()).size() - 1);
  std::iota(axes.begin(), axes.end(), 1);
  axes[0] = 0;  // 0, 2, 3, ...
  g.give(2, g.b.reduce("ReduceSum", g.gradient(), axes, false));
}

Shape kernel_of(const Shape& weight) { return {weight.begin() + 2, weight.end()}; }

}  // namespace

void conv_gradient(Backward& g) {
  TensorId x = g.input(0), w = g.input(1), dy = g.gradient();
  Shape x_shape = g.shape(x), w_shape = g.shape(w);
  Window window = conv_window(g.node, x_shape, g.shape(dy), kernel_of(w_shape));
  if (window.empty()) return refuse_window(g);
  int64_t group = attribute(g.node, "group", int64_t{1});
  bias_gradient(g);
  for (size_t operand : g.operands()) {
    g.begin_operand(operand);
    g.give(operand, operand == 0 ? spread(g.b, dy, w, window, group, x_shape)
                                 : window_weight_gradient(g.b, x, dy, window, group, w_shape));
  }
}

void conv_transpose_gradient(Backward& g) {
  TensorId x = g.input(0), w = g.input(1), dy = g.gradient();
  Shape x_shape = g.shape(x), w_shape = g.shape(w);
  Window window = conv_transpose_window(g.node, g.shape(dy), x_shape, kernel_of(w_shape));
  if (window.empty()) return refuse_window(g);
  int64_t group = attribute(g.node, "group", int64_t{1});
  bias_gradient(g);
  for (size_t operand : g.operands()) {
    g.begin_operand(operand);
    g.give(operand, operand == 0 ? gather(g.b, dy, w, window, group, x_shape)
                                 : window_weight_gradient(g.b, dy, x, window, group, w_shape));
  }
}

}  // namespace monet
