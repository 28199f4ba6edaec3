// Turns stored tensors without values into typed graph inputs (ONNX's checker and converter refuse initializers without
// values; inputs pass) and remembers what they are to training: floats are parameters, others buffers.
//
// Cases: initializers of the main graph (those with values stay, strings excepted: the IR holds none); Constant nodes
// whose value was skipped (the node goes); the same inside subgraphs, hoisted to the main graph under a name that is
// free there. Requires normalised nodes.
#pragma once

#include <string>
#include <vector>

#include "engine/ir/graph.h"
#include "engine/onnx/proto.h"

namespace monet {

// A tensor stored in the file, in file order: parameter or buffer; whether or not its value was kept.
struct Stored {
  std::string name;
  TensorKind kind = TensorKind::parameter;
};

// Appends to `stored` what is not in it yet (inlining brings further Constants: call again after it). Float
// initializers that keep their value are listed too; other kept ones are constants.
void take_weights(::onnx::GraphProto& graph, std::vector<Stored>& stored);

// Corrects kinds by what reads them, for the converted graph: running statistics of BatchNormalization are buffers;
// float initializers with a value that only configure operators (Clip bounds, Resize scales, quantization scales) are
// constants and leave the list.
void classify(const ::onnx::GraphProto& graph, std::vector<Stored>& stored);

}  // namespace monet
