// Puts nodes into execution order, keeping the file's order where it is one, and checks that every name is defined
// exactly once before it is read. Works on the main graph and on subgraphs (whose bodies may read names from outside).
// Requires normalised nodes.
#pragma once

#include <vector>

#include "engine/onnx/proto.h"

namespace monet {

// Appends to `problems`: "not-ssa", "missing-input", "missing-output", "cycle". Appends to `warnings`: "unsorted".
void sort_nodes(::onnx::GraphProto& graph, std::vector<Diagnostic>& problems, std::vector<Diagnostic>& warnings);

}  // namespace monet
