// The last stage of binding: an inferred ONNX graph as an ir::Graph. Folded nodes become constants, nodes that no
// output needs go; tensors keep their names. What export_model wrote into metadata (phases, roles, units, tensor kinds)
// comes back; other graphs get one unit a node. `keep_all`: keeps nodes that no output needs as well. Requires an
// Inferred without problems.
#pragma once

#include <vector>

#include "engine/ir/graph.h"
#include "engine/onnx/infer.h"
#include "engine/onnx/weights.h"

namespace monet {

Graph to_ir(const ::onnx::ModelProto& model, const Inferred& inferred, const std::vector<Stored>& stored,
            bool keep_all = false);

// Whether export_model made this: nodes carry phases.
bool has_phases(const ::onnx::GraphProto& graph);
// Whether some of them are not forward: a training graph.
bool has_phases_after_forward(const ::onnx::GraphProto& graph);

}  // namespace monet
