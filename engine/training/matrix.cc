// Gradients of matrix operators: Gemm, MatMul, Det. Products by transposed operands are Gemm's transA and transB
// wherever the operands are matrices, so that no transposed copy is made.
#include <numeric>
#include <utility>

#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

TensorId gemm(Builder& b, TensorId left, bool left_transposed, TensorId right, bool right_transposed,
              const Shape& shape, float alpha = 1) {
  for (auto [operand, transposed] : {std::pair{&left, &left_transposed}, {&right, &right_transposed}}) {
    TensorId original = b.untransposed(*operand, {1, 0});
    if (original == kNone) continue;
    *operand = original;
    *transposed = !*transposed;
  }
  std::vector<Attribute> attributes;
  if (left_transposed) attributes.push_back({"transA", int64_t{1}});
  if (right_transposed) attributes.push_back({"transB", int64_t{1}});
  if (alpha != 1) attributes.push_back({"alpha", alpha});
  return b.emit("Gemm", {left, right}, shape, std::move(attributes));
}

TensorId swap_last_two(Builder& b, TensorId a) {
  std::vector<int64_t> perm(b.shape(a).size());
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 2], perm[perm.size() - 1]);
  return b.transpose(a, perm);
}

}  // namespace

// Y = alpha * A' B' + beta * C, A' and B' transposed where transA and transB say so.
void gemm_gradient(Backward& g) {
  TensorId a = g.input(0), w = g.input(1), dy = g.gradient();
  bool trans_a = attribute(g.node, "transA", int64_t{0}), trans_b = attribute(g.node, "transB", int64_t{0});
  float alpha = attribute(g.node, "alpha", 1.0f), beta = attribute(g.node, "beta", 1.0f);
  if (g.wants(2)) g.give(2, g.b.scaled(g.b.reduce_to(dy, g.shape(g.input(2))), beta));
  for (size_t operand : g.operands()) {
    g.begin_operand(operand);
    Shape shape = g.shape(g.input(operand));
    if (operand == 0) {  // dA' = dY B'^T
      g.give(0,
             trans_a ? gemm(g.b, w, trans_b, dy, true, shape, alpha) : gemm(g.b, dy, false, w, !trans_b, shape, alpha));
    } else {  // dB' = A'^T dY
      g.give(1,
             trans_b ? gemm(g.b, dy, true, a, trans_a, shape, alpha) : gemm(g.b, a, !trans_a, dy, false, shape, alpha));
    }
  }
}

// numpy's matmul: vectors become matrices of one row or column, leading dimensions broadcast.
void matmul_gradient(Backward& g) {
  Builder& b = g.b;
  Shape left = g.shape(g.input(0)), right = g.shape(g.input(1));
  if (left.size() == 1) left.insert(left.begin(), 1);
  if (right.size() == 1) right.push_back(1);
  int64_t rows = left[left.size() - 2], inner = left.back(), columns = right.back();
  bool right_matrix = elements(right) == inner * columns;
  // The output's shape had no vector been given.
  Shape output = left.size() >= right.size() ? left : right;
  for (size_t i = 2; i < output.size(); ++i) {
    int64_t& size = output[output.size() - 1 - i];
    for (const Shape* operand : {&left, &right})
      if (i < operand->size() && (*operand)[operand->size() - 1 - i] != 1) size = (*operand)[operand->size() - 1 - i];
  }
  output[output.size() - 2] = rows;
  output.back() = columns;

  for (size_t operand : g.operands()) {
    g.begin_operand(operand);
    TensorId a = b.reshape(g.input(0), left), w = b.reshape(g.input(1), right), dy = b.reshape(g.gradient(), output);
    TensorId gradient = kNone;
    if (right_matrix) {  // one matrix for all batches: their rows are the rows of one product
      int64_t all = elements(Shape(left.begin(), left.end() - 1));
      a = b.reshape(a, {all, inner});
      w = b.reshape(w, {inner, columns});
      dy = b.reshape(dy, {all, columns});
      gradient =
          operand == 0 ? gemm(b, dy, false, w, true, {all, inner}) : gemm(b, a, true, dy, false, {inner, columns});
    } else {
      Shape product = output;
      if (operand == 0) {
        product.back() = inner;
        gradient = b.emit("MatMul", {dy, swap_last_two(b, w)}, product);
      } else {
        product[product.size() - 2] = inner;
        gradient = b.emit("MatMul", {swap_last_two(b, a), dy}, product);
      }
      Shape own = operand == 0 ? left : right;
      gradient = b.reduce_to(gradient, own);
    }
    g.give(operand, b.reshape(gradient, g.shape(g.input(operand))));
  }
}

// The derivative of a determinant by an element is the element's cofactor: a determinant again, of the matrix without
// the element's row and column, with a sign. No inverse is needed (ONNX has none), and singular matrices need no care.
// All minors are gathered at once: size^4 elements, so the size is limited.
void det_gradient(Backward& g) {
  constexpr int64_t kMaxSize = 16;  // the table of the minors' places has 57,600 entries then
  Builder& b = g.b;
  Shape x = g.shape(g.input(0));
  int64_t n = x.back();
  if (n > kMaxSize) {
    return g.refuse("its matrices have " + std::to_string(n) + " rows",
                    "determinants have a gradient up to " + std::to_string(kMaxSize) + " rows");
  }
  if (elements(x) == 0) return g.give(0, b.filled(x, 0, b.dtype(g.gradient())));
  int64_t batch = elements(x) / (n * n);
  DType type = b.dtype(g.gradient());
  TensorId dx = b.reshape(g.gradient(), {batch, 1, 1});
  if (n > 1) {
    std::vector<int64_t> places;
    std::vector<double> signs;
    for (int64_t row = 0; row < n; ++row)
      for (int64_t column = 0; column < n; ++column) {
        signs.push_back((row + column) % 2 ? -1 : 1);
        for (int64_t i = 0; i < n; ++i)
          for (int64_t j = 0; j < n; ++j)
            if (i != row && j != column) places.push_back(i * n + j);
      }
    TensorId flat = b.reshape(g.input(0), {batch, n * n});
    TensorId table = b.reshape(b.ints(places), {n, n, n - 1, n - 1});
    TensorId minors = b.emit("Gather", {flat, table}, {batch, n, n, n - 1, n - 1}, {{"axis", int64_t{1}}});
    TensorId cofactors = b.mul(b.emit("Det", {minors}, {batch, n, n}), b.floats(signs, {n, n}, type));
    dx = b.mul(dx, cofactors);
  }
  g.give(0, b.reshape(dx, x));
}

}  // namespace monet
