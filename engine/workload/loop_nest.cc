#include <algorithm>

#include "engine/ir/einsum.h"
#include "engine/ir/saturating.h"
#include "engine/workload/work.h"

namespace monet {

namespace {

// Imported graphs have complete shapes of the right rank; a graph built otherwise counts what is missing as 1.
int64_t dim(const Shape& shape, size_t axis) { return axis < shape.size() ? shape[axis] : 1; }

const Shape& shape_of(const Graph& graph, const std::vector<TensorId>& tensors, size_t index) {
  static const Shape kScalar;
  return index < tensors.size() && tensors[index] != kNone ? graph.tensors[tensors[index]].shape : kScalar;
}

// What the unit computes: the operator's output, or the gradient of operand 0 or 1.
enum class Result { output, first, second };

Result result_of(const Unit& unit, const Node& node) {
  if (unit.role != Role::input_gradient && unit.role != Role::weight_gradient) return Result::output;
  for (size_t i = 0; i < 2 && i < node.inputs.size(); ++i)
    if (unit.target != kNone && node.inputs[i] == unit.target) return i == 0 ? Result::first : Result::second;
  return unit.role == Role::input_gradient ? Result::first : Result::second;
}

// Names of the spatial loops, innermost axis first: X, Y, Z; a single axis is Y. A fourth and further ones fold into Z.
std::vector<Loop> spatial(const char* letter, const Shape& shape, size_t first) {
  std::vector<int64_t> sizes;
  for (size_t axis = shape.size(); axis > first; --axis) sizes.push_back(shape[axis - 1]);
  for (; sizes.size() > 3; sizes.pop_back())
    sizes[sizes.size() - 2] = saturating_multiply(sizes[sizes.size() - 2], sizes.back());
  const std::string names = sizes.size() == 1 ? "Y" : "XYZ";
  std::vector<Loop> loops;
  for (size_t i = 0; i < sizes.size(); ++i) loops.push_back({letter + names.substr(i, 1), sizes[i]});
  return loops;
}

// In the terms of a Conv from `input` (C) to `output` (K), both roles of which a ConvTranspose exchanges.
LoopNest conv(const Shape& output, const Shape& weight, int64_t groups, int64_t k, int64_t c, bool reduces_c,
              bool reduces_k) {
  LoopNest nest;
  nest.loops = {{"B", dim(output, 0)}, {"K", k}, {"G", groups}};
  std::vector<Loop> points = spatial("O", output, 2), taps = spatial("F", weight, 2);
  nest.loops.insert(nest.loops.end(), points.begin(), points.end());
  nest.loops.push_back({"C", c});
  nest.loops.insert(nest.loops.end(), taps.begin(), taps.end());
  if (!reduces_c && !reduces_k) {
    nest.reduction = {"B"};
    for (const Loop& loop : points) nest.reduction.push_back(loop.dim);
  } else {
    nest.reduction = {reduces_c ? "C" : "K"};
    for (const Loop& loop : taps) nest.reduction.push_back(loop.dim);
  }
  return nest;
}

LoopNest matrix_product(int64_t b, int64_t d, int64_t c, int64_t k, Result result) {
  LoopNest nest;
  nest.loops = {{"B", b}, {"D", d}, {"C", c}, {"K", k}};
  nest.reduction = {result == Result::output ? "C" : result == Result::first ? "K" : "D"};
  return nest;
}

LoopNest matmul(const Shape& a, const Shape& b, Result result) {
  int64_t batch = 1, d = a.size() > 1 ? a[a.size() - 2] : 1, k = b.size() > 1 ? b.back() : 1;
  int64_t c = a.empty() ? 1 : a.back();
  // Leading axes counted from the right, where broadcasting aligns them.
  for (size_t i = 3; i <= std::max(a.size(), b.size()); ++i) {
    int64_t left = i <= a.size() ? a[a.size() - i] : 1, right = i <= b.size() ? b[b.size() - i] : 1;
    int64_t& loop = left == right ? batch : right == 1 ? d : k;
    loop = saturating_multiply(loop, right == 1 ? left : right);
  }
  return matrix_product(batch, d, c, k, result);
}

// Letters fold into B, D, C and K by which of the operands and the output have them. An operand whose dimension is 1
// where the letter's size is larger counts as without it.
LoopNest einsum(const Graph& graph, const Node& node, Result result) {
  std::optional<EinsumTerms> terms = einsum_terms(graph, node);
  if (!terms) return {};
  auto holds = [&](size_t operand, char letter) {
    size_t at = terms->inputs[operand].find(letter);
    if (at == std::string::npos) return false;
    return terms->sizes[letter] == 1 || graph.tensors[node.inputs[operand]].shape[at] != 1;
  };
  int64_t b = 1, d = 1, c = 1, k = 1;
  for (auto [letter, size] : terms->sizes) {
    bool left = holds(0, letter), right = holds(1, letter);
    int64_t& loop = !left ? k : !right ? d : terms->output.find(letter) == std::string::npos ? c : b;
    loop = saturating_multiply(loop, size);
  }
  return matrix_product(b, d, c, k, result);
}

}  // namespace

int64_t LoopNest::macs() const {
  int64_t product = 1;
  for (const Loop& loop : loops) product = saturating_multiply(product, loop.size);
  return product;
}

LoopNest loop_nest(const Graph& graph, const Unit& unit) {
  bool from_origin = unit.origin != kNone && is_contraction(graph.nodes[unit.origin]);
  if (!from_origin && unit.contraction == kNone) return {};
  const Node& node = graph.nodes[from_origin ? unit.origin : unit.contraction];
  Result result = from_origin ? result_of(unit, node) : Result::output;
  const Shape& first = shape_of(graph, node.inputs, 0);
  const Shape& second = shape_of(graph, node.inputs, 1);
  if (node.op == "Conv" || node.op == "ConvTranspose") {
    int64_t groups = std::max<int64_t>(attribute(node, "group", int64_t{1}), 1);
    if (node.op == "Conv")
      return conv(shape_of(graph, node.outputs, 0), second, groups, dim(second, 0) / groups, dim(second, 1),
                  result == Result::output, result == Result::first);
    return conv(first, second, groups, dim(second, 0) / groups, dim(second, 1), result == Result::first,
                result == Result::output);
  }
  if (node.op == "Gemm") {
    bool trans_a = attribute(node, "transA", int64_t{0}) != 0, trans_b = attribute(node, "transB", int64_t{0}) != 0;
    return matrix_product(1, dim(first, trans_a ? 1 : 0), dim(first, trans_a ? 0 : 1), dim(second, trans_b ? 0 : 1),
                          result);
  }
  if (node.op == "Einsum") return einsum(graph, node, result);
  return matmul(first, second, result);
}

}  // namespace monet
