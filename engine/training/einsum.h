// The equation of an Einsum node: one letter per dimension, ellipses written out as letters of their own.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/graph.h"

namespace monet {

struct EinsumTerms {
  std::vector<std::string> inputs;  // one letter per dimension of each operand
  std::string output;
  std::map<char, int64_t> sizes;  // per letter, broadcasts resolved
};

// A letter that the equation does not use; 0 when all 52 are taken.
char unused_letter(const EinsumTerms& terms);
// Nothing when the equation does not fit the shapes of the node's inputs.
std::optional<EinsumTerms> einsum_terms(const Graph& graph, const Node& node);

}  // namespace monet
