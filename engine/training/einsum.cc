// Gradient of Einsum: the product is linear in each operand, so an operand's gradient is an Einsum of dY with the other
// operands, with the roles of the output's and the operand's letters exchanged.
#include "engine/ir/einsum.h"

#include <algorithm>

#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

struct Factor {
  TensorId tensor;
  std::string letters;
};

// The operand without the dimensions of size 1 that stand for a larger one: they add nothing to its product with the
// others, and without them a broadcast needs no care.
Factor without_broadcasts(Builder& b, TensorId operand, const std::string& letters, const EinsumTerms& terms) {
  Factor result{operand, ""};
  Shape from = b.shape(operand), shape;
  for (size_t i = 0; i < letters.size(); ++i) {
    if (from[i] == 1 && terms.sizes.at(letters[i]) != 1) continue;
    result.letters += letters[i];
    shape.push_back(from[i]);
  }
  result.tensor = b.reshape(operand, shape);
  return result;
}

Shape shape_of(const std::string& letters, const EinsumTerms& terms) {
  Shape shape;
  for (char c : letters) shape.push_back(terms.sizes.at(c));
  return shape;
}

// The product of the factors summed to `letters`, each of which some factor has. Scalars are factors of their own:
// an empty term is not portable.
TensorId product(Builder& b, const std::vector<Factor>& factors, const std::string& letters, const EinsumTerms& terms) {
  std::string equation;
  std::vector<TensorId> operands, scalars;
  for (const Factor& factor : factors) {
    if (factor.letters.empty()) {
      scalars.push_back(factor.tensor);
      continue;
    }
    equation += (operands.empty() ? "" : ",") + factor.letters;
    operands.push_back(factor.tensor);
  }
  TensorId result = kNone;
  if (!operands.empty())
    result = b.emit("Einsum", operands, shape_of(letters, terms), {{"equation", equation + "->" + letters}});
  for (TensorId scalar : scalars) result = result == kNone ? scalar : b.mul(result, scalar);
  return result;
}

// False when the letters do not suffice.
bool give_operand(Backward& g, size_t i, EinsumTerms terms, const std::vector<Factor>& operands) {
  Builder& b = g.b;
  std::vector<Factor> factors = {{g.gradient(), terms.output}};
  for (size_t other = 0; other < operands.size(); ++other)
    if (other != i) factors.push_back(operands[other]);
  // A letter that the operand repeats reads its diagonal: the second dimension gets a letter of its own, and an
  // identity matrix ties the two.
  std::string wanted;
  for (char c : operands[i].letters) {
    if (wanted.find(c) == std::string::npos) {
      wanted += c;
      continue;
    }
    char fresh = unused_letter(terms);
    if (!fresh) return false;
    int64_t size = terms.sizes[fresh] = terms.sizes[c];
    DType type = b.dtype(g.gradient());
    TensorId eye = b.emit("EyeLike", {b.filled({size, size}, 0, type)}, {size, size});
    factors.push_back({eye, {c, fresh}});
    wanted += fresh;
  }
  // A letter that nothing else has was summed over within the operand: its gradient repeats.
  std::string known;
  Shape column = shape_of(wanted, terms);
  for (size_t d = 0; d < wanted.size(); ++d) {
    bool has = std::any_of(factors.begin(), factors.end(),
                           [&](const Factor& f) { return f.letters.find(wanted[d]) != std::string::npos; });
    if (has) {
      known += wanted[d];
    } else {
      column[d] = 1;
    }
  }
  TensorId dx = b.expand(b.reshape(product(b, factors, known, terms), column), shape_of(wanted, terms));
  g.give(i, b.reshape(dx, g.shape(g.input(i))));
  return true;
}

}  // namespace

void einsum_gradient(Backward& g) {
  std::optional<EinsumTerms> terms = einsum_terms(g.b.graph(), g.node);
  bool done = terms.has_value();
  std::vector<Factor> operands;
  for (size_t i = 0; done && i < g.node.inputs.size(); ++i)
    operands.push_back(without_broadcasts(g.b, g.input(i), terms->inputs[i], *terms));
  if (is_contraction(g.node)) {
    for (size_t i : g.operands()) {
      g.begin_operand(i);
      done = done && give_operand(g, i, *terms, operands);
    }
  } else {
    for (size_t i = 0; done && i < operands.size(); ++i)
      if (g.wants(i)) done = give_operand(g, i, *terms, operands);
  }
  if (!done) {
    g.refuse("its equation \"" + attribute(g.node, "equation", "") + "\" does not fit its operands or uses all letters",
             "write it as several Einsum or MatMul nodes");
  }
}

}  // namespace monet
