#include "engine/ir/einsum.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace monet {

namespace {

constexpr const char* kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
constexpr char kEllipsis = '.';

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

bool has(const std::string& term, char letter) { return term.find(letter) != std::string::npos; }

// Letters, and at most one ellipsis.
std::optional<std::string> parse_term(std::string text) {
  constexpr const char* kDots = "...";
  size_t dots = text.find(kDots);
  if (dots != std::string::npos) text.replace(dots, std::strlen(kDots), 1, kEllipsis);
  for (size_t i = 0; i < text.size(); ++i)
    if (i != dots && !is_letter(text[i])) return std::nullopt;
  return text;
}

// The ellipsis, then the letters that occur once in all operands, in alphabetical order, capitals first.
std::string implicit_output(const std::vector<std::string>& inputs) {
  std::map<char, int> count;
  for (const std::string& term : inputs)
    for (char c : term) ++count[c];
  std::string output(count.count(kEllipsis), kEllipsis);
  for (auto [letter, times] : count)
    if (times == 1 && letter != kEllipsis) output += letter;
  return output;
}

bool repeats(std::string term) {
  std::sort(term.begin(), term.end());
  return std::adjacent_find(term.begin(), term.end()) != term.end();
}

}  // namespace

std::optional<EinsumEquation> parse_einsum(const std::string& text) {
  std::string equation = text;
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  EinsumEquation result;
  size_t arrow = equation.find("->");
  std::string left = equation.substr(0, arrow) + ',';
  for (size_t begin = 0, end; (end = left.find(',', begin)) != std::string::npos; begin = end + 1) {
    std::optional<std::string> term = parse_term(left.substr(begin, end - begin));
    if (!term) return std::nullopt;
    result.inputs.push_back(*term);
  }
  std::optional<std::string> output =
      arrow == std::string::npos ? implicit_output(result.inputs) : parse_term(equation.substr(arrow + 2));
  if (!output) return std::nullopt;
  result.output = *output;
  return result;
}

bool is_matrix_product(const EinsumEquation& equation) {
  if (equation.inputs.size() != 2) return false;
  const std::string &a = equation.inputs[0], &b = equation.inputs[1], &out = equation.output;
  if (repeats(a) || repeats(b) || repeats(out)) return false;
  bool summed = false, rows = false, columns = false;
  for (char c : a + b + out) {
    bool in_a = has(a, c), in_b = has(b, c), in_out = has(out, c);
    if (in_a + in_b + in_out < 2) return false;
    summed = summed || !in_out;
    rows = rows || !in_b;
    columns = columns || !in_a;
  }
  return summed && rows && columns;
}

char unused_letter(const EinsumTerms& terms) {
  for (const char* letter = kLetters; *letter; ++letter)
    if (!terms.sizes.count(*letter)) return *letter;
  return 0;
}

std::optional<EinsumTerms> einsum_terms(const Graph& graph, const Node& node) {
  std::optional<EinsumEquation> equation = parse_einsum(attribute(node, "equation", ""));
  if (!equation || equation->inputs.size() != node.inputs.size()) return std::nullopt;
  EinsumTerms result;
  std::vector<Shape> shapes;
  size_t most = 0;  // dimensions that ellipses stand for
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == kNone) return std::nullopt;
    const std::string& term = equation->inputs[i];
    shapes.push_back(graph.tensors[node.inputs[i]].shape);
    size_t named = term.size() - has(term, kEllipsis);
    if (shapes[i].size() < named || (!has(term, kEllipsis) && shapes[i].size() != named)) return std::nullopt;
    most = std::max(most, shapes[i].size() - named);
    for (char c : term)
      if (c != kEllipsis) result.sizes[c] = 0;  // taken
  }
  std::string ellipsis;
  for (size_t i = 0; i < most; ++i) {
    char letter = unused_letter(result);
    if (!letter) return std::nullopt;
    ellipsis += letter;
    result.sizes[letter] = 0;
  }
  auto written_out = [&](std::string term, size_t dimensions) {
    size_t at = term.find(kEllipsis);
    return at == std::string::npos ? term : term.replace(at, 1, ellipsis.substr(most - dimensions));
  };
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string& term = equation->inputs[i];
    result.inputs.push_back(written_out(term, shapes[i].size() + has(term, kEllipsis) - term.size()));
    for (size_t d = 0; d < shapes[i].size(); ++d) {
      char letter = result.inputs[i][d];
      auto [size, first] = sizes.emplace(letter, shapes[i][d]);
      if (first || size->second == shapes[i][d]) continue;
      bool broadcasts = has(ellipsis, letter) && (size->second == 1 || shapes[i][d] == 1);
      if (!broadcasts) return std::nullopt;
      size->second *= shapes[i][d];  // one of them is 1
    }
  }
  result.sizes = std::move(sizes);
  result.output = written_out(equation->output, most);
  for (char c : result.output)
    if (!result.sizes.count(c)) return std::nullopt;
  return result;
}

}  // namespace monet
