// Gradient of Einsum: the product is linear in each operand, so an operand's gradient is an Einsum of dY with the other
// operands, with the roles of the output's and the operand's letters exchanged.
#include "engine/training/einsum.h"

#include <algorithm>
#include <cctype>
#include <cstring>

#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr const char* kEllipsis = "...";

// A term as letters before and after its ellipsis, if it has one.
struct Term {
  std::string before, after = {};
  bool ellipsis = false;
};

bool read_term(const std::string& text, Term* term) {
  size_t dots = text.find(kEllipsis);
  *term = {.before = text.substr(0, dots), .ellipsis = dots != std::string::npos};
  if (term->ellipsis) term->after = text.substr(dots + std::strlen(kEllipsis));
  auto is_letter = [](unsigned char c) { return c < 128 && std::isalpha(c); };
  return std::all_of(term->before.begin(), term->before.end(), is_letter) &&
         std::all_of(term->after.begin(), term->after.end(), is_letter);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == ',') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Letters that occur once in all operands, in alphabetical order (capitals first), behind the ellipsis.
Term implicit_output(const std::vector<Term>& inputs) {
  std::map<char, int> count;
  Term output;
  for (const Term& term : inputs) {
    for (char c : term.before + term.after) ++count[c];
    output.ellipsis = output.ellipsis || term.ellipsis;
  }
  for (auto [letter, times] : count)
    if (times == 1) output.after += letter;
  return output;
}

}  // namespace

char unused_letter(const EinsumTerms& terms) {
  for (const char* letter = kLetters; *letter; ++letter)
    if (!terms.sizes.count(*letter)) return *letter;
  return 0;
}

std::optional<EinsumTerms> einsum_terms(const Graph& graph, const Node& node) {
  std::string equation = attribute(node, "equation", "");
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  size_t arrow = equation.find("->");
  std::vector<std::string> texts = split(equation.substr(0, arrow));
  if (texts.size() != node.inputs.size()) return std::nullopt;
  std::vector<Term> inputs(texts.size());
  std::vector<Shape> shapes;
  EinsumTerms result;
  size_t most = 0;  // dimensions that ellipses stand for
  for (size_t i = 0; i < texts.size(); ++i) {
    if (node.inputs[i] == kNone || !read_term(texts[i], &inputs[i])) return std::nullopt;
    shapes.push_back(graph.tensors[node.inputs[i]].shape);
    size_t named = inputs[i].before.size() + inputs[i].after.size();
    if (shapes[i].size() < named || (!inputs[i].ellipsis && shapes[i].size() != named)) return std::nullopt;
    most = std::max(most, shapes[i].size() - named);
    for (char c : inputs[i].before + inputs[i].after) result.sizes[c] = 1;
  }
  Term output = implicit_output(inputs);
  if (arrow != std::string::npos && !read_term(equation.substr(arrow + 2), &output)) return std::nullopt;
  std::string ellipsis;
  for (size_t i = 0; i < most; ++i) {
    char letter = unused_letter(result);
    if (!letter) return std::nullopt;
    ellipsis += letter;
    result.sizes[letter] = 1;
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    size_t dims = shapes[i].size() - inputs[i].before.size() - inputs[i].after.size();
    result.inputs.push_back(inputs[i].before + ellipsis.substr(most - dims) + inputs[i].after);
    for (size_t d = 0; d < shapes[i].size(); ++d) {
      int64_t& size = result.sizes[result.inputs[i][d]];
      if (size != 1 && shapes[i][d] != 1 && size != shapes[i][d]) return std::nullopt;
      if (shapes[i][d] != 1) size = shapes[i][d];
    }
  }
  result.output = output.before + (output.ellipsis ? ellipsis : "") + output.after;
  for (char c : result.output)
    if (!result.sizes.count(c)) return std::nullopt;
  return result;
}

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
  for (size_t i = 0; done && i < operands.size(); ++i)
    if (g.wants(i)) done = give_operand(g, i, *terms, operands);
  if (!done) {
    g.refuse("its equation \"" + attribute(g.node, "equation", "") + "\" does not fit its operands or uses all letters",
             "write it as several Einsum or MatMul nodes");
  }
}

}  // namespace monet
