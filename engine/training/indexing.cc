// Gradients of operators that read or write elements by index. What was read several times adds up: always by
// ScatterElements, since ONNX Runtime's ScatterND races when it adds at equal indices.
#include <optional>

#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

// Zeros of `shape`, to which the updates are added at their indices along the axis.
TensorId scatter_add(Builder& b, const Shape& shape, TensorId indices, TensorId updates, int64_t axis) {
  return b.emit("ScatterElements", {b.filled(shape, 0, b.dtype(updates)), indices, updates}, shape,
                {{"axis", axis}, {"reduction", std::string("add")}});
}

// The same with whole slices: one index per position along the axis of `updates`.
TensorId scatter_slices(Builder& b, const Shape& shape, TensorId indices, TensorId updates, int64_t axis) {
  Shape line(shape.size(), 1), slices = b.shape(updates);
  line[axis] = slices[axis];
  return scatter_add(b, shape, b.expand(b.reshape(indices, line), slices), updates, axis);
}

// The axis counted from the front; refuses and returns nothing when the input has no such axis.
std::optional<int64_t> axis_of(Backward& g, int64_t otherwise) {
  int64_t rank = static_cast<int64_t>(g.shape(g.input(0)).size()), axis = attribute(g.node, "axis", otherwise);
  if (axis < 0) axis += rank;
  if (axis >= 0 && axis < rank) return axis;
  g.refuse("its axis lies outside its input", "check the model");
  return std::nullopt;
}

}  // namespace

// Each slice's gradient added to where the slice came from; one known slice by padding.
void gather_gradient(Backward& g) {
  Builder& b = g.b;
  Shape x = g.shape(g.input(0)), slices = x;
  std::optional<int64_t> found = axis_of(g, 0);
  if (!found) return;
  int64_t axis = *found;
  TensorId indices = g.input(1);
  slices[axis] = elements(g.shape(indices));
  TensorId dy = b.reshape(g.gradient(), slices);
  std::vector<int64_t> known = integers(g.tensor(indices));
  if (known.size() != 1) return g.give(0, scatter_slices(b, x, indices, dy, axis));
  std::vector<int64_t> pads(2 * x.size(), 0);
  int64_t at = known[0] < 0 ? known[0] + x[axis] : known[0];
  pads[axis] = at;
  pads[x.size() + axis] = x[axis] - 1 - at;
  g.give(0, x[axis] == 1 ? dy : b.emit("Pad", {dy, b.ints(pads)}, x));
}

void gather_elements_gradient(Backward& g) {
  std::optional<int64_t> axis = axis_of(g, 0);
  if (axis) g.give(0, scatter_add(g.b, g.shape(g.input(0)), g.input(1), g.gradient(), *axis));
}

namespace {

bool fits(const Shape& data, const Shape& tuples, int64_t batch_dims) {
  int64_t rank = static_cast<int64_t>(data.size());
  return !tuples.empty() && batch_dims >= 0 && batch_dims < static_cast<int64_t>(tuples.size()) && tuples.back() >= 1 &&
         tuples.back() <= rank - batch_dims;
}

void refuse_indices(Backward& g) { g.refuse("its indices or updates do not fit its data", "check the model"); }

// An operator that addresses slices by tuples of indices, as one that addresses rows of a matrix: the tensor is
// [rows, row_size], `indices` the row numbers, [count, row_size].
struct Rows {
  Shape matrix, slices;
  TensorId indices;
};

// The tuples must fit the data.
Rows rows(Builder& b, const Shape& data, TensorId tuples, int64_t batch_dims) {
  Shape shape = b.shape(tuples);
  size_t length = static_cast<size_t>(shape.back());
  shape.pop_back();
  std::vector<int64_t> sizes, strides(length, 1);
  int64_t per_batch = 1, batches = 1, row_size = 1;
  for (size_t i = length; i-- > 0;) {
    sizes.insert(sizes.begin(), data[batch_dims + i]);
    strides[i] = per_batch;
    per_batch *= data[batch_dims + i];
  }
  for (int64_t i = 0; i < batch_dims; ++i) batches *= data[i];
  for (size_t i = batch_dims + length; i < data.size(); ++i) row_size *= data[i];

  // Mod brings negative indices, which count from the end, to their place.
  TensorId places = b.binary("Mod", b.cast(tuples, DType::int64), b.ints(sizes));
  TensorId row = b.reduce("ReduceSum", b.mul(places, b.ints(strides)), {static_cast<int64_t>(shape.size())}, false);
  if (batches > 1) {
    Shape by_batch(shape.size(), 1);
    for (int64_t i = 0; i < batch_dims; ++i) by_batch[i] = data[i];
    TensorId first =
        b.emit("Range",
               {b.scalar(0, DType::int64), b.scalar(static_cast<double>(batches * per_batch), DType::int64),
                b.scalar(static_cast<double>(per_batch), DType::int64)},
               {batches});
    row = b.add(row, b.reshape(first, by_batch));
  }
  Rows result;
  result.matrix = {batches * per_batch, row_size};
  result.slices = {elements(shape), row_size};
  result.indices = b.expand(b.reshape(row, {elements(shape), 1}), result.slices);
  return result;
}

}  // namespace

void gather_nd_gradient(Backward& g) {
  Builder& b = g.b;
  Shape x = g.shape(g.input(0));
  int64_t batch_dims = attribute(g.node, "batch_dims", int64_t{0});
  if (!fits(x, g.shape(g.input(1)), batch_dims)) return refuse_indices(g);
  if (elements(x) == 0 || elements(g.shape(g.gradient())) == 0) return g.give(0, b.filled(x, 0, b.dtype(g.gradient())));
  Rows r = rows(b, x, g.input(1), batch_dims);
  g.give(0, b.reshape(scatter_add(b, r.matrix, r.indices, b.reshape(g.gradient(), r.slices), 0), x));
}

namespace {

// A scatter with everything of one rank: Y = data, with updates combined in at the indices along the axis.
struct Scatter {
  TensorId data, indices, updates, y, dy;
  int64_t axis;
};

TensorId scattered(Builder& b, const Scatter& s, TensorId into, TensorId updates, const char* reduction) {
  return b.emit("ScatterElements", {into, s.indices, updates}, b.shape(into),
                {{"axis", s.axis}, {"reduction", std::string(reduction)}});
}

TensorId gathered(Builder& b, const Scatter& s, TensorId from) {
  return b.emit("GatherElements", {from, s.indices}, b.shape(s.updates), {{"axis", s.axis}});
}

struct ScatterGradients {
  TensorId data, updates;
};

// Each product's gradient is the product of the other factors: as for ReduceProd, with zeros counted and replaced by 1.
ScatterGradients scatter_mul_gradients(Builder& b, const Scatter& s) {
  DType type = b.dtype(s.data);
  TensorId zero = b.scalar(0, type), one = b.scalar(1, type);
  TensorId data_is_zero = b.compare("Equal", s.data, zero), update_is_zero = b.compare("Equal", s.updates, zero);
  TensorId data_factor = b.where(data_is_zero, one, s.data), update_factor = b.where(update_is_zero, one, s.updates);
  TensorId data_zero = b.cast(data_is_zero, type), update_zero = b.cast(update_is_zero, type);
  TensorId zeros = scattered(b, s, data_zero, update_zero, "add");
  TensorId product = b.mul(s.dy, scattered(b, s, data_factor, update_factor, "mul"));
  TensorId others_of_data = b.greater(b.sub(zeros, data_zero), zero);
  TensorId others_of_update = b.greater(b.sub(gathered(b, s, zeros), update_zero), zero);
  return {b.clear_where(others_of_data, b.div(product, data_factor)),
          b.clear_where(others_of_update, b.div(gathered(b, s, product), update_factor))};
}

// In equal parts to all that are the extremum, as PyTorch's scatter_reduce.
ScatterGradients scatter_extremum_gradients(Builder& b, const Scatter& s) {
  DType type = b.dtype(s.data);
  TensorId data_chosen = b.compare("Equal", s.data, s.y);
  TensorId update_chosen = b.compare("Equal", s.updates, gathered(b, s, s.y));
  TensorId ties = scattered(b, s, b.cast(data_chosen, type), b.cast(update_chosen, type), "add");
  // Where nothing was scattered to, data alone is the extremum: never 0.
  TensorId share = b.div(s.dy, ties);
  return {b.keep_where(data_chosen, share), b.keep_where(update_chosen, gathered(b, s, share))};
}

ScatterGradients combined_gradients(Builder& b, const Scatter& s, const std::string& reduction) {
  return reduction == "mul" ? scatter_mul_gradients(b, s) : scatter_extremum_gradients(b, s);
}

void give_wanted(Backward& g, const ScatterGradients& gradients) {
  if (g.wants(0)) g.give(0, g.b.reshape(gradients.data, g.shape(g.input(0))));
  if (g.wants(2)) g.give(2, g.b.reshape(gradients.updates, g.shape(g.input(2))));
}

}  // namespace

// Overwritten elements have no gradient; written ones have that of their place. (Indices that occur twice are not
// allowed without a reduction.)
void scatter_elements_gradient(Backward& g) {
  Builder& b = g.b;
  std::optional<int64_t> axis = axis_of(g, 0);
  if (!axis) return;
  if (g.shape(g.input(1)) != g.shape(g.input(2)) || g.shape(g.input(1)).size() != g.shape(g.input(0)).size())
    return refuse_indices(g);
  Scatter s{g.input(0), g.input(1), g.input(2), g.output(0), g.gradient(), *axis};
  std::string reduction = attribute(g.node, "reduction", "none");
  if (reduction != "none" && reduction != "add") return give_wanted(g, combined_gradients(b, s, reduction));
  if (g.wants(0)) {
    TensorId zeros = reduction == "none" ? b.filled(b.shape(s.updates), 0, b.dtype(s.dy)) : kNone;
    g.give(0, reduction == "none" ? scattered(b, s, s.dy, zeros, "none") : s.dy);
  }
  if (g.wants(2)) g.give(2, gathered(b, s, s.dy));
}

void scatter_nd_gradient(Backward& g) {
  Builder& b = g.b;
  TensorId dy = g.gradient();
  Shape x = g.shape(g.input(0)), updates = g.shape(g.input(2));
  std::string reduction = attribute(g.node, "reduction", "none");
  Shape tuples = g.shape(g.input(1));
  if (!fits(x, tuples, 0)) return refuse_indices(g);
  Shape slices(tuples.begin(), tuples.end() - 1);
  slices.insert(slices.end(), x.begin() + tuples.back(), x.end());
  if (slices != updates) return refuse_indices(g);
  if (reduction != "none" && reduction != "add" && elements(x) > 0 && elements(updates) > 0) {
    Rows r = rows(b, x, g.input(1), 0);
    auto matrix = [&](TensorId t) { return b.reshape(t, r.matrix); };
    Scatter s{matrix(g.input(0)),  r.indices,  b.reshape(g.input(2), r.slices),
              matrix(g.output(0)), matrix(dy), /*axis=*/0};
    return give_wanted(g, combined_gradients(b, s, reduction));
  }
  if (g.wants(0)) {
    bool overwritten = reduction == "none";
    g.give(0, overwritten ? b.emit("ScatterND", {dy, g.input(1), b.filled(updates, 0, b.dtype(dy))}, x) : dy);
  }
  if (g.wants(2)) g.give(2, b.emit("GatherND", {dy, g.input(1)}, updates));
}

// The chosen slices' gradients back to their places; without an axis the input counts as flat.
void compress_gradient(Backward& g) {
  Builder& b = g.b;
  Shape x = g.shape(g.input(0)), from = x;
  int64_t axis = 0;
  if (find_attribute(g.node, "axis")) {
    std::optional<int64_t> given = axis_of(g, 0);
    if (!given) return;
    axis = *given;
  } else {
    from = {elements(x)};
  }
  std::vector<int64_t> chosen;
  std::string condition = g.tensor(g.input(1)).data;
  for (size_t i = 0; i < condition.size(); ++i)
    if (condition[i] && static_cast<int64_t>(i) < from[axis]) chosen.push_back(static_cast<int64_t>(i));
  if (static_cast<int64_t>(chosen.size()) != g.shape(g.gradient())[axis])
    return g.refuse("its condition is not a constant", "export the model with a fixed condition");
  g.give(0, b.reshape(scatter_slices(b, from, b.ints(chosen), g.gradient(), axis), x));
}

void top_k_gradient(Backward& g) {
  std::optional<int64_t> axis = axis_of(g, -1);
  if (!axis) return;
  TensorId indices = g.saved_output(1, DType::int64, g.shape(g.output(0)));
  g.give(0, scatter_add(g.b, g.shape(g.input(0)), indices, g.gradient(), *axis));
}

// Y = off + (on - off) * hot: sums of dY where hot is 1 and where it is 0.
void one_hot_gradient(Backward& g) {
  Builder& b = g.b;
  TensorId dy = g.gradient();
  DType type = b.dtype(dy);
  Shape y = g.shape(dy);
  std::vector<Attribute> attributes = g.node.attributes;
  TensorId hot = b.emit_as(type, "OneHot", {g.input(0), g.input(1), b.floats({0, 1}, {2}, type)}, y, attributes);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < y.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  TensorId all = b.reshape(b.reduce("ReduceSum", dy, axes, false), {1});
  TensorId on = b.reshape(b.reduce("ReduceSum", b.mul(dy, hot), axes, false), {1});
  g.give(2, b.emit("Concat", {b.sub(all, on), on}, {2}, {{"axis", int64_t{0}}}));
}

}  // namespace monet
