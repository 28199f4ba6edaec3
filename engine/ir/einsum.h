// The equation of an Einsum node (numpy's notation: Harris et al., Nature 585, 2020): which letter each dimension of
// each operand has.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/graph.h"

namespace monet {

// The text alone: an ellipsis is one '.', an output left out is written out.
struct EinsumEquation {
  std::vector<std::string> inputs;
  std::string output;
};
std::optional<EinsumEquation> parse_einsum(const std::string& equation);  // nothing when it is none

// Whether a product of two operands is one of matrices: some letters are summed, some the left operand alone has, some
// the right one alone, and every letter is one of these or in both operands and the output (a batch).
bool is_matrix_product(const EinsumEquation& equation);

// The equation at the node's shapes: ellipses are letters of their own.
struct EinsumTerms {
  std::vector<std::string> inputs;  // one letter per dimension of each operand
  std::string output;
  std::map<char, int64_t> sizes;  // per letter, broadcasts resolved
};
std::optional<EinsumTerms> einsum_terms(const Graph& graph, const Node& node);  // nothing when they do not fit

// A letter that the equation does not use; 0 when all 52 are taken.
char unused_letter(const EinsumTerms& terms);

}  // namespace monet
