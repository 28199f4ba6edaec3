#include "engine/onnx/pattern.h"

#include <cmath>
#include <cstdlib>
#include <stdexcept>

#include "engine/onnx/value.h"

namespace monet {

namespace {

using Kind = PatternTerm::Kind;

PatternTerm number(double value) { return {.kind = Kind::number, .value = value}; }
PatternTerm node(const char* op, std::vector<PatternTerm> args) {
  return {.kind = Kind::node, .op = op, .args = std::move(args)};
}
PatternTerm either(std::vector<PatternTerm> choices) { return {.kind = Kind::either, .args = std::move(choices)}; }
PatternTerm square(const PatternTerm& t) { return either({node("Pow", {t, number(2)}), node("Mul", {t, t})}); }

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  PatternTerm whole() {
    PatternTerm result = term();
    if (peek() != '\0') fail();
    return result;
  }

 private:
  [[noreturn]] void fail() const { throw std::logic_error("bad pattern at " + std::to_string(at_) + ": " + text_); }
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }

  PatternTerm term() {
    if (take('(')) return either(list('|'));
    char c = peek();
    if ((c >= '0' && c <= '9') || c == '-') {
      char* end = nullptr;
      double value = std::strtod(text_.c_str() + at_, &end);
      at_ = static_cast<size_t>(end - text_.c_str());
      return number(value);
    }
    std::string word;
    for (c = peek(); (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); c = text_[at_]) {
      word += c;
      if (++at_ == text_.size()) break;
    }
    if (word.empty()) fail();
    if (take(':')) {
      PatternTerm named = term();
      if (named.kind != Kind::node) fail();
      named.name = word;
      return named;
    }
    if (!take('(')) return {.kind = Kind::any_tensor, .name = word};
    std::vector<PatternTerm> args = list(',');
    if (word == "Scale") {
      if (args.size() != 2 || args[1].kind != Kind::number) fail();
      return either({node("Mul", args), node("Div", {args[0], number(1 / args[1].value)})});
    }
    if (word == "Square") return square(args[0]);
    if (word == "Cube") return either({node("Pow", {args[0], number(3)}), node("Mul", {args[0], square(args[0])})});
    return {.kind = Kind::node, .op = word, .args = std::move(args)};
  }

  std::vector<PatternTerm> list(char separator) {
    std::vector<PatternTerm> terms{term()};
    while (take(separator)) terms.push_back(term());
    if (!take(')')) fail();
    return terms;
  }

  const std::string& text_;
  size_t at_ = 0;
};

// How far a stored constant may be off: the rounding of its type, and the digits that exporters write (0.797885).
double tolerance(DType type) {
  switch (type) {
    case DType::float64:
      return 1e-6;
    case DType::float16:
      return 1e-3;
    case DType::bfloat16:
      return 1e-2;
    default:
      return 1e-5;
  }
}

bool has_value(const Tensor& tensor, double value) {
  if (elements(tensor.shape) != 1) return false;
  auto known = known_elements(tensor);
  return known && std::fabs((*known)[0] - value) <= tolerance(tensor.dtype) * std::fabs(value);
}

bool commutes(const std::string& op) { return op == "Add" || op == "Mul"; }

class Matcher {
 public:
  Matcher(const Graph& graph) : graph_(graph) {}

  struct Goal {
    const PatternTerm* term;
    TensorId tensor;
  };

  // Whether all goals can be met together with what is bound; then `result` says how. Goals are met from the last on.
  bool solve(std::vector<Goal> goals) {
    if (goals.empty()) return true;
    // Not a structured binding: clang 14 does not capture those in lambdas.
    const PatternTerm* term = goals.back().term;
    TensorId tensor = goals.back().tensor;
    goals.pop_back();
    if (tensor == kNone) return false;
    switch (term->kind) {
      case Kind::number:
        return has_value(graph_.tensors[tensor], term->value) && solve(std::move(goals));
      case Kind::either:
        for (const PatternTerm& choice : term->args) {
          std::vector<Goal> with = goals;
          with.push_back({&choice, tensor});
          if (solve(std::move(with))) return true;
        }
        return false;
      case Kind::any_tensor:
        return bound(term->name, tensor, [&] { return solve(goals); });
      case Kind::node:
        break;
    }
    NodeId id = graph_.tensors[tensor].producer;
    if (id == kNone) return false;
    const Node& node = graph_.nodes[id];
    if (!node.domain.empty() || node.op != term->op || node.inputs.size() != term->args.size() ||
        node.outputs[0] != tensor)
      return false;
    result.nodes.push_back(id);
    auto with_inputs = [&](bool exchanged) {
      std::vector<Goal> with = goals;
      size_t n = term->args.size();
      for (size_t i = n; i-- > 0;) with.push_back({&term->args[i], node.inputs[exchanged ? n - 1 - i : i]});
      return solve(std::move(with));
    };
    auto inputs = [&] { return with_inputs(false) || (commutes(node.op) && with_inputs(true)); };
    if (term->name.empty() ? inputs() : bound(term->name, tensor, inputs)) return true;
    result.nodes.pop_back();
    return false;
  }

  Match result;

 private:
  template <typename Rest>
  bool bound(const std::string& name, TensorId tensor, const Rest& rest) {
    auto [at, fresh] = result.tensors.emplace(name, tensor);
    if (!fresh) return at->second == tensor && rest();
    if (rest()) return true;
    result.tensors.erase(name);
    return false;
  }

  const Graph& graph_;
};

}  // namespace

PatternTerm parse_pattern(const std::string& text) { return Parser(text).whole(); }

std::set<std::string> root_operators(const PatternTerm& pattern) {
  if (pattern.kind == Kind::node) return {pattern.op};
  std::set<std::string> all;
  if (pattern.kind == Kind::either)
    for (const PatternTerm& choice : pattern.args) all.merge(root_operators(choice));
  return all;
}

std::optional<Match> match(const PatternTerm& pattern, const Graph& graph, NodeId root) {
  Matcher matcher(graph);
  const Node& node = graph.nodes[root];
  if (node.outputs.empty() || !matcher.solve({{&pattern, node.outputs[0]}})) return std::nullopt;
  return std::move(matcher.result);
}

std::optional<std::vector<double>> known_elements(const Tensor& tensor) {
  if (tensor.data.empty()) return std::nullopt;
  ::onnx::TensorProto proto;
  proto.set_data_type(static_cast<int32_t>(tensor.dtype));
  proto.mutable_dims()->Assign(tensor.shape.begin(), tensor.shape.end());
  proto.set_raw_data(tensor.data);
  auto value = decode(proto);
  if (!value) return std::nullopt;
  return value->floating() ? value->floats : std::vector<double>(value->ints.begin(), value->ints.end());
}

}  // namespace monet
