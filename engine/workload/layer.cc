#include "engine/workload/layer.h"

#include <algorithm>
#include <numeric>
#include <utility>

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

}  // namespace

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

int64_t window_span(const WindowedAxis& axis, int64_t points, int64_t taps) {
  int64_t g = std::gcd(axis.stride, axis.dilation), dilation = axis.dilation / g;
  int64_t overlap = std::max<int64_t>(0, taps - axis.stride / g);
  int64_t all = saturating_multiply(points, taps);
  // Fewer points than a dilation steps over leave holes, which count.
  int64_t span = points >= dilation ? all - saturating_multiply(overlap, points - dilation)
                                    : saturating_add(all, saturating_multiply(overlap, dilation - points));
  return std::min(span, axis.size);
}

std::optional<Layer> layer_of(const Graph& graph, const Unit& unit, const LayerPrecision& precision) {
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
  if (sums("C")) {
    layer.operands = {std::move(input), std::move(weight), std::move(output)};
  } else if (sums("K")) {
    layer.operands = {std::move(output), std::move(weight), std::move(input)};
    rename(layer, "KC", "CK");
  } else {
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
  const int bits[] = {precision.input, precision.weight, precision.output};
  for (size_t i = 0; i < 3; ++i) {
    layer.operands[i].name = names[i];
    layer.operands[i].bits = bits[i];
  }
  layer.partial_bits = precision.partial;
  put_in_order(layer, conv || transposed ? "BKGOCF" : node.op == "Gemm" ? "BCDK" : "BDCK");
  return layer;
}

}  // namespace monet
