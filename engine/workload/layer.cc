#include "engine/workload/layer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/ir/einsum.h"
#include "engine/ir/saturating.h"

namespace monet {

namespace {

int64_t entry(const std::vector<int64_t>& list, size_t index, int64_t otherwise) {
  return index < list.size() ? list[index] : otherwise;
}

// The spatial axes of a Conv's windows, in the loop names of its nest.
void add_windows(const Layer& layer, const Node& node, const Shape& windowed, LayerOperand& operand) {
  const std::vector<int64_t> strides = attribute(node, "strides", std::vector<int64_t>{});
  const std::vector<int64_t> dilations = attribute(node, "dilations", std::vector<int64_t>{});
  auto loop = [&](const std::string& dim) {
    for (size_t i = 0; i < layer.loops.size(); ++i)
      if (layer.loops[i].dim == dim) return static_cast<int>(i);
    return -1;
  };
  size_t rank = windowed.size() > 2 ? windowed.size() - 2 : 0;
  // Innermost axis first, as loop_nest names them; axes beyond the third are in Z, whose overlap is then left out.
  for (size_t i = 0; i < std::min<size_t>(rank, 3); ++i) {
    std::string letter = rank == 1 ? "Y" : std::string("XYZ").substr(i, 1);
    WindowedAxis axis;
    axis.point = loop("O" + letter);
    axis.tap = loop("F" + letter);
    if (axis.point < 0 || axis.tap < 0) continue;
    size_t at = rank - 1 - i;
    if (i == 2 && rank > 3) {
      axis.size = 1;
      for (size_t a = 0; a <= at; ++a) axis.size = saturating_multiply(axis.size, windowed[2 + a]);
    } else {
      axis.stride = std::max<int64_t>(entry(strides, at, 1), 1);
      axis.dilation = std::max<int64_t>(entry(dilations, at, 1), 1);
      axis.size = windowed[2 + at];
    }
    operand.windows.push_back(axis);
  }
}

// First letters `from` of the loops' names become those of `to`.
void rename(Layer& layer, const std::string& from, const std::string& to) {
  for (Loop& loop : layer.loops)
    if (size_t at = from.find(loop.dim[0]); at != std::string::npos) loop.dim[0] = to[at];
}

// Sorts the loops by their names' first letters, then by their axes.
void put_in_order(Layer& layer, const std::string& letters) {
  std::vector<int> order(layer.loops.size()), place(layer.loops.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    const std::string &x = layer.loops[a].dim, &y = layer.loops[b].dim;
    return x[0] == y[0] ? x < y : letters.find(x[0]) < letters.find(y[0]);
  });
  std::vector<Loop> loops;
  for (int loop : order) {
    place[loop] = static_cast<int>(loops.size());
    loops.push_back(layer.loops[loop]);
  }
  layer.loops = std::move(loops);
  for (LayerOperand& operand : layer.operands) {
    for (int& loop : operand.loops) loop = place[loop];
    std::sort(operand.loops.begin(), operand.loops.end());
    for (WindowedAxis& axis : operand.windows) {
      axis.point = place[axis.point];
      axis.tap = place[axis.tap];
    }
  }
}

// A product of matrices: whether its tensors lie by columns, i.e. not in rows of D (first operand), C (second), D
// (result).
struct ByColumns {
  bool first = false, second = false, result = false;
};

ByColumns by_columns(const Graph& graph, const Node& node) {
  if (node.op == "Gemm")
    return {attribute(node, "transA", int64_t{0}) != 0, attribute(node, "transB", int64_t{0}) != 0, false};
  if (node.op != "Einsum") return {};
  std::optional<EinsumTerms> terms = einsum_terms(graph, node);
  if (!terms || terms->inputs.size() < 2) return {};
  const std::string* texts[] = {&terms->inputs[0], &terms->inputs[1], &terms->output};
  auto has = [&](int text, char letter) { return texts[text]->find(letter) != std::string::npos; };
  // Whether the innermost letter, those of the batch (in all three) left out, is also in `other`.
  auto ends_in = [&](int text, int other) {
    for (size_t i = texts[text]->size(); i-- > 0;) {
      char letter = (*texts[text])[i];
      if (!(has(0, letter) && has(1, letter) && has(2, letter))) return has(other, letter);
    }
    return false;
  };
  return {ends_in(0, 2), ends_in(1, 0), ends_in(2, 0)};
}

// Bits of an element of the tensor, or of its gradient.
int stored_bits(const Graph& graph, TensorId id, const Precision& precision, bool gradient) {
  const Tensor& tensor = graph.tensors[id];
  bool fixed =
      tensor.kind == TensorKind::parameter || tensor.kind == TensorKind::constant || tensor.kind == TensorKind::buffer;
  DType type = stored_type(graph, id, precision);
  if (fixed && is_float(tensor.dtype)) type = gradient ? precision.gradients : precision.parameters;
  return bits(type == DType::undefined ? tensor.dtype : type);
}

}  // namespace

int64_t touched_elements(const Layer& layer, const LayerOperand& operand) {
  int64_t product = 1;
  for (int loop : operand.loops) product = saturating_multiply(product, layer.loops[loop].size);
  for (const WindowedAxis& axis : operand.windows)
    product = saturating_multiply(product, window_span(axis, layer.loops[axis.point].size, layer.loops[axis.tap].size));
  return product;
}

Layer sliced(Layer layer, const std::string& dim, int64_t parts) {
  for (Loop& loop : layer.loops)
    if (loop.dim == dim) loop.size = loop.size / parts + (loop.size % parts != 0);
  return layer;
}

Precision datapath_precision() { return uniform_precision(DType::int8); }

int64_t Layer::macs() const {
  int64_t product = 1;
  for (const Loop& loop : loops) product = saturating_multiply(product, loop.size);
  return product;
}

bool Layer::reduces(int loop) const {
  const std::vector<int>& own = output().loops;
  if (std::find(own.begin(), own.end(), loop) != own.end()) return false;
  for (const WindowedAxis& axis : output().windows)
    if (axis.point == loop) return false;
  return true;
}

int64_t window_span(const WindowedAxis& axis, int64_t points, int64_t taps, int64_t point_parts, int64_t tap_parts) {
  int64_t g = std::gcd(axis.stride, axis.dilation), dilation = saturating_multiply(point_parts, axis.dilation / g);
  int64_t overlap = std::max<int64_t>(0, taps - saturating_multiply(tap_parts, axis.stride / g));
  int64_t all = saturating_multiply(points, taps);
  // Fewer points than a dilation steps over leave holes, which count.
  int64_t span = points >= dilation ? all - saturating_multiply(overlap, points - dilation)
                                    : saturating_add(all, saturating_multiply(overlap, dilation - points));
  return std::min(span, saturating_multiply(axis.size, saturating_multiply(point_parts, tap_parts)));
}

std::optional<Layer> layer_of(const Graph& graph, const Unit& unit, const Precision& precision) {
  if (unit.contraction == kNone) return {};  // a bias gradient's origin is a contraction, too
  LoopNest nest = loop_nest(graph, unit);
  bool from_origin = unit.origin != kNone && is_contraction(graph.nodes[unit.origin]);
  const Node& node = graph.nodes[from_origin ? unit.origin : unit.contraction];
  bool conv = node.op == "Conv", transposed = node.op == "ConvTranspose";

  Layer layer;
  layer.name = label(graph, unit.contraction);
  layer.op = node.op;
  layer.loops = std::move(nest.loops);
  // Operands by the first letters of their loops: O is all of OX, OY, OZ, F all taps.
  auto operand = [&](const std::string& letters) {
    LayerOperand indexed;
    for (size_t i = 0; i < layer.loops.size(); ++i)
      if (letters.find(layer.loops[i].dim[0]) != std::string::npos) indexed.loops.push_back(static_cast<int>(i));
    return indexed;
  };
  // The product's input, weight and output in the terms of the nest: a ConvTranspose has that of the Conv it is the
  // gradient of, whose output is its own input.
  LayerOperand input = operand(conv || transposed ? "BGC" : "BDC"),
               weight = operand(conv || transposed ? "KGCF" : "BCK"),
               output = operand(conv || transposed ? "BKGO" : "BDK");
  if (conv || transposed) {
    const std::vector<TensorId>& holders = conv ? node.inputs : node.outputs;
    if (!holders.empty() && holders[0] != kNone) add_windows(layer, node, graph.tensors[holders[0]].shape, input);
  }
  auto sums = [&](const char* dim) {
    return std::find(nest.reduction.begin(), nest.reduction.end(), dim) != nest.reduction.end();
  };
  auto tensor = [](const std::vector<TensorId>& list, size_t i) { return i < list.size() ? list[i] : kNone; };
  TensorId result = tensor(node.outputs, 0);
  auto describe = [&](LayerOperand& operand, TensorId id, bool is_result) {
    if (id == kNone) return;
    bool gradient = unit.target == id && unit.role != Role::forward;
    operand.dtype = graph.tensors[id].dtype;
    operand.bits = stored_bits(graph, id, precision, gradient);
    if (is_result) layer.partial_bits = operand.bits <= 16 ? 2 * operand.bits : operand.bits;
  };
  describe(input, transposed ? result : tensor(node.inputs, 0), sums("K"));
  describe(weight, tensor(node.inputs, 1), !sums("C") && !sums("K"));
  describe(output, transposed ? tensor(node.inputs, 0) : result, sums("C"));
  ByColumns columns = by_columns(graph, node);
  if (sums("C")) {
    input.transposed = columns.first;
    weight.transposed = columns.second;
    output.transposed = columns.result;
    layer.operands = {std::move(input), std::move(weight), std::move(output)};
  } else if (sums("K")) {
    output.transposed = columns.result;
    weight.transposed = !columns.second;
    input.transposed = columns.first;
    layer.operands = {std::move(output), std::move(weight), std::move(input)};
    rename(layer, "KC", "CK");
  } else {
    input.transposed = !columns.first;
    output.transposed = conv || transposed || columns.result;
    weight.transposed = conv || transposed || columns.second;
    layer.operands = {std::move(input), std::move(output), std::move(weight)};
    if (conv || transposed) {
      rename(layer, "BCOF", "CBFO");
      for (WindowedAxis& axis : layer.operands[0].windows) {
        std::swap(axis.point, axis.tap);
        std::swap(axis.stride, axis.dilation);
      }
    } else {
      rename(layer, "CD", "DC");
    }
  }
  const char* const names[] = {"I", "W", "O"};
  for (size_t i = 0; i < 3; ++i) layer.operands[i].name = names[i];
  put_in_order(layer, conv || transposed ? "BKGOCF" : node.op == "Gemm" ? "BCDK" : "BDCK");
  return layer;
}

static ContentKey& operator<<(ContentKey& key, const Loop& loop) { return key << loop.dim << loop.size; }
static ContentKey& operator<<(ContentKey& key, const WindowedAxis& axis) {
  return key << axis.point << axis.tap << axis.stride << axis.dilation << axis.size;
}
static ContentKey& operator<<(ContentKey& key, const LayerOperand& operand) {
  return key << operand.name << operand.loops << operand.windows << operand.bits;
}
ContentKey& operator<<(ContentKey& key, const Layer& layer) {
  return key << layer.loops << layer.operands << layer.partial_bits;
}

}  // namespace monet
