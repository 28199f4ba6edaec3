// Trees of operators as text, matched against an ir::Graph from a node upwards:
//
//   Mul(x, Scale(Add(Erf(Scale(x, 0.70710678)), 1), 0.5))
//
// - Op(a, b): the first output of a node of ai.onnx with exactly these inputs; those of Add and Mul in either order.
// - m:Op(...): the same, its output remembered as m.
// - x: any tensor, the same one wherever the name stands (what defines a name stands before what repeats it).
// - 0.5: a tensor of one element that has this value, as near as its type and exporters' rounding allow.
// - (A | B): either.
// - Scale(t, c) is (Mul(t, c) | Div(t, 1/c)); Square(t) is (Pow(t, 2) | Mul(t, t)); Cube(t) is (Pow(t, 3) |
//   Mul(t, Square(t))).
//
// Whether anything else reads what is inside is for the caller to check, who knows the graph's readers.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/ir/graph.h"

namespace monet {

struct PatternTerm {
  enum class Kind { any_tensor, number, node, either };
  Kind kind = Kind::any_tensor;
  std::string name;               // what the tensor is remembered as; may be empty for nodes
  std::string op;                 // of a node
  double value = 0;               // of a number
  std::vector<PatternTerm> args;  // inputs of a node; the choices of `either`
};

struct Match {
  std::map<std::string, TensorId> tensors;  // by name
  std::vector<NodeId> nodes;                // the root first; a node can come twice
};

// The text must be well-formed: patterns are part of the program (std::logic_error otherwise).
PatternTerm parse_pattern(const std::string& text);
// Operators that a match's root can have.
std::set<std::string> root_operators(const PatternTerm& pattern);
std::optional<Match> match(const PatternTerm& pattern, const Graph& graph, NodeId root);

// Elements of a tensor whose value is known, as doubles; nothing otherwise.
std::optional<std::vector<double>> known_elements(const Tensor& tensor);

}  // namespace monet
