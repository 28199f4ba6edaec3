// ONNX's own version converter, run on pieces of the graph: its time grows with the square of the nodes it is given,
// because each tensor it makes is compared with all others to name it (12,000 nodes took 3 s in one piece), and its
// adapters look no further than a node and the constants it reads.
#pragma once

#include "engine/onnx/proto.h"

namespace monet {

// Brings nodes and initializers to `kOpset` from the opset that the model imports; what is declared about inputs,
// outputs and tensors between stays. Payloads of what the converter makes are in raw_data. Requires sorted nodes.
// Throws what the converter throws.
void convert_opset(::onnx::ModelProto& model);

}  // namespace monet
