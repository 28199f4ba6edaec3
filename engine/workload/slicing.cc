#include "engine/workload/slicing.h"

#include <algorithm>
#include <optional>

#include "engine/workload/operations.h"

namespace monet {

namespace {

int64_t product(const Shape& shape, size_t begin, size_t end) {
  int64_t p = 1;
  for (size_t i = begin; i < end; ++i) p *= shape[i];
  return p;
}

// The axis `at` of `shape` in the bytes' own shape `stored`, which has the same elements in the same order.
AxisUse stored_axis(const Shape& stored, const Shape& shape, size_t at) {
  if (at >= shape.size()) return {};
  if (stored == shape) return {static_cast<int>(at), shape[at]};
  if (elements(stored) != elements(shape)) return {};
  int64_t before = product(shape, 0, at), n = shape[at];
  int64_t lead = 1;
  for (size_t i = 0; i < stored.size(); ++i) {
    if (lead == before && stored[i] > 1) {
      int64_t size = stored[i];
      if (size % n == 0) return {static_cast<int>(i), size, size / n, 1, 0, size / n - 1};
      if (n % size == 0) return {static_cast<int>(i), size, 1, n / size, 0, 0};
      return {};
    }
    lead *= stored[i];
  }
  return {};
}

struct Slicer {
  const Graph& graph;
  const std::vector<TensorId>& storage;
  const Unit& unit;
  const Work& work;
  std::vector<SliceAxis> found;

  const Shape& shape(TensorId t) const { return graph.tensors[t].shape; }

  // A slicing whose uses are whole until they are set.
  SliceAxis axis(SliceAxis::Kind kind, int64_t size, std::string dim) const {
    SliceAxis a;
    a.kind = kind;
    a.size = size;
    a.dim = std::move(dim);
    a.reads.resize(work.reads.size());
    a.writes.resize(work.writes.size());
    return a;
  }
  // Kept when it cuts something and every tensor written.
  void add(SliceAxis a) {
    if (a.size < 2 || a.writes.empty()) return;
    for (const AxisUse& use : a.writes)
      if (use.axis == kNone && a.exchanged == 0) return;
    found.push_back(std::move(a));
  }

  void contraction();
  void convolution(const Node& node);
  void product_of_matrices(const Node& node);
  void elementwise(const std::vector<size_t>& axes, const Shape& whole, bool sums = false);
  void other();
};

// Which operand of the forward contraction a tensor read by one of its units stands for.
enum class Operand { first, second, result, none };

void Slicer::contraction() {
  bool from_origin = unit.origin != kNone && is_contraction(graph.nodes[unit.origin]);
  const Node& node = graph.nodes[from_origin ? unit.origin : unit.contraction];
  if (node.outputs.empty() || node.inputs.size() < 2 || node.inputs[0] == kNone || node.inputs[1] == kNone) return;
  if (node.op == "Conv") convolution(node);
  if (node.op == "Gemm" || node.op == "MatMul") product_of_matrices(node);
}

Operand operand_of(const Graph& graph, const std::vector<TensorId>& storage, const Node& node, TensorId read) {
  TensorId y = storage[node.outputs[0]], of = graph.tensors[read].of;
  if (of != kNone && storage[of] == y) return Operand::result;
  if (read == storage[node.inputs[0]]) return Operand::first;
  if (read == storage[node.inputs[1]]) return Operand::second;
  int64_t n = elements(graph.tensors[read].shape);
  // A recomputed copy, or a gradient that lost its name on the way.
  bool is_first = n == elements(graph.tensors[node.inputs[0]].shape), is_result = n == elements(graph.tensors[y].shape);
  if (is_first && !is_result) return Operand::first;
  if (is_result && !is_first) return Operand::result;
  return Operand::none;
}

void Slicer::convolution(const Node& node) {
  const Shape &x = shape(node.inputs[0]), &w = shape(node.inputs[1]), &y = shape(node.outputs[0]);
  if (x.size() < 3 || w.size() != x.size() || y.size() != x.size()) return;
  int64_t groups = std::max<int64_t>(attribute(node, "group", int64_t{1}), 1);
  auto entry = [&](const char* name, size_t i, int64_t otherwise) {
    std::vector<int64_t> list = attribute(node, name, std::vector<int64_t>{});
    return i < list.size() ? list[i] : otherwise;
  };
  int64_t stride = std::max<int64_t>(entry("strides", 0, 1), 1), pad = entry("pads", 0, 0);
  int64_t reach = std::max<int64_t>(entry("dilations", 0, 1), 1) * (w[2] - 1);
  bool wgrad = unit.role == Role::weight_gradient, igrad = unit.role == Role::input_gradient;
  std::string row_dim = x.size() == 5 ? "OZ" : "OY";

  // `axis_of`: what a slice takes of each operand.
  auto build = [&](SliceAxis::Kind kind, int64_t size, const std::string& dim, auto axis_of) {
    SliceAxis a = axis(kind, size, dim);
    auto use = [&](Operand operand, TensorId t, const Shape& logical) {
      AxisUse u = axis_of(operand);
      if (u.axis == kNone) return u;
      AxisUse at = stored_axis(shape(t), logical, static_cast<size_t>(u.axis));
      bool plain = at.stride == 1 && at.divide == 1;
      if (at.axis == kNone || (!plain && (u.stride != 1 || u.divide != 1 || u.before || u.after))) return AxisUse{};
      if (!plain) return at;
      u.axis = at.axis;
      u.size = at.size;
      return u;
    };
    auto logical = [&](Operand o) -> const Shape& { return o == Operand::first ? x : o == Operand::second ? w : y; };
    for (size_t i = 0; i < work.reads.size(); ++i) {
      Operand o = operand_of(graph, storage, node, work.reads[i]);
      if (o != Operand::none) {
        a.reads[i] = use(o, work.reads[i], logical(o));
      } else if (AxisUse of_result = axis_of(Operand::result);
                 of_result.axis == 1 && elements(shape(work.reads[i])) == y[1]) {
        a.reads[i] = of_result;  // the bias
        a.reads[i].axis = 0;
      }
    }
    Operand made = wgrad ? Operand::second : igrad ? Operand::first : Operand::result;
    for (size_t i = 0; i < work.writes.size(); ++i)
      a.writes[i] = elements(shape(work.writes[i])) == elements(logical(made))
                        ? use(made, work.writes[i], logical(made))
                        : AxisUse{};
    add(std::move(a));
  };
  auto whole = AxisUse{};
  auto scaled = [](int axis, int64_t size, int64_t per) { return AxisUse{axis, size, per, 1, 0, per - 1}; };
  using Kind = SliceAxis::Kind;
  if (groups > 1) {  // whole groups at a time
    build(Kind::channels, groups, "G", [&](Operand o) {
      return o == Operand::first    ? scaled(1, x[1], x[1] / groups)
             : o == Operand::second ? scaled(0, w[0], w[0] / groups)
                                    : scaled(1, y[1], y[1] / groups);
    });
  } else if (wgrad) {
    build(Kind::channels, w[0], "K", [&](Operand o) {
      return o == Operand::first ? whole : o == Operand::second ? AxisUse{0, w[0]} : AxisUse{1, y[1]};
    });
    build(Kind::inputs, w[1], "B", [&](Operand o) {
      return o == Operand::first ? AxisUse{1, x[1]} : o == Operand::second ? AxisUse{1, w[1]} : whole;
    });
  } else if (igrad) {
    build(Kind::channels, x[1], "K", [&](Operand o) {
      return o == Operand::first ? AxisUse{1, x[1]} : o == Operand::second ? AxisUse{1, w[1]} : whole;
    });
  } else {
    build(Kind::channels, y[1], "K", [&](Operand o) {
      return o == Operand::first ? whole : o == Operand::second ? AxisUse{0, w[0]} : AxisUse{1, y[1]};
    });
  }
  if (wgrad) return;
  build(Kind::batch, y[0], "B", [&](Operand o) { return o == Operand::second ? whole : AxisUse{0, y[0]}; });
  if (igrad) {
    int64_t before = std::max<int64_t>(0, (reach - pad + stride - 1) / stride), after = (pad + stride - 1) / stride;
    build(Kind::rows, x[2], row_dim, [&](Operand o) {
      return o == Operand::first    ? AxisUse{2, x[2]}
             : o == Operand::second ? whole
                                    : AxisUse{2, y[2], 1, stride, before, after};
    });
  } else {
    build(Kind::rows, y[2], row_dim, [&](Operand o) {
      return o == Operand::first    ? AxisUse{2, x[2], stride, 1, pad, std::max<int64_t>(reach - pad, 0)}
             : o == Operand::second ? whole
                                    : AxisUse{2, y[2]};
    });
  }
}

void Slicer::product_of_matrices(const Node& node) {
  const Shape &a = shape(node.inputs[0]), &b = shape(node.inputs[1]), &y = shape(node.outputs[0]);
  if (a.size() < 2 || b.size() < 2 || y.size() < 2) return;
  bool gemm = node.op == "Gemm";
  bool trans_a = gemm && attribute(node, "transA", int64_t{0}) != 0;
  bool trans_b = gemm && attribute(node, "transB", int64_t{0}) != 0;
  int ra = static_cast<int>(a.size()), rb = static_cast<int>(b.size()), ry = static_cast<int>(y.size());
  int a_row = trans_a ? ra - 1 : ra - 2, a_sum = trans_a ? ra - 2 : ra - 1;
  int b_sum = trans_b ? rb - 1 : rb - 2, b_column = trans_b ? rb - 2 : rb - 1;
  // Which operand is made: A's gradient, B's gradient, or the product.
  TensorId target = unit.role == Role::forward || unit.target == kNone ? kNone : storage[unit.target];
  bool makes_a = target != kNone && target == storage[node.inputs[0]];
  bool makes_b = target != kNone && !makes_a;
  // Axes of A, B and Y that a slice is cut along; kNone: it takes the whole.
  auto build = [&](SliceAxis::Kind kind, int64_t size, const char* dim, int in_a, int in_b, int in_y) {
    SliceAxis s = axis(kind, size, dim);
    auto use = [&](TensorId t, const Shape& logical, int at) {
      return at == kNone ? AxisUse{} : stored_axis(shape(t), logical, static_cast<size_t>(at));
    };
    for (size_t i = 0; i < work.reads.size(); ++i) {
      TensorId t = work.reads[i];
      Operand o = operand_of(graph, storage, node, t);
      if (o == Operand::first && !makes_a) s.reads[i] = use(t, a, in_a);
      if (o == Operand::second && !makes_b) s.reads[i] = use(t, b, in_b);
      if (o == Operand::result) s.reads[i] = use(t, y, in_y);
      if (o == Operand::none && in_y == ry - 1 && elements(shape(t)) == y.back()) s.reads[i] = {0, y.back()};  // bias
    }
    const Shape& made = makes_a ? a : makes_b ? b : y;
    for (size_t i = 0; i < work.writes.size(); ++i)
      s.writes[i] = use(work.writes[i], made, makes_a ? in_a : makes_b ? in_b : in_y);
    add(std::move(s));
  };
  using Kind = SliceAxis::Kind;
  // Leading axes that both operands have in full, and that the left one has alone.
  for (int i = 0; i + 2 < ry; ++i) {
    int in_a = i - (ry - ra), in_b = i - (ry - rb);
    bool of_a = in_a >= 0 && a[in_a] == y[i], of_b = in_b >= 0 && b[in_b] == y[i];
    if (!of_a) continue;
    if (of_b) {
      build(Kind::batch, y[i], "B", in_a, in_b, i);
    } else if (!makes_b) {
      build(i == 0 ? Kind::batch : Kind::rows, y[i], "D", in_a, kNone, i);
    }
  }
  if (makes_b) {
    build(Kind::channels, y.back(), "K", kNone, b_column, ry - 1);
    build(Kind::inputs, b[b_sum], "D", a_sum, b_sum, kNone);
  } else if (makes_a) {
    build(gemm ? Kind::batch : Kind::rows, y[ry - 2], "D", a_row, kNone, ry - 2);
    build(Kind::channels, a[a_sum], "K", a_sum, b_sum, kNone);
  } else {
    build(gemm ? Kind::batch : Kind::rows, y[ry - 2], "D", a_row, kNone, ry - 2);
    build(Kind::channels, y.back(), "K", kNone, b_column, ry - 1);
  }
}

// Cuts every tensor at the given axes of `whole`, the shape of what the unit is about. `sums`: what is written without
// the axis is a sum over it.
void Slicer::elementwise(const std::vector<size_t>& axes, const Shape& whole, bool sums) {
  for (size_t at : axes) {
    if (at >= whole.size()) continue;
    size_t channel_axis = whole.size() == 3 ? 2 : 1;  // of a sequence, what stands beside its rows
    SliceAxis a = axis(at == 0              ? SliceAxis::Kind::batch
                       : at == channel_axis ? SliceAxis::Kind::channels
                                            : SliceAxis::Kind::rows,
                       whole[at], at < 4 ? std::string(1, "BHDK"[at]) : "");
    auto use = [&](TensorId t) -> AxisUse {
      const Shape& own = shape(t);
      if (elements(own) == elements(whole)) return stored_axis(own, whole, at);
      // Broadcast against `whole` from the right.
      if (own.size() <= whole.size()) {
        size_t shift = whole.size() - own.size();
        bool fits = true;
        for (size_t i = 0; i < own.size(); ++i) fits = fits && (own[i] == 1 || own[i] == whole[i + shift]);
        if (fits)
          return at >= shift && own[at - shift] > 1 ? AxisUse{static_cast<int>(at - shift), own[at - shift]}
                                                    : AxisUse{};
      }
      // A vector of one entry per channel; or the leading axes alone (indices, statistics).
      if (at == 1 && own.size() == 1 && own[0] == whole[1]) return {0, own[0]};
      if (at < own.size() && std::equal(own.begin(), own.begin() + static_cast<long>(at) + 1, whole.begin()))
        return {static_cast<int>(at), own[at]};
      return {};
    };
    for (size_t i = 0; i < work.reads.size(); ++i) a.reads[i] = use(work.reads[i]);
    for (size_t i = 0; i < work.writes.size(); ++i) {
      a.writes[i] = use(work.writes[i]);
      if (sums && a.writes[i].axis == kNone) a.exchanged += elements(shape(work.writes[i]));
    }
    add(std::move(a));
  }
}

std::vector<size_t> up_to(size_t end) {
  std::vector<size_t> axes;
  for (size_t i = 0; i < end; ++i) axes.push_back(i);
  return axes;
}

void Slicer::other() {
  if (work.writes.empty()) return;
  auto largest = [&](const std::vector<TensorId>& list) {
    return *std::max_element(list.begin(), list.end(),
                             [&](TensorId p, TensorId q) { return elements(shape(p)) < elements(shape(q)); });
  };
  TensorId made = largest(work.writes);
  const std::string& op = unit.op;
  const Node* origin = unit.origin == kNone ? nullptr : &graph.nodes[unit.origin];
  if (unit.role == Role::update) {
    if (unit.target != kNone) elementwise({0}, shape(made));  // scalars of the step run whole
    return;
  }
  if (unit.role == Role::accumulate || is_elementwise(op)) {
    // What is summed out (the gradient of a broadcast) is not among the tensor's axes, so it is not cut there.
    bool gradient = unit.role == Role::gradient && !work.reads.empty();
    const Shape& whole = shape(gradient ? largest(work.reads) : made);
    return elementwise(up_to(whole.size()), whole, gradient);
  }
  if (unit.role == Role::gradient && origin && is_contraction(*origin) && !work.reads.empty()) {  // of a bias
    const Shape& whole = shape(largest(work.reads));
    return elementwise(up_to(whole.size()), whole, true);
  }
  if (!origin || origin->inputs.empty() || origin->inputs[0] == kNone) return;
  const Shape& x = shape(origin->inputs[0]);
  if (op == "BatchNormalization") {
    elementwise({1}, x);
    bool fixed = unit.role == Role::forward && attribute(*origin, "training_mode", int64_t{0}) == 0;
    size_t first = found.size();
    std::vector<size_t> others = up_to(x.size());
    others.erase(others.begin() + std::min<long>(1, static_cast<long>(others.size())));
    elementwise(others, x, true);
    for (size_t i = first; i < found.size(); ++i)
      found[i].exchanged = fixed ? found[i].exchanged : std::max(found[i].exchanged, 2 * x[1]);
    return;
  }
  if (op == "InstanceNormalization" || op.find("GlobalAveragePool") == 0 || op.find("GlobalMaxPool") == 0)
    return elementwise({0, 1}, x);
  if (op == "GroupNormalization") return elementwise({0}, x);
  if (op == "Softmax" || op == "LogSoftmax" || op == "LayerNormalization" || op == "RMSNormalization") {
    int64_t at = attribute(*origin, "axis", int64_t{-1});
    if (at < 0) at += static_cast<int64_t>(x.size());
    return elementwise(up_to(static_cast<size_t>(std::max<int64_t>(at, 0))), x, unit.role == Role::gradient);
  }
  if (op == "MaxPool" || op == "AveragePool" || op == "LpPool") {
    elementwise({0, 1}, x);
    const Shape& y = shape(origin->outputs[0]);
    if (unit.role != Role::forward || x.size() < 4) return;
    auto entry = [&](const char* name, int64_t otherwise) {
      std::vector<int64_t> list = attribute(*origin, name, std::vector<int64_t>{});
      return list.empty() ? otherwise : list[0];
    };
    SliceAxis a = axis(SliceAxis::Kind::rows, y[2], "OY");
    int64_t pad = entry("pads", 0), reach = entry("dilations", 1) * (entry("kernel_shape", 1) - 1);
    for (size_t i = 0; i < work.reads.size(); ++i)
      if (shape(work.reads[i]) == x)
        a.reads[i] = {2, x[2], std::max<int64_t>(entry("strides", 1), 1), 1, pad, std::max<int64_t>(reach - pad, 0)};
    for (size_t i = 0; i < work.writes.size(); ++i)
      if (shape(work.writes[i]) == y) a.writes[i] = {2, y[2]};
    return add(std::move(a));
  }
  if (op == "Transpose") {
    std::vector<int64_t> perm = attribute(*origin, "perm", std::vector<int64_t>{});
    if (!perm.empty() && perm[0] == 0) return elementwise({0}, shape(made));
  }
  if (op == "Concat" || op == "Split" || op == "Slice" || op == "Pad" || op == "Gather" || op == "Resize") {
    // Along the batch, where the operator leaves it alone: all large tensors then have the same first axis.
    const Shape& whole = unit.role == Role::forward ? shape(made) : x;
    int64_t n = whole.empty() ? 1 : whole[0];
    bool untouched = op != "Pad" && op != "Slice" && !whole.empty() && x.size() > 1 &&
                     (op == "Gather" ? false : attribute(*origin, "axis", int64_t{1}) != 0);
    for (TensorId t : work.writes) untouched = untouched && !shape(t).empty() && shape(t)[0] == n;
    if (!untouched) return;
    SliceAxis a = axis(SliceAxis::Kind::batch, n, "");
    for (size_t i = 0; i < work.reads.size(); ++i)
      if (!shape(work.reads[i]).empty() && shape(work.reads[i])[0] == n && shape(work.reads[i]).size() > 1)
        a.reads[i] = {0, n};
    for (AxisUse& use : a.writes) use = {0, n};
    add(std::move(a));
  }
}

}  // namespace

Range AxisUse::range(Range positions) const {
  if (axis == kNone) return {0, size};
  Range r{positions.begin * stride / divide - before, (positions.end - 1) * stride / divide + 1 + after};
  return {std::clamp<int64_t>(r.begin, 0, size), std::clamp<int64_t>(r.end, 0, size)};
}

const char* name(SliceAxis::Kind kind) {
  constexpr const char* kNames[] = {"batch", "channels", "rows", "inputs"};
  return kNames[static_cast<size_t>(kind)];
}

Range slice(int64_t size, int64_t parts, int64_t index) {
  int64_t each = size / parts, more = size % parts;
  int64_t begin = index * each + std::min(index, more);
  return {begin, begin + each + (index < more ? 1 : 0)};
}

std::vector<SliceAxis> slice_axes(const Graph& graph, const std::vector<TensorId>& storage, const Unit& unit,
                                  const Work& work) {
  Slicer slicer{graph, storage, unit, work, {}};
  if (work.view) return {};
  if (unit.contraction != kNone) {
    slicer.contraction();
  } else {
    slicer.other();
  }
  return std::move(slicer.found);
}

std::vector<char> second_operands(const Graph& graph, const std::vector<TensorId>& storage, const Unit& unit,
                                  const Work& work) {
  std::vector<char> second(work.reads.size(), 0);
  if (unit.contraction == kNone) return second;
  bool from_origin = unit.origin != kNone && is_contraction(graph.nodes[unit.origin]);
  const Node& node = graph.nodes[from_origin ? unit.origin : unit.contraction];
  if (node.inputs.size() < 2 || node.inputs[0] == kNone || node.inputs[1] == kNone || node.outputs.empty())
    return second;
  Operand wanted = unit.role == Role::weight_gradient ? Operand::result : Operand::second;
  for (size_t i = 0; i < second.size(); ++i) second[i] = operand_of(graph, storage, node, work.reads[i]) == wanted;
  return second;
}

}  // namespace monet
