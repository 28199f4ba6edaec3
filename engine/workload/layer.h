// A layer as the cost model sees it: a loop nest, and for each operand how the loops index it. What ZigZag's workload
// files describe (arXiv 2007.11360; fields `equation`, `loop_dims`, `dimension_relations`, ...), and what a contraction
// of a graph is in any of its three roles: the same loops with another operand as output (DESIGN decision 3).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/content_key.h"
#include "engine/ir/diagnostic.h"
#include "engine/ir/graph.h"
#include "engine/training/precision.h"
#include "engine/workload/work.h"

namespace monet {

// An axis that two loops index together, as a convolution's input: position = stride * point + dilation * tap. ZigZag
// calls both loops partially relevant to the operand.
struct WindowedAxis {
  int point = 0, tap = 0;  // indexes into Layer::loops
  int64_t stride = 1, dilation = 1;
  int64_t size = 0;  // elements without padding: no span of the axis counts more
};

struct LayerOperand {
  std::string name;        // as in the equation; of a graph's contraction "I" (first), "W" (second), "O"
  std::vector<int> loops;  // indexes into Layer::loops: the loops that index it alone, one per axis
  std::vector<WindowedAxis> windows;
  int bits = 8;  // per element; of the output once it is complete
  // Of graphs. The model's own type, whatever `bits` count; and whether the tensor lies in memory the other way round
  // than this operator's own tensors do, so that it is read (or written) across its rows: the W of an input gradient.
  DType dtype = DType::undefined;
  bool transposed = false;
};

struct Layer {
  int64_t id = 0;
  std::string name;
  std::string op;                      // operator type, "Conv"
  std::vector<Loop> loops;             // their order breaks ties between equal factor counts (cost/loop_order.h)
  std::vector<LayerOperand> operands;  // one or two inputs, then the output
  int partial_bits = 16;               // of an output element that still lacks summands
  // Inputs' producers in a workload file: operand -> layer id. Its own id: no layer makes it.
  std::map<std::string, int64_t> sources;

  const LayerOperand& output() const { return operands.back(); }
  int64_t macs() const;  // product of all loop sizes; saturates at INT64_MAX
  // Whether iterations of the loop add to the same output elements. Of a window in the output (an input gradient) these
  // are the taps; that neighbouring points overlap there is left out.
  bool reduces(int loop) const;
};

// Elements of an axis that `points` consecutive points with `taps` consecutive taps touch, at most axis.size
// (COST_MODEL section 2, Sizes): points * taps - max(0, taps - stride / g) * (points - dilation / g), g = gcd(stride,
// dilation).
// Points and taps may be fractions, points / point_parts and taps / tap_parts: the result is then the span times both.
int64_t window_span(const WindowedAxis& axis, int64_t points, int64_t taps, int64_t point_parts = 1,
                    int64_t tap_parts = 1);

// Elements of the operand that the layer's iterations touch: positions that a stride steps over do not count.
int64_t touched_elements(const Layer& layer, const LayerOperand& operand);

// The largest of so many parts of the layer when one loop is divided; as it is without that loop. Parts of a window's
// points overlap in what they read.
Layer sliced(Layer layer, const std::string& dim, int64_t parts);

// All that a layer's cost depends on: not its name, nor what it was in a graph.
ContentKey& operator<<(ContentKey& key, const Layer& layer);

// What ZigZag and Stream assume of every ONNX model: operands of 8 bits, hence partial sums of 16.
Precision datapath_precision();

// The layer of a contraction unit: loop_nest(graph, unit), loops in the order in which ZigZag and Stream list them
// (Conv: B K G OX OY C FX FY; Gemm: B C D K; MatMul: B D C K).
//
// A gradient is the same nest, but its loops have the names that they have in the operator it is, because dataflows are
// written in these: C is what is summed over, K what only weight and output have.
//   forward:         I = input, W = weight, O = output;
//   input gradient:  I = the output's gradient, W = weight, O = the input's gradient; K and C exchanged;
//   weight gradient: I = input, W = the output's gradient, O = the weight's gradient; B and C, O* and F* exchanged (a
//                    convolution over swapped axes), of products of matrices C and D.
// (A ConvTranspose computes a Conv's input gradient, so forward and input gradient are exchanged, and in its weight
// gradient its output's gradient is I.) A Conv's padding counts no element of the input, but MACs. Nothing for units
// that are no contraction.
//
// Elements have the bits of the types that tensors are stored in under `precision` (constants those of parameters);
// incomplete sums of results of up to 16 bits twice as many (8: 16, as ZigZag; 16: 32, as Micikevicius et al., ICLR
// 2018), of wider ones the same.
//
// Layouts: a Conv reads I as [B, C, ...] and W as [K, C, ...] and writes O as [B, K, ...]; products of matrices read I
// as rows of D and W as rows of C, and write O as rows of D. Tensors lie as the forward operator reads and writes them
// (Gemm's transA and transB and an Einsum's letters included).
std::optional<Layer> layer_of(const Graph& graph, const Unit& unit, const Precision& precision = datapath_precision());

struct Workload {
  std::vector<Layer> layers;
  std::vector<Diagnostic> warnings;  // unknown fields
};

// `text`: JSON of a ZigZag or Stream workload: an array of layers with `id`, `operator_type`, `equation`, `loop_dims`,
// `loop_sizes`, and optionally `name`, `dimension_relations`, `pr_loop_dims`, `pr_loop_sizes`, `padding`,
// `operand_precision` (bits; the keys O_final and O are the complete and the partial output), `operand_source`. A layer
// without a name is "Layer<id>".
//
// Throws Refusal with every problem found (the first hundred), each naming its field by path:
//   "0.loop_sizes.3: must be a whole number >= 1, is -5".
Workload parse_workload(const std::string& text);

}  // namespace monet
