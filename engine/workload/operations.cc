#include "engine/workload/operations.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "engine/ir/einsum.h"
#include "engine/ir/saturating.h"
#include "engine/workload/work.h"

namespace monet {

namespace {

constexpr int kSpecial = 4;                     // reciprocal, reciprocal square root, exp2, log2, sine, cosine
constexpr int kDiv = kSpecial + 1;              // a * (1 / b)
constexpr int kSqrt = kSpecial + 1;             // x * (1 / sqrt x)
constexpr int kExp = kSpecial + 1;              // exp2(x * log2 e)
constexpr int kLog = kSpecial + 1;              // log2(x) * ln 2
constexpr int kPow = 2 * kSpecial + 1;          // exp2(y * log2 x)
constexpr int kSigmoid = kExp + 1 + kSpecial;   // 1 / (1 + exp(-x)), the sign in the constant
constexpr int kTanh = kExp + 1 + kSpecial + 2;  // 1 - 2 / (1 + exp(2x))
constexpr int kSoftplus = kExp + 1 + kLog;      // log(1 + exp x)
// Abramowitz and Stegun 7.1.26: t = 1 / (1 + p|x|): |x|, multiply, add, reciprocal; a polynomial of degree 5 in t
// without constant term: 5 multiplies, 4 adds; times exp(-x x): 2 multiplies, exp; 1 minus it, and the sign.
constexpr int kErf = (2 + 1 + kSpecial) + 9 + (2 + kExp) + 2;
// Inverse and hyperbolic functions by their logarithmic or exponential forms.
constexpr int kSinh = kExp + kSpecial + 2;    // (e - 1/e) / 2
constexpr int kAsinh = 2 + kSqrt + 1 + kLog;  // log(x + sqrt(x x + 1))
constexpr int kAtanh = 2 + kDiv + kLog + 1;   // log((1 + x) / (1 - x)) / 2
// Abramowitz and Stegun 4.4.49 for atan (reciprocal for the range, x x, degree 8 in it, times x, select); 4.4.46 for
// asin and acos (degree 7 times sqrt(1 - x)).
constexpr int kAtan = kSpecial + 1 + 16 + 2;
constexpr int kAsin = 14 + 1 + kSqrt + 2;

// Per element of output 0, and per element of input 0 (reductions).
struct Cost {
  int output = 0;
  int input = 0;
};

// clang-format off
const std::map<std::string_view, Cost>& table() {
  static const std::map<std::string_view, Cost> costs = {
    // Elementwise arithmetic, logic and comparison.
    {"Abs", {1}}, {"Add", {1}}, {"And", {1}}, {"BitShift", {1}}, {"BitwiseAnd", {1}}, {"BitwiseNot", {1}},
    {"BitwiseOr", {1}}, {"BitwiseXor", {1}}, {"Cast", {1}}, {"CastLike", {1}}, {"Ceil", {1}}, {"Equal", {1}},
    {"Floor", {1}}, {"Greater", {1}}, {"GreaterOrEqual", {1}}, {"IsInf", {1}}, {"IsNaN", {1}}, {"Less", {1}},
    {"LessOrEqual", {1}}, {"Mul", {1}}, {"Neg", {1}}, {"Not", {1}}, {"Or", {1}}, {"Round", {1}}, {"Sign", {1}},
    {"Sub", {1}}, {"Where", {1}}, {"Xor", {1}},
    {"Clip", {2}}, {"Div", {kDiv}}, {"Mod", {kDiv + 3}},  // a - b floor(a / b)
    {"Reciprocal", {kSpecial}}, {"Sqrt", {kSqrt}}, {"Pow", {kPow}},
    {"Exp", {kExp}}, {"Log", {kLog}}, {"Erf", {kErf}},
    {"Sin", {kSpecial}}, {"Cos", {kSpecial}}, {"Tan", {2 * kSpecial + kDiv}},
    {"Sinh", {kSinh}}, {"Cosh", {kSinh}}, {"Tanh", {kTanh}},
    {"Asin", {kAsin}}, {"Acos", {kAsin}}, {"Atan", {kAtan}},
    {"Asinh", {kAsinh}}, {"Acosh", {kAsinh}}, {"Atanh", {kAtanh}},
    // Activations.
    {"Relu", {1}}, {"ThresholdedRelu", {2}}, {"LeakyRelu", {2}}, {"PRelu", {2}},
    {"Celu", {kExp + 5}},         // max(0, x) + min(0, a (exp(x / a) - 1)), 1 / a in the constant
    {"Elu", {kExp + 3}}, {"Selu", {kExp + 4}},
    {"Gelu", {kErf + 4}},         // x / 2 * (1 + erf(x / sqrt 2)); the tanh form costs less, the bound on it is rounded up
    {"HardSigmoid", {4}}, {"HardSwish", {5}},
    {"Mish", {kSoftplus + kTanh + 1}}, {"Shrink", {4}}, {"Sigmoid", {kSigmoid}}, {"Swish", {kSigmoid + 1}},
    {"Softplus", {kSoftplus}}, {"Softsign", {2 + kDiv}},
    // Per element: maximum, subtract, exp, add, and multiply by the reciprocal of the sum (or subtract its logarithm).
    {"Softmax", {4 + kExp}}, {"LogSoftmax", {4 + kExp}}, {"Hardmax", {2}},
    // Normalisations, mean: add; variance: subtract, square, add; then multiply and add (scale and inverse deviation are
    // one factor per channel), twice multiply where scale varies inside the normalised group.
    {"InstanceNormalization", {6}}, {"GroupNormalization", {7}}, {"LayerNormalization", {7}},
    {"MeanVarianceNormalization", {5}}, {"RMSNormalization", {4}}, {"SimplifiedLayerNormalization", {4}},
    {"LpNormalization", {2 + kDiv}},
    // Reductions: per element read, and what closes each result.
    {"ReduceSum", {0, 1}}, {"ReduceMax", {0, 1}}, {"ReduceMin", {0, 1}}, {"ReduceProd", {0, 1}}, {"ReduceMean", {1, 1}},
    {"ReduceL1", {0, 2}}, {"ReduceL2", {kSqrt, 2}}, {"ReduceSumSquare", {0, 2}}, {"ReduceLogSum", {kLog, 1}},
    {"ReduceLogSumExp", {kLog + 1, 3 + kExp}}, {"ArgMax", {0, 1}}, {"ArgMin", {0, 1}}, {"CumSum", {1}},
    {"TopK", {0, 1}},             // every element meets the threshold at least once
    {"GlobalAveragePool", {1, 1}}, {"GlobalMaxPool", {0, 1}}, {"GlobalLpPool", {kPow, 2}},
    // Losses: those of LogSoftmax, then one product and sum per row.
    {"SoftmaxCrossEntropyLoss", {0, 4 + kExp}}, {"NegativeLogLikelihoodLoss", {0, 0}},
    // Training-mode Dropout: mask and scale; the random number is not counted.
    {"Dropout", {2}}, {"Bernoulli", {1}},
    // Quantisation: scale, round, add, clip; back: subtract, scale.
    {"QuantizeLinear", {5}}, {"DequantizeLinear", {2}}, {"DynamicQuantizeLinear", {7}},
    {"Range", {2}}, {"MaxUnpool", {0}},
    // Data movement and shape arithmetic.
    {"Compress", {}}, {"Concat", {}}, {"Constant", {}}, {"ConstantOfShape", {}}, {"CenterCropPad", {}},
    {"DepthToSpace", {}}, {"Expand", {}}, {"EyeLike", {}}, {"Flatten", {}}, {"Gather", {}}, {"GatherElements", {}},
    {"GatherND", {}}, {"Identity", {}}, {"NonZero", {}}, {"OneHot", {}}, {"Pad", {}}, {"Reshape", {}},
    {"ReverseSequence", {}}, {"Shape", {}}, {"Size", {}}, {"Slice", {}}, {"SpaceToDepth", {}}, {"Split", {}},
    {"Squeeze", {}}, {"Tile", {}}, {"Transpose", {}}, {"Trilu", {}}, {"Unsqueeze", {}},
    {"Col2Im", {0, 1}},           // every column element is added to the image
    // By attributes and shapes, in special_cost.
    {"AffineGrid", {}}, {"DFT", {}}, {"GRU", {}}, {"GridSample", {}}, {"LSTM", {}}, {"RNN", {}}, {"STFT", {}},
    {"AveragePool", {}}, {"BatchNormalization", {}}, {"Det", {}}, {"Einsum", {}}, {"LRN", {}}, {"LpPool", {}}, {"Max", {}}, {"MaxPool", {}},
    {"Mean", {}}, {"Min", {}}, {"Resize", {}}, {"Scatter", {}}, {"ScatterElements", {}}, {"ScatterND", {}}, {"Sum", {}},
    {"Upsample", {}},
  };
  return costs;
}
// clang-format on

int64_t elements_at(const Graph& graph, const std::vector<TensorId>& tensors, size_t index) {
  if (index >= tensors.size() || tensors[index] == kNone) return 0;
  return elements(graph.tensors[tensors[index]].shape);
}

const Shape& shape_at(const Graph& graph, const std::vector<TensorId>& tensors, size_t index) {
  static const Shape kScalar;
  return index < tensors.size() && tensors[index] != kNone ? graph.tensors[tensors[index]].shape : kScalar;
}

int64_t present(const std::vector<TensorId>& tensors) {
  int64_t count = 0;
  for (TensorId t : tensors) count += t != kNone;
  return count;
}

// Slices along the normalised axis of Softmax and its like: one reciprocal or logarithm each.
int64_t rows(const Graph& graph, const Node& node) {
  const Shape& shape = shape_at(graph, node.inputs, 0);
  int64_t axis = attribute(node, "axis", int64_t{-1});
  if (axis < 0) axis += static_cast<int64_t>(shape.size());
  if (axis < 0 || axis >= static_cast<int64_t>(shape.size()) || shape[axis] == 0) return 0;
  return elements(shape) / shape[axis];
}

// Linear interpolation between two neighbours is subtract, multiply, add; r axes take 2^r - 1 of them per element;
// cubic interpolation weighs 4 neighbours per axis: 4^r multiply-adds.
int64_t resize_cost(const Graph& graph, const Node& node) {
  std::string mode = attribute(node, "mode", "nearest");
  if (mode != "linear" && mode != "cubic") return 0;
  const Shape &in = shape_at(graph, node.inputs, 0), &out = shape_at(graph, node.outputs, 0);
  int axes = 0;
  for (size_t i = 0; i < in.size() && i < out.size(); ++i) axes += in[i] != out[i];
  if (axes > 8) axes = 8;  // no image has more; keeps the power in range
  return mode == "linear" ? 3 * ((int64_t{1} << axes) - 1) : axes == 0 ? 0 : 2 * (int64_t{1} << (2 * axes));
}

// One multiplication per further operand at every point of the space that the letters span, and one addition if letters
// are summed.
int64_t einsum_cost(const Graph& graph, const Node& node) {
  std::optional<EinsumTerms> terms = einsum_terms(graph, node);
  if (!terms) return 0;
  int64_t points = 1;
  for (auto [letter, size] : terms->sizes) points = saturating_multiply(points, size);
  bool sums = terms->output.size() < terms->sizes.size();
  return saturating_multiply(points, static_cast<int64_t>(terms->inputs.size()) - 1 + sums);
}

// Elimination of an n x n matrix: below pivot k there are n - k rows, each takes one division and n - k multiplications
// and subtractions; sums to (n - 1) n (2 n - 1) / 3 + n (n - 1) / 2 divisions. Then the product of the pivots.
int64_t det_cost(const Graph& graph, const Node& node) {
  const Shape& shape = shape_at(graph, node.inputs, 0);
  int64_t n = shape.empty() ? 0 : shape.back();
  int64_t below = saturating_multiply(n, n - 1);
  int64_t matrix = saturating_add(saturating_multiply(below, saturating_add(n, n - 1)) / 3,
                                  saturating_add(saturating_multiply(below / 2, kDiv), n - 1));
  return n > 0 ? saturating_multiply(elements_at(graph, node.outputs, 0), matrix) : 0;
}

// Per point and axis: scale and shift to pixels, floor, share and its complement; per point the weights of the 2^d
// pixels around it, (d - 1) products each; per channel a multiply-add for each pixel. Cubic: 4^d pixels, 4 weights an
// axis, each a cubic in Horner's form (6).
int64_t grid_sample_cost(const Graph& graph, const Node& node) {
  const Shape &x = shape_at(graph, node.inputs, 0), &y = shape_at(graph, node.outputs, 0);
  if (x.size() < 3 || y.size() != x.size() || x.size() > 8) return 0;
  int axes = static_cast<int>(x.size()) - 2;
  std::string mode = attribute(node, "mode", "linear");
  int64_t pixels = mode == "nearest" ? 1 : int64_t{1} << (mode == "cubic" ? 2 * axes : axes);
  int64_t point = mode == "nearest" ? 3 * axes : (mode == "cubic" ? 3 + 4 * 6 : 5) * axes + pixels * (axes - 1);
  int64_t points = elements(y) / std::max<int64_t>(1, y[1]);
  return saturating_add(saturating_multiply(points, point), saturating_multiply(elements(y), 2 * pixels));
}

// 5 N log2 N operations for a transform of N complex points (radix 2, Cooley and Tukey, Mathematics of Computation 19,
// 1965); STFT weighs every frame by its window first.
int64_t fourier_cost(const Graph& graph, const Node& node) {
  const Shape &x = shape_at(graph, node.inputs, 0), &y = shape_at(graph, node.outputs, 0);
  if (y.size() < 2 || x.empty() || elements(y) == 0) return 0;
  bool framed = node.op == "STFT";
  if (!framed && x.size() != y.size()) return 0;
  size_t at = framed ? 3 : 1;  // the transform's length; without it the axis's own
  std::vector<int64_t> given;
  if (at < node.inputs.size() && node.inputs[at] != kNone) given = integers(graph.tensors[node.inputs[at]]);
  size_t axis = y.size() - 2;
  if (!framed && node.inputs.size() > 2 && node.inputs[2] != kNone) {
    std::vector<int64_t> value = integers(graph.tensors[node.inputs[2]]);
    int64_t rank = static_cast<int64_t>(y.size()), i = value.size() == 1 ? value[0] : -2;
    if (i < 0) i += rank;
    if (i >= 0 && i < rank) axis = static_cast<size_t>(i);
  }
  int64_t n = given.size() == 1 && given[0] > 0 ? given[0] : framed ? 2 * (y[axis] - 1) : x[axis], levels = 0;
  while (levels < 62 && (int64_t{1} << levels) < n) ++levels;
  int64_t transforms = elements(y) / y[axis] / 2, each = saturating_multiply(5 * levels, n);
  return saturating_multiply(transforms, saturating_add(each, framed ? n : 0));
}

// Per step, sample and direction: the gates' multiply-accumulates with inputs and states, and the cell: its
// activations; LSTM 3 products and a sum, GRU reset, difference, product and sum.
int64_t recurrent_cost(const Graph& graph, const Node& node) {
  const Shape &x = shape_at(graph, node.inputs, 0), &r = shape_at(graph, node.inputs, 2);
  if (x.size() != 3 || r.size() != 3) return 0;
  int64_t cell = node.op == "LSTM" ? 3 * kSigmoid + 2 * kTanh + 4 : node.op == "GRU" ? 2 * kSigmoid + kTanh + 4 : kTanh;
  int64_t products = saturating_multiply(r[1], saturating_add(x[2], r[2]));
  int64_t runs = saturating_multiply(saturating_multiply(x[0], x[1]), r[0]);
  return saturating_multiply(runs, saturating_add(products, saturating_multiply(cell, r[2])));
}

}  // namespace

bool is_elementwise(std::string_view op) {
  static const std::set<std::string_view> kElementwise = {"Abs",
                                                          "Acos",
                                                          "Acosh",
                                                          "Add",
                                                          "And",
                                                          "Asin",
                                                          "Asinh",
                                                          "Atan",
                                                          "Atanh",
                                                          "BitShift",
                                                          "BitwiseAnd",
                                                          "BitwiseNot",
                                                          "BitwiseOr",
                                                          "BitwiseXor",
                                                          "Cast",
                                                          "CastLike",
                                                          "Ceil",
                                                          "Celu",
                                                          "Clip",
                                                          "ConstantOfShape",
                                                          "Cos",
                                                          "Cosh",
                                                          "DequantizeLinear",
                                                          "Div",
                                                          "Dropout",
                                                          "Elu",
                                                          "Equal",
                                                          "Erf",
                                                          "Exp",
                                                          "Expand",
                                                          "Floor",
                                                          "Gelu",
                                                          "Greater",
                                                          "GreaterOrEqual",
                                                          "HardSigmoid",
                                                          "HardSwish",
                                                          "IsInf",
                                                          "IsNaN",
                                                          "LeakyRelu",
                                                          "Less",
                                                          "LessOrEqual",
                                                          "Log",
                                                          "Max",
                                                          "Mean",
                                                          "Min",
                                                          "Mish",
                                                          "Mod",
                                                          "Mul",
                                                          "Neg",
                                                          "Not",
                                                          "Or",
                                                          "PRelu",
                                                          "Pow",
                                                          "QuantizeLinear",
                                                          "Range",
                                                          "Reciprocal",
                                                          "Relu",
                                                          "Round",
                                                          "Selu",
                                                          "Shrink",
                                                          "Sigmoid",
                                                          "Sign",
                                                          "Sin",
                                                          "Sinh",
                                                          "Softplus",
                                                          "Softsign",
                                                          "Sqrt",
                                                          "Sub",
                                                          "Sum",
                                                          "Swish",
                                                          "Tan",
                                                          "Tanh",
                                                          "ThresholdedRelu",
                                                          "Where",
                                                          "Xor"};
  return kElementwise.count(op) > 0;
}

bool is_elementwise(const Node& node) { return node.domain.empty() && is_elementwise(node.op); }

bool is_activation(std::string_view op) {
  static const std::set<std::string_view> kActivations = {
      "Celu",  "Clip", "Elu",  "Gelu",    "HardSigmoid", "HardSwish", "LeakyRelu", "LogSoftmax", "Mish",
      "PRelu", "Relu", "Selu", "Sigmoid", "Softmax",     "Softplus",  "Softsign",  "Swish",      "Tanh",
      "ThresholdedRelu"};
  return kActivations.count(op) > 0;
}

bool is_normalization(std::string_view op) { return op.find("Normalization") != std::string_view::npos; }

bool is_reduction(const Node& node) { return node.domain.empty() && node.op.rfind("Reduce", 0) == 0; }

bool has_operation_cost(const Node& node) {
  return is_contraction(node) || (node.domain.empty() && table().count(node.op) > 0);
}

int64_t operations(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  if (is_view(node)) return 0;
  if (is_contraction(node)) {
    Unit alone;
    alone.contraction = id;
    return loop_nest(graph, alone).macs();
  }
  int64_t out = elements_at(graph, node.outputs, 0), in = elements_at(graph, node.inputs, 0);
  auto entry = node.domain.empty() ? table().find(node.op) : table().end();
  if (entry == table().end()) {
    int64_t all = 0;
    for (size_t i = 0; i < node.outputs.size(); ++i) all = saturating_add(all, elements_at(graph, node.outputs, i));
    return all;
  }
  const std::string& op = node.op;
  if (op == "Sum" || op == "Max" || op == "Min") return saturating_multiply(out, present(node.inputs) - 1);
  if (op == "Mean") return saturating_multiply(out, present(node.inputs));  // additions, and one factor
  if (op == "MaxPool" || op == "AveragePool" || op == "LpPool") {
    // Window sizes: every output compares or adds all of them; an average scales, a norm squares and takes a root.
    int64_t window = elements(attribute(node, "kernel_shape", std::vector<int64_t>{}));
    if (op == "LpPool") return saturating_multiply(out, saturating_add(saturating_multiply(window, 2), kPow));
    return saturating_multiply(out, saturating_add(window, op == "AveragePool" ? 1 : 0));
  }
  if (op == "BatchNormalization") {
    // Batch statistics as the other normalisations; running ones fold into one factor and one addend per channel.
    return saturating_multiply(out, attribute(node, "training_mode", int64_t{0}) != 0 ? 6 : 2);
  }
  if (op == "LRN") {
    // Square, add the window, factor and bias, power, division.
    int64_t window = attribute(node, "size", int64_t{1});
    return saturating_multiply(out, saturating_add(window > 0 ? window : 0, 3 + kPow + kDiv));
  }
  if (op == "AffineGrid") {  // d + 1 coefficients, the last without product
    const Shape& theta = shape_at(graph, node.inputs, 0);
    return saturating_multiply(out, theta.size() == 3 ? 2 * (theta[2] - 1) : 0);
  }
  if (op == "DFT" || op == "STFT") return fourier_cost(graph, node);
  if (op == "GridSample") return grid_sample_cost(graph, node);
  if (op == "LSTM" || op == "GRU" || op == "RNN") return recurrent_cost(graph, node);
  if (op == "Einsum") return einsum_cost(graph, node);
  if (op == "Det") return det_cost(graph, node);
  if (op == "Resize" || op == "Upsample") return saturating_multiply(out, resize_cost(graph, node));
  if (op == "Scatter" || op == "ScatterElements" || op == "ScatterND") {
    bool combines = attribute(node, "reduction", "none") != "none";
    return combines ? elements_at(graph, node.inputs, 2) : 0;
  }
  int64_t count =
      saturating_add(saturating_multiply(out, entry->second.output), saturating_multiply(in, entry->second.input));
  if (op == "Softmax" || op == "LogSoftmax")
    count = saturating_add(count, saturating_multiply(rows(graph, node), kSpecial));
  if (op == "SoftmaxCrossEntropyLoss" || op == "NegativeLogLikelihoodLoss") {
    // Per label: (the logarithm of the sum, and) subtract or add into the loss.
    int64_t each = op == "SoftmaxCrossEntropyLoss" ? kLog + 2 : 1;
    count = saturating_add(count, saturating_multiply(elements_at(graph, node.inputs, 1), each));
  }
  return count;
}

}  // namespace monet
