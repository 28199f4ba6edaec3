// Gradients of element-wise arithmetic with numpy broadcasting: each operand's gradient is summed over the dimensions
// along which the operand was repeated.
#include "engine/training/gradient_rules.h"

namespace monet {

namespace {
void give_reduced(Backward& g, size_t input, TensorId gradient) {
  g.give(input, g.b.reduce_to(gradient, g.shape(g.input(input))));
}
}  // namespace

void add_gradient(Backward& g) {
  for (size_t i : {0, 1})
    if (g.wants(i)) give_reduced(g, i, g.gradient());
}

void sub_gradient(Backward& g) {
  if (g.wants(0)) give_reduced(g, 0, g.gradient());
  // Reduced first: negating the smaller tensor is cheaper.
  if (g.wants(1)) g.give(1, g.b.unary("Neg", g.b.reduce_to(g.gradient(), g.shape(g.input(1)))));
}

void mul_gradient(Backward& g) {
  for (size_t i : {0, 1})
    if (g.wants(i)) give_reduced(g, i, g.b.mul(g.gradient(), g.input(1 - i)));
}

// dA = dY / B, dB = -dA * Y: reads the quotient, which a following operator usually keeps, rather than A.
void div_gradient(Backward& g) {
  TensorId quotient = g.b.div(g.gradient(), g.input(1));
  if (g.wants(0)) give_reduced(g, 0, quotient);
  if (g.wants(1)) {
    TensorId reduced = g.b.reduce_to(g.b.mul(quotient, g.output(0)), g.shape(g.input(1)));
    g.give(1, g.b.unary("Neg", reduced));
  }
}

}  // namespace monet
