// Gradients of element-wise arithmetic and selection with numpy broadcasting: each operand's gradient is summed over
// the dimensions along which the operand was repeated.
#include "engine/training/gradient_rules.h"

namespace monet {

void add_gradient(Backward& g) {
  for (size_t i : {0, 1})
    if (g.wants(i)) g.give_reduced(i, g.gradient());
}

void sub_gradient(Backward& g) {
  if (g.wants(0)) g.give_reduced(0, g.gradient());
  // Reduced first: negating the smaller tensor is cheaper.
  if (g.wants(1)) g.give(1, g.b.unary("Neg", g.b.reduce_to(g.gradient(), g.shape(g.input(1)))));
}

namespace {

// Which operand of a Mul is X where the other one is Sigmoid(X); 2 for none.
size_t silu_operand(const Backward& g) {
  for (size_t i : {0, 1}) {
    NodeId gate = g.tensor(g.input(1 - i)).producer;
    if (gate == kNone) continue;
    const Node& node = g.b.graph().nodes[gate];
    if (node.op == "Sigmoid" && node.domain.empty() && node.inputs[0] == g.input(i)) return i;
  }
  return 2;
}

}  // namespace

// X * Sigmoid(X), as exporters write SiLU (Ramachandran et al., arXiv 1710.05941), has the slope s (1 + X (1 - s)). The
// sigmoid s is computed again, so that X alone is kept, as frameworks do.
void mul_gradient(Backward& g) {
  if (size_t i = silu_operand(g); i < 2 && g.wants(i)) {
    Builder& b = g.b;
    TensorId x = g.input(i), s = b.unary("Sigmoid", x), one = b.scalar(1, b.dtype(x));
    return g.give(i, b.mul(g.gradient(), b.mul(s, b.add(one, b.mul(x, b.sub(one, s))))));
  }
  for (size_t i : {0, 1})
    if (g.wants(i)) g.give_reduced(i, g.b.mul(g.gradient(), g.input(1 - i)));
}

// dA = dY / B, dB = -dA * Y: reads the quotient, which a following operator usually keeps, rather than A.
void div_gradient(Backward& g) {
  TensorId quotient = g.b.div(g.gradient(), g.input(1));
  if (g.wants(0)) g.give_reduced(0, quotient);
  if (g.wants(1)) {
    TensorId reduced = g.b.reduce_to(g.b.mul(quotient, g.output(0)), g.shape(g.input(1)));
    g.give(1, g.b.unary("Neg", reduced));
  }
}

// Y = A - B * n with an integer n, piecewise constant: dA = dY, dB = -dY * n. (A - Y) / B is n but for rounding, for
// both conventions of the sign (fmod).
void mod_gradient(Backward& g) {
  Builder& b = g.b;
  if (g.wants(0)) g.give_reduced(0, g.gradient());
  if (g.wants(1)) {
    TensorId count = b.unary("Round", b.div(b.sub(g.input(0), g.output(0)), g.input(1)));
    g.give(1, b.unary("Neg", b.reduce_to(b.mul(g.gradient(), count), g.shape(g.input(1)))));
  }
}

void sum_gradient(Backward& g) {
  for (size_t i = 0; i < g.node.inputs.size(); ++i)
    if (g.wants(i)) g.give_reduced(i, g.gradient());
}

void mean_gradient(Backward& g) {
  TensorId share = g.b.scaled(g.gradient(), 1 / static_cast<double>(g.node.inputs.size()));
  for (size_t i = 0; i < g.node.inputs.size(); ++i)
    if (g.wants(i)) g.give_reduced(i, share);
}

namespace {

// The gradient goes to the operand that was chosen, in equal parts to all that tie (PyTorch's rule for two). Two
// operands are compared with each other, so that the output need not be kept.
void give_chosen(Backward& g, const char* wins) {
  Builder& b = g.b;
  size_t count = g.node.inputs.size();
  if (count == 1) return g.give(0, g.gradient());
  std::vector<TensorId> chosen;
  TensorId ties = kNone;
  for (size_t i = 0; i < count; ++i) {
    chosen.push_back(b.compare(wins, g.input(i), count == 2 ? g.input(1 - i) : g.output(0)));
    TensorId one = b.cast(chosen[i], b.dtype(g.gradient()));
    ties = i == 0 ? one : b.add(ties, one);
  }
  TensorId share = b.div(g.gradient(), ties);
  for (size_t i = 0; i < count; ++i)
    if (g.wants(i)) g.give_reduced(i, b.keep_where(chosen[i], share));
}

}  // namespace

void max_gradient(Backward& g) { give_chosen(g, "GreaterOrEqual"); }

void min_gradient(Backward& g) { give_chosen(g, "LessOrEqual"); }

void where_gradient(Backward& g) {
  TensorId condition = g.input(0);
  if (g.wants(1)) g.give_reduced(1, g.b.keep_where(condition, g.gradient()));
  if (g.wants(2)) g.give_reduced(2, g.b.clear_where(condition, g.gradient()));
}

// Back to the type before. What QuantizeLinear made has its gradient in floats.
void cast_gradient(Backward& g) {
  DType type = g.b.dtype(g.input(0));
  g.give(0, is_float(type) ? g.b.cast(g.gradient(), type) : g.gradient());
}

}  // namespace monet
