// Exporters decompose operators that ONNX has had only since a later opset, or not at all in the exporter's day.
// Lifting recognises the pieces and makes them one node again, which training knows by its own rule: it then keeps for
// backward what frameworks keep (the input of a GELU, not five intermediates).
//
// Cases: the table in lift.cc. A pattern is lifted only if training has a rule for what it becomes, if no tensor inside
// is read elsewhere, and if the result computes the same function. The last node keeps its place and its output's name.
// Requires the forward graph of to_ir; afterwards nodes and tensors are renumbered and every node is a unit of its own.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "engine/ir/graph.h"

namespace monet {

// Returns how many nodes of each operator were made; a Dropout of ratio 0 counts as Identity.
std::map<std::string, int> lift(Graph& graph,
                                const std::function<bool(const std::string& domain, const std::string& op)>& has_rule);

}  // namespace monet
