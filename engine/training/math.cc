// Gradients of functions of one number, and of powers. They read the output where the derivative can be written in it,
// else the input, as PyTorch does.
#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

TensorId one(const Backward& g) { return g.b.scalar(1, g.b.dtype(g.gradient())); }

TensorId square(Backward& g, TensorId a) { return g.b.mul(a, a); }

// dX = dY * slope
void give_product(Backward& g, TensorId slope) { g.give(0, g.b.mul(g.gradient(), slope)); }

// dX = dY / inverse of the slope
void give_quotient(Backward& g, TensorId inverse) { g.give(0, g.b.div(g.gradient(), inverse)); }

}  // namespace

void neg_gradient(Backward& g) { g.give(0, g.b.unary("Neg", g.gradient())); }

// 0 at 0, as in PyTorch.
void abs_gradient(Backward& g) { give_product(g, g.b.unary("Sign", g.input(0))); }

void exp_gradient(Backward& g) { give_product(g, g.output(0)); }

void log_gradient(Backward& g) { give_quotient(g, g.input(0)); }

// dX = dY / (2 Y)
void sqrt_gradient(Backward& g) { give_quotient(g, g.b.scaled(g.output(0), 2)); }

// dX = -dY * Y^2
void reciprocal_gradient(Backward& g) { give_product(g, g.b.unary("Neg", square(g, g.output(0)))); }

// dX = dY * 2 / sqrt(pi) * exp(-X^2)
void erf_gradient(Backward& g) {
  constexpr double kTwoOverRootPi = 1.1283791670955126;
  TensorId bell = g.b.unary("Exp", g.b.unary("Neg", square(g, g.input(0))));
  give_product(g, g.b.scaled(bell, kTwoOverRootPi));
}

void sin_gradient(Backward& g) { give_product(g, g.b.unary("Cos", g.input(0))); }

void cos_gradient(Backward& g) { give_product(g, g.b.unary("Neg", g.b.unary("Sin", g.input(0)))); }

// 1 + Y^2
void tan_gradient(Backward& g) { give_product(g, g.b.add(one(g), square(g, g.output(0)))); }

// 1 / sqrt(1 - X^2)
void asin_gradient(Backward& g) { give_quotient(g, g.b.unary("Sqrt", g.b.sub(one(g), square(g, g.input(0))))); }

// -1 / sqrt(1 - X^2)
void acos_gradient(Backward& g) {
  give_quotient(g, g.b.unary("Neg", g.b.unary("Sqrt", g.b.sub(one(g), square(g, g.input(0))))));
}

// 1 / (1 + X^2)
void atan_gradient(Backward& g) { give_quotient(g, g.b.add(one(g), square(g, g.input(0)))); }

void sinh_gradient(Backward& g) { give_product(g, g.b.unary("Cosh", g.input(0))); }

void cosh_gradient(Backward& g) { give_product(g, g.b.unary("Sinh", g.input(0))); }

// 1 - Y^2
void tanh_gradient(Backward& g) { give_product(g, g.b.sub(one(g), square(g, g.output(0)))); }

// 1 / sqrt(1 + X^2)
void asinh_gradient(Backward& g) { give_quotient(g, g.b.unary("Sqrt", g.b.add(one(g), square(g, g.input(0))))); }

// 1 / sqrt(X^2 - 1)
void acosh_gradient(Backward& g) { give_quotient(g, g.b.unary("Sqrt", g.b.sub(square(g, g.input(0)), one(g)))); }

// 1 / (1 - X^2)
void atanh_gradient(Backward& g) { give_quotient(g, g.b.sub(one(g), square(g, g.input(0)))); }

namespace {

// dX = dY * E * X^(E - 1), and 0 where E is 0 whatever X is.
void pow_base_gradient(Backward& g) {
  Builder& b = g.b;
  TensorId x = g.input(0), exponent = g.input(1);
  DType type = b.dtype(x);
  double known;
  if (g.tensor(exponent).kind == TensorKind::constant && known_scalar(g.tensor(exponent), &known)) {
    if (known == 0) return g.give(0, b.filled(g.shape(x), 0, type));
    TensorId dy = b.scaled(g.gradient(), known);
    if (known != 1) dy = b.mul(dy, known == 2 ? x : b.binary("Pow", x, b.scalar(known - 1, type)));
    return g.give_reduced(0, dy);
  }
  exponent = b.cast(exponent, type);
  TensorId slope = b.mul(exponent, b.binary("Pow", x, b.sub(exponent, b.scalar(1, type))));
  slope = b.clear_where(b.compare("Equal", exponent, b.scalar(0, type)), slope);
  g.give_reduced(0, b.mul(g.gradient(), slope));
}

// dE = dY * Y * log(X), and 0 where X is 0 and E >= 0 (Y is constant 0 there but for E = 0), as in PyTorch.
void pow_exponent_gradient(Backward& g) {
  Builder& b = g.b;
  TensorId x = g.input(0), exponent = g.input(1);
  TensorId slope = b.mul(g.output(0), b.unary("Log", x));
  TensorId zero_base = b.compare("Equal", x, b.scalar(0, b.dtype(x)));
  TensorId not_negative = b.compare("GreaterOrEqual", exponent, b.scalar(0, b.dtype(exponent)));
  slope = b.clear_where(b.emit("And", {zero_base, not_negative}, g.shape(g.output(0))), slope);
  g.give_reduced(1, b.cast(b.mul(g.gradient(), slope), b.dtype(exponent)));
}

}  // namespace

void pow_gradient(Backward& g) {
  if (g.wants(0)) pow_base_gradient(g);
  if (g.wants(1)) pow_exponent_gradient(g);
}

}  // namespace monet
