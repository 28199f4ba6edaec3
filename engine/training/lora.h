// Low-rank adapters (LoRA; Hu et al., arXiv 2106.09685): beside y = W x a path B(A(x)) is added, through `rank`
// channels, and only A and B train. For a convolution A is one of W's geometry with `rank` output channels per group
// and B is pointwise. The scaling alpha / rank is 1.
#pragma once

#include <vector>

#include "engine/ir/graph.h"

namespace monet {

struct Adapted {
  Graph graph;                     // nodes in order, without units
  std::vector<TensorId> adapters;  // parameters "<weight>.lora_A" and "<weight>.lora_B", in order of use
};

// Adapts every Conv, Gemm and MatMul whose second operand is one of `weights` (also through a Transpose); a weight used
// several times has one pair. The tensors of `forward` keep their indices.
Adapted add_adapters(const Graph& forward, int64_t rank, const std::vector<TensorId>& weights);

}  // namespace monet
