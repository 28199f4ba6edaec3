// Training graphs that come as files (exported by us or made by ONNX Runtime): the parts that the rest of the engine
// asks for, found in the graph's phases, units and kinds instead of being remembered from building it.
#pragma once

#include "engine/ir/graph.h"
#include "engine/training/training_graph.h"

namespace monet {

// The loss follows from the labels (integers: cross entropy; floats: mean squared error; none: sum). `loss_value` is
// kNone: not every such graph computes it.
TrainingGraph read_training_graph(const Graph& graph);

// The forward nodes alone; outputs are the tensors that no forward node reads.
Graph forward_part(const Graph& training);

// The optimizer's name as in its units ("Adam"); empty when nothing is updated.
std::string optimizer_of(const Graph& training);

}  // namespace monet
