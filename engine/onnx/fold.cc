#include "engine/onnx/fold.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace monet {

namespace {

using ::onnx::NodeProto;
using Inputs = std::vector<const Value*>;
using Result = std::optional<std::vector<Value>>;
using Rule = Result (*)(const NodeProto&, const Inputs&);

int64_t int_attribute(const NodeProto& n, const char* name, int64_t otherwise) {
  const auto* a = find_attribute(n, name);
  return a ? a->i() : otherwise;
}

Result one(Value v) {
  std::vector<Value> all;
  all.push_back(std::move(v));
  return all;
}

// An empty value of the shape, ready to be filled; nothing when it would be too large.
std::optional<Value> make(DType dtype, const Shape& shape) {
  Value v;
  v.dtype = dtype;
  v.shape = shape;
  if (std::any_of(shape.begin(), shape.end(), [](int64_t d) { return d < 0; }) || v.size() > kMaxFolded)
    return std::nullopt;
  if (v.floating()) {
    v.floats.resize(static_cast<size_t>(v.size()));
  } else {
    v.ints.resize(static_cast<size_t>(v.size()));
  }
  return v;
}

void copy(const Value& from, int64_t i, Value& to, int64_t j) {
  if (from.floating()) {
    to.floats[j] = from.floats[i];
  } else {
    to.ints[j] = from.ints[i];
  }
}

bool axis_of(int64_t axis, size_t rank, size_t& result) {
  if (axis < 0) axis += static_cast<int64_t>(rank);
  if (axis < 0 || axis >= static_cast<int64_t>(rank)) return false;
  result = static_cast<size_t>(axis);
  return true;
}

std::vector<int64_t> strides_of(const Shape& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

// Calls f(flat index, coordinates) for every element of a shape.
template <typename F>
void for_each_element(const Shape& shape, F f) {
  int64_t count = elements(shape);
  std::vector<int64_t> at(shape.size(), 0);
  for (int64_t flat = 0; flat < count; ++flat) {
    f(flat, at);
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (++at[axis] < shape[axis]) break;
      at[axis] = 0;
    }
  }
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape shape(std::max(a.size(), b.size()), 1);
  for (size_t i = 0; i < shape.size(); ++i) {
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1, y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    shape[shape.size() - 1 - i] = x == 1 ? y : x;
  }
  return shape;
}

// Index into `v` of the element that stands at `at` of the shape it is broadcast to.
int64_t broadcast_index(const Value& v, const std::vector<int64_t>& at) {
  int64_t index = 0;
  size_t shift = at.size() - v.shape.size();
  for (size_t i = 0; i < v.shape.size(); ++i) index = index * v.shape[i] + (v.shape[i] == 1 ? 0 : at[i + shift]);
  return index;
}

// ---- elementwise -------------------------------------------------------------------------------------------------

using IntPair = std::optional<int64_t> (*)(int64_t, int64_t);
using FloatPair = double (*)(double, double);

int64_t as_signed(uint64_t v) { return static_cast<int64_t>(v); }
uint64_t as_unsigned(int64_t v) { return static_cast<uint64_t>(v); }

std::optional<int64_t> add_i(int64_t a, int64_t b) { return as_signed(as_unsigned(a) + as_unsigned(b)); }
std::optional<int64_t> sub_i(int64_t a, int64_t b) { return as_signed(as_unsigned(a) - as_unsigned(b)); }
std::optional<int64_t> mul_i(int64_t a, int64_t b) { return as_signed(as_unsigned(a) * as_unsigned(b)); }
bool overflows(int64_t a, int64_t b) { return b == 0 || (a == std::numeric_limits<int64_t>::min() && b == -1); }
std::optional<int64_t> div_i(int64_t a, int64_t b) { return overflows(a, b) ? std::nullopt : std::optional(a / b); }
std::optional<int64_t> min_i(int64_t a, int64_t b) { return std::min(a, b); }
std::optional<int64_t> max_i(int64_t a, int64_t b) { return std::max(a, b); }
std::optional<int64_t> and_i(int64_t a, int64_t b) { return a && b; }
std::optional<int64_t> or_i(int64_t a, int64_t b) { return a || b; }
std::optional<int64_t> xor_i(int64_t a, int64_t b) { return (a != 0) != (b != 0); }
std::optional<int64_t> mod_i(int64_t a, int64_t b) {  // sign of the divisor, as Python
  if (overflows(a, b)) return std::nullopt;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
std::optional<int64_t> fmod_i(int64_t a, int64_t b) {  // sign of the dividend, as C
  if (overflows(a, b)) return std::nullopt;
  return a % b;
}
double add_f(double a, double b) { return a + b; }
double sub_f(double a, double b) { return a - b; }
double mul_f(double a, double b) { return a * b; }
double div_f(double a, double b) { return a / b; }
double min_f(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double max_f(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double fmod_f(double a, double b) { return std::fmod(a, b); }

Result pairwise(const Value& a, const Value& b, IntPair ints, FloatPair floats) {
  if (a.dtype != b.dtype || a.dtype == DType::uint64 || !(a.floating() ? floats != nullptr : ints != nullptr))
    return {};
  auto shape = broadcast(a.shape, b.shape);
  auto out = shape ? make(a.dtype, *shape) : std::nullopt;
  if (!out) return {};
  bool good = true;
  for_each_element(out->shape, [&](int64_t i, const std::vector<int64_t>& at) {
    int64_t x = broadcast_index(a, at), y = broadcast_index(b, at);
    if (a.floating()) {
      out->floats[i] = round_to(floats(a.floats[x], b.floats[y]), a.dtype);
    } else if (auto r = ints(a.ints[x], b.ints[y])) {
      out->ints[i] = wrap(*r, a.dtype);
    } else {
      good = false;
    }
  });
  return good ? one(std::move(*out)) : Result{};
}

template <IntPair ints, FloatPair floats>
Result binary(const NodeProto&, const Inputs& in) {
  return pairwise(*in[0], *in[1], ints, floats);
}

template <IntPair ints, FloatPair floats>
Result variadic(const NodeProto&, const Inputs& in) {
  Value all = *in[0];
  for (size_t i = 1; i < in.size(); ++i) {
    Result next = pairwise(all, *in[i], ints, floats);
    if (!next) return {};
    all = std::move(next->front());
  }
  return one(std::move(all));
}

Result mod(const NodeProto& n, const Inputs& in) {
  bool c_style = int_attribute(n, "fmod", 0) != 0;
  return pairwise(*in[0], *in[1], c_style ? fmod_i : mod_i, c_style ? fmod_f : nullptr);
}

// Exact cases only: squares and square roots.
Result pow(const NodeProto&, const Inputs& in) {
  const Value &base = *in[0], &exponent = *in[1];
  if (exponent.size() != 1 || base.dtype == DType::uint64 || exponent.shape.size() > base.shape.size()) return {};
  double e = exponent.floating() ? exponent.floats[0] : static_cast<double>(exponent.ints[0]);
  Value out = base;
  if (e == 2) {
    for (double& f : out.floats) f = round_to(f * f, out.dtype);
    for (int64_t& i : out.ints) i = wrap(*mul_i(i, i), out.dtype);
  } else if (e == 0.5 && out.floating()) {
    for (double& f : out.floats) f = round_to(std::sqrt(f), out.dtype);
  } else if (e != 1) {
    return {};
  }
  return one(std::move(out));
}

template <int (*decide)(int)>  // of the sign of a - b
Result compare(const NodeProto&, const Inputs& in) {
  const Value &a = *in[0], &b = *in[1];
  if (a.dtype != b.dtype || a.dtype == DType::uint64) return {};
  auto shape = broadcast(a.shape, b.shape);
  auto out = shape ? make(DType::boolean, *shape) : std::nullopt;
  if (!out) return {};
  bool good = true;
  for_each_element(out->shape, [&](int64_t i, const std::vector<int64_t>& at) {
    int64_t x = broadcast_index(a, at), y = broadcast_index(b, at);
    int sign;
    if (a.floating()) {
      good = good && !std::isnan(a.floats[x]) && !std::isnan(b.floats[y]);
      sign = (a.floats[x] > b.floats[y]) - (a.floats[x] < b.floats[y]);
    } else {
      sign = (a.ints[x] > b.ints[y]) - (a.ints[x] < b.ints[y]);
    }
    out->ints[i] = decide(sign);
  });
  return good ? one(std::move(*out)) : Result{};
}
int equal(int sign) { return sign == 0; }
int less(int sign) { return sign < 0; }
int less_or_equal(int sign) { return sign <= 0; }
int greater(int sign) { return sign > 0; }
int greater_or_equal(int sign) { return sign >= 0; }

template <int64_t (*ints)(int64_t), double (*floats)(double)>
Result unary(const NodeProto&, const Inputs& in) {
  Value out = *in[0];
  if (out.dtype == DType::uint64) return {};
  for (int64_t& i : out.ints) i = wrap(ints(i), out.dtype);
  for (double& f : out.floats) f = round_to(floats(f), out.dtype);
  return one(std::move(out));
}
int64_t same_i(int64_t v) { return v; }
int64_t neg_i(int64_t v) { return *sub_i(0, v); }
int64_t abs_i(int64_t v) { return v < 0 ? neg_i(v) : v; }
int64_t sign_i(int64_t v) { return (v > 0) - (v < 0); }
double neg_f(double v) { return -v; }
double abs_f(double v) { return std::fabs(v); }
double floor_f(double v) { return std::floor(v); }
double ceil_f(double v) { return std::ceil(v); }
double round_f(double v) { return std::nearbyint(v); }
double sqrt_f(double v) { return std::sqrt(v); }
double reciprocal_f(double v) { return 1 / v; }
double sign_f(double v) { return (v > 0) - (v < 0); }

Result negate(const NodeProto&, const Inputs& in) {
  Value out = *in[0];
  for (int64_t& i : out.ints) i = !i;
  return out.dtype == DType::boolean ? one(std::move(out)) : Result{};
}

Result identity(const NodeProto&, const Inputs& in) { return one(*in[0]); }

std::optional<Value> cast_to(const Value& from, DType to) {
  if (!foldable(to)) return std::nullopt;
  auto out = make(to, from.shape);
  if (!out) return std::nullopt;
  for (int64_t i = 0; i < from.size(); ++i) {
    if (out->floating()) {
      if (from.dtype == DType::uint64 && from.ints[i] < 0) return std::nullopt;
      out->floats[i] = round_to(from.floating() ? from.floats[i] : static_cast<double>(from.ints[i]), to);
    } else if (!from.floating()) {
      out->ints[i] = wrap(from.ints[i], to);
    } else if (to == DType::boolean) {
      out->ints[i] = from.floats[i] != 0;
    } else {
      constexpr double kLimit = 9.2e18;  // inside int64
      if (!(std::fabs(from.floats[i]) < kLimit)) return std::nullopt;
      out->ints[i] = wrap(static_cast<int64_t>(from.floats[i]), to);
    }
  }
  return out;
}

Result cast(const NodeProto& n, const Inputs& in) {
  auto out = cast_to(*in[0], dtype_of(static_cast<int32_t>(int_attribute(n, "to", 0))));
  return out ? one(std::move(*out)) : Result{};
}

Result cast_like(const NodeProto&, const Inputs& in) {
  auto out = cast_to(*in[0], in[1]->dtype);
  return out ? one(std::move(*out)) : Result{};
}

Result where(const NodeProto&, const Inputs& in) {
  const Value &condition = *in[0], &yes = *in[1], &no = *in[2];
  if (yes.dtype != no.dtype || condition.floating()) return {};
  auto both = broadcast(yes.shape, no.shape);
  auto shape = both ? broadcast(*both, condition.shape) : std::nullopt;
  auto out = shape ? make(yes.dtype, *shape) : std::nullopt;
  if (!out) return {};
  for_each_element(out->shape, [&](int64_t i, const std::vector<int64_t>& at) {
    const Value& chosen = condition.ints[broadcast_index(condition, at)] ? yes : no;
    copy(chosen, broadcast_index(chosen, at), *out, i);
  });
  return one(std::move(*out));
}

// ---- making ------------------------------------------------------------------------------------------------------

Result constant(const NodeProto& n, const Inputs&) {
  if (n.attribute_size() != 1) return {};
  const auto& a = n.attribute(0);
  Value v;
  if (a.name() == "value" && a.has_t()) {
    auto decoded = decode(a.t());
    return decoded ? one(std::move(*decoded)) : Result{};
  }
  if (a.name() == "value_int") {
    v.ints = {a.i()};
  } else if (a.name() == "value_ints") {
    v.ints.assign(a.ints().begin(), a.ints().end());
    v.shape = {a.ints_size()};
  } else if (a.name() == "value_float") {
    v.dtype = DType::float32;
    v.floats = {a.f()};
  } else if (a.name() == "value_floats") {
    v.dtype = DType::float32;
    v.floats.assign(a.floats().begin(), a.floats().end());
    v.shape = {a.floats_size()};
  } else {
    return {};
  }
  return v.size() <= kMaxFolded ? one(std::move(v)) : Result{};
}

Result constant_of_shape(const NodeProto& n, const Inputs& in) {
  std::optional<Value> fill;
  if (const auto* a = find_attribute(n, "value")) {
    fill = decode(a->t());
    if (!fill || fill->size() != 1) return {};
  } else {
    fill = make(DType::float32, {1});
  }
  if (in[0]->floating()) return {};
  auto out = make(fill->dtype, in[0]->ints);
  if (!out) return {};
  for (int64_t i = 0; i < out->size(); ++i) copy(*fill, 0, *out, i);
  return one(std::move(*out));
}

Result range(const NodeProto&, const Inputs& in) {
  const Value &start = *in[0], &limit = *in[1], &delta = *in[2];
  if (start.size() != 1 || limit.size() != 1 || delta.size() != 1) return {};
  if (start.dtype != limit.dtype || start.dtype != delta.dtype || start.dtype == DType::uint64) return {};
  auto at = [](const Value& v) { return v.floating() ? v.floats[0] : static_cast<double>(v.ints[0]); };
  double count = std::ceil((at(limit) - at(start)) / at(delta));
  if (!(count <= static_cast<double>(kMaxFolded))) return {};
  auto out = make(start.dtype, {std::max<int64_t>(0, static_cast<int64_t>(std::max(count, 0.0)))});
  if (!out) return {};
  for (int64_t i = 0; i < out->size(); ++i) {
    if (out->floating()) {
      out->floats[i] = round_to(start.floats[0] + static_cast<double>(i) * delta.floats[0], out->dtype);
    } else {
      out->ints[i] = wrap(*add_i(start.ints[0], *mul_i(i, delta.ints[0])), out->dtype);
    }
  }
  return one(std::move(*out));
}

// ---- moving ------------------------------------------------------------------------------------------------------

Result with_shape(const Value& v, Shape shape) {
  if (elements(shape) != v.size()) return {};
  Value out = v;
  out.shape = std::move(shape);
  return one(std::move(out));
}

Result reshape(const NodeProto& n, const Inputs& in) {
  const Value& v = *in[0];
  if (in[1]->floating()) return {};
  Shape shape = in[1]->ints;
  bool zero_is_zero = int_attribute(n, "allowzero", 0) != 0;
  int64_t known = 1, open = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0 && !zero_is_zero) {
      if (i >= v.shape.size()) return {};
      shape[i] = v.shape[i];
    }
    if (shape[i] == -1) {
      if (open >= 0) return {};
      open = static_cast<int64_t>(i);
    } else if (shape[i] < 0 || shape[i] > kMaxFolded) {
      return {};
    } else {
      known = std::min(known * shape[i], kMaxFolded + 1);
    }
  }
  if (open >= 0) {
    if (known == 0 || v.size() % known) return {};
    shape[open] = v.size() / known;
  }
  return with_shape(v, std::move(shape));
}

Result flatten(const NodeProto& n, const Inputs& in) {
  const Value& v = *in[0];
  int64_t axis = int_attribute(n, "axis", 1), rank = static_cast<int64_t>(v.shape.size());
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank) return {};
  Shape head(v.shape.begin(), v.shape.begin() + axis), tail(v.shape.begin() + axis, v.shape.end());
  return with_shape(v, {elements(head), elements(tail)});
}

Result squeeze(const NodeProto&, const Inputs& in) {
  const Value& v = *in[0];
  std::vector<bool> gone(v.shape.size(), false);
  if (in.size() > 1 && in[1]) {
    for (int64_t a : in[1]->ints) {
      size_t axis;
      if (!axis_of(a, v.shape.size(), axis) || v.shape[axis] != 1) return {};
      gone[axis] = true;
    }
  } else {
    for (size_t i = 0; i < gone.size(); ++i) gone[i] = v.shape[i] == 1;
  }
  Shape shape;
  for (size_t i = 0; i < gone.size(); ++i)
    if (!gone[i]) shape.push_back(v.shape[i]);
  return with_shape(v, std::move(shape));
}

Result unsqueeze(const NodeProto&, const Inputs& in) {
  const Value &v = *in[0], &axes = *in[1];
  std::vector<bool> fresh(v.shape.size() + axes.ints.size(), false);
  for (int64_t a : axes.ints) {
    size_t axis;
    if (!axis_of(a, fresh.size(), axis) || fresh[axis]) return {};
    fresh[axis] = true;
  }
  Shape shape;
  size_t next = 0;
  for (bool f : fresh) shape.push_back(f ? 1 : v.shape[next++]);
  return with_shape(v, std::move(shape));
}

Result concat(const NodeProto& n, const Inputs& in) {
  size_t axis;
  if (in[0]->shape.empty() || !axis_of(int_attribute(n, "axis", 0), in[0]->shape.size(), axis)) return {};
  Shape shape = in[0]->shape;
  shape[axis] = 0;
  for (const Value* v : in) {
    if (v->dtype != in[0]->dtype || v->shape.size() != shape.size()) return {};
    for (size_t i = 0; i < shape.size(); ++i)
      if (i != axis && v->shape[i] != shape[i]) return {};
    shape[axis] += v->shape[axis];
  }
  auto out = make(in[0]->dtype, shape);
  if (!out) return {};
  int64_t start = 0;
  std::vector<int64_t> strides = strides_of(shape);
  for (const Value* v : in) {
    for_each_element(v->shape, [&](int64_t i, const std::vector<int64_t>& at) {
      int64_t to = start * strides[axis];
      for (size_t d = 0; d < at.size(); ++d) to += at[d] * strides[d];
      copy(*v, i, *out, to);
    });
    start += v->shape[axis];
  }
  return one(std::move(*out));
}

Result gather(const NodeProto& n, const Inputs& in) {
  const Value &v = *in[0], &indices = *in[1];
  size_t axis;
  if (indices.floating() || !axis_of(int_attribute(n, "axis", 0), v.shape.size(), axis)) return {};
  Shape shape(v.shape.begin(), v.shape.begin() + static_cast<std::ptrdiff_t>(axis));
  shape.insert(shape.end(), indices.shape.begin(), indices.shape.end());
  shape.insert(shape.end(), v.shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, v.shape.end());
  auto out = make(v.dtype, shape);
  if (!out) return {};
  int64_t inner = strides_of(v.shape)[axis], count = indices.size(), extent = v.shape[axis];
  for (int64_t i : indices.ints)
    if (i < -extent || i >= extent) return {};
  for (int64_t i = 0; i < out->size(); ++i) {
    int64_t within = i % inner, which = i / inner % count, outer = i / inner / count;
    int64_t index = indices.ints[which] < 0 ? indices.ints[which] + extent : indices.ints[which];
    copy(v, (outer * extent + index) * inner + within, *out, i);
  }
  return one(std::move(*out));
}

Result slice(const NodeProto&, const Inputs& in) {
  const Value& v = *in[0];
  size_t rank = v.shape.size(), count = in[1]->ints.size();
  std::vector<int64_t> starts(rank, 0), steps(rank, 1);
  Shape shape = v.shape;
  bool has_axes = in.size() > 3 && in[3], has_steps = in.size() > 4 && in[4];
  if (in[2]->ints.size() != count || (has_axes && in[3]->ints.size() != count) ||
      (has_steps && in[4]->ints.size() != count))
    return {};
  for (size_t i = 0; i < count; ++i) {
    size_t axis;
    if (!axis_of(has_axes ? in[3]->ints[i] : static_cast<int64_t>(i), rank, axis)) return {};
    int64_t d = v.shape[axis], step = has_steps ? in[4]->ints[i] : 1, start = in[1]->ints[i], end = in[2]->ints[i];
    if (step == 0 || step == std::numeric_limits<int64_t>::min()) return {};
    if (start < 0) start = start < -d ? -1 : start + d;
    if (end < 0) end = end < -d ? -1 : end + d;
    bool up = step > 0;
    start = std::clamp<int64_t>(start, 0, up ? d : std::max<int64_t>(d - 1, 0));
    end = std::clamp<int64_t>(end, up ? 0 : -1, d);
    int64_t span = up ? end - start : start - end, stride = up ? step : -step;
    starts[axis] = start;
    steps[axis] = step;
    shape[axis] = span <= 0 ? 0 : (span - 1) / stride + 1;
    if (shape[axis] <= 1) steps[axis] = 0;  // a huge step must not overflow below
  }
  auto out = make(v.dtype, shape);
  if (!out) return {};
  std::vector<int64_t> strides = strides_of(v.shape);
  for_each_element(shape, [&](int64_t i, const std::vector<int64_t>& at) {
    int64_t from = 0;
    for (size_t d = 0; d < rank; ++d) from += (starts[d] + at[d] * steps[d]) * strides[d];
    copy(v, from, *out, i);
  });
  return one(std::move(*out));
}

Result split(const NodeProto& n, const Inputs& in) {
  const Value& v = *in[0];
  size_t axis, count = static_cast<size_t>(n.output_size());
  if (!axis_of(int_attribute(n, "axis", 0), v.shape.size(), axis)) return {};
  std::vector<int64_t> sizes;
  if (in.size() > 1 && in[1]) {
    sizes = in[1]->ints;
  } else {
    int64_t each = (v.shape[axis] + static_cast<int64_t>(count) - 1) / static_cast<int64_t>(count);
    for (size_t i = 0; i < count; ++i)
      sizes.push_back(std::clamp<int64_t>(v.shape[axis] - static_cast<int64_t>(i) * each, 0, each));
  }
  int64_t total = 0;
  for (int64_t s : sizes) {
    if (s < 0 || s > v.shape[axis]) return {};
    total += s;
  }
  if (sizes.size() != count || total != v.shape[axis]) return {};
  std::vector<Value> all;
  std::vector<int64_t> strides = strides_of(v.shape);
  int64_t start = 0;
  for (int64_t size : sizes) {
    Shape shape = v.shape;
    shape[axis] = size;
    auto part = make(v.dtype, shape);
    if (!part) return {};
    for_each_element(shape, [&](int64_t i, const std::vector<int64_t>& at) {
      int64_t from = start * strides[axis];
      for (size_t d = 0; d < at.size(); ++d) from += at[d] * strides[d];
      copy(v, from, *part, i);
    });
    start += size;
    all.push_back(std::move(*part));
  }
  return all;
}

Result expand(const NodeProto&, const Inputs& in) {
  const Value& v = *in[0];
  if (in[1]->floating()) return {};
  auto shape = broadcast(v.shape, in[1]->ints);
  auto out = shape ? make(v.dtype, *shape) : std::nullopt;
  if (!out) return {};
  for_each_element(out->shape,
                   [&](int64_t i, const std::vector<int64_t>& at) { copy(v, broadcast_index(v, at), *out, i); });
  return one(std::move(*out));
}

Result tile(const NodeProto&, const Inputs& in) {
  const Value& v = *in[0];
  if (in[1]->ints.size() != v.shape.size()) return {};
  Shape shape = v.shape;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (in[1]->ints[i] < 0 || in[1]->ints[i] > kMaxFolded) return {};
    shape[i] *= in[1]->ints[i];
  }
  auto out = make(v.dtype, shape);
  if (!out) return {};
  std::vector<int64_t> strides = strides_of(v.shape);
  for_each_element(shape, [&](int64_t i, const std::vector<int64_t>& at) {
    int64_t from = 0;
    for (size_t d = 0; d < at.size(); ++d) from += at[d] % v.shape[d] * strides[d];
    copy(v, from, *out, i);
  });
  return one(std::move(*out));
}

Result transpose(const NodeProto& n, const Inputs& in) {
  const Value& v = *in[0];
  std::vector<size_t> order(v.shape.size());
  const auto* a = find_attribute(n, "perm");
  if (a && a->ints_size() != static_cast<int>(order.size())) return {};
  std::vector<bool> used(order.size(), false);
  for (size_t i = 0; i < order.size(); ++i) {
    int64_t axis = a ? a->ints(static_cast<int>(i)) : static_cast<int64_t>(order.size() - 1 - i);
    if (axis < 0 || axis >= static_cast<int64_t>(order.size()) || used[axis]) return {};
    used[axis] = true;
    order[i] = static_cast<size_t>(axis);
  }
  Shape shape;
  for (size_t axis : order) shape.push_back(v.shape[axis]);
  auto out = make(v.dtype, shape);
  if (!out) return {};
  std::vector<int64_t> strides = strides_of(v.shape);
  for_each_element(shape, [&](int64_t i, const std::vector<int64_t>& at) {
    int64_t from = 0;
    for (size_t d = 0; d < at.size(); ++d) from += at[d] * strides[order[d]];
    copy(v, from, *out, i);
  });
  return one(std::move(*out));
}

Result nonzero(const NodeProto&, const Inputs& in) {
  const Value& v = *in[0];
  std::vector<std::vector<int64_t>> found;
  for_each_element(v.shape, [&](int64_t i, const std::vector<int64_t>& at) {
    if (v.floating() ? v.floats[i] != 0 : v.ints[i] != 0) found.push_back(at);
  });
  auto out = make(DType::int64, {static_cast<int64_t>(v.shape.size()), static_cast<int64_t>(found.size())});
  if (!out) return {};
  for (size_t i = 0; i < found.size(); ++i)
    for (size_t d = 0; d < v.shape.size(); ++d) out->ints[d * found.size() + i] = found[i][d];
  return one(std::move(*out));
}

Result gather_nd(const NodeProto& n, const Inputs& in) {
  const Value &v = *in[0], &indices = *in[1];
  if (int_attribute(n, "batch_dims", 0) != 0 || indices.shape.empty() || indices.floating()) return {};
  int64_t depth = indices.shape.back();
  if (depth < 1 || depth > static_cast<int64_t>(v.shape.size())) return {};
  Shape shape(indices.shape.begin(), indices.shape.end() - 1);
  shape.insert(shape.end(), v.shape.begin() + depth, v.shape.end());
  auto out = make(v.dtype, shape);
  if (!out) return {};
  std::vector<int64_t> strides = strides_of(v.shape);
  int64_t inner = strides[depth - 1], tuples = indices.size() / depth;
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t from = 0;
    for (int64_t d = 0; d < depth; ++d) {
      int64_t i = indices.ints[t * depth + d];
      if (i < 0) i += v.shape[d];
      if (i < 0 || i >= v.shape[d]) return {};
      from += i * strides[d];
    }
    for (int64_t j = 0; j < inner; ++j) copy(v, from + j, *out, t * inner + j);
  }
  return one(std::move(*out));
}

Result scatter_nd(const NodeProto& n, const Inputs& in) {
  const Value &indices = *in[1], &updates = *in[2];
  const auto* reduction = find_attribute(n, "reduction");
  if ((reduction && reduction->s() != "none") || indices.shape.empty() || indices.floating()) return {};
  Value out = *in[0];
  int64_t depth = indices.shape.back();
  if (depth < 1 || depth > static_cast<int64_t>(out.shape.size()) || updates.dtype != out.dtype) return {};
  std::vector<int64_t> strides = strides_of(out.shape);
  int64_t inner = strides[depth - 1], tuples = indices.size() / depth;
  if (updates.size() != tuples * inner) return {};
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t to = 0;
    for (int64_t d = 0; d < depth; ++d) {
      int64_t i = indices.ints[t * depth + d];
      if (i < 0) i += out.shape[d];
      if (i < 0 || i >= out.shape[d]) return {};
      to += i * strides[d];
    }
    for (int64_t j = 0; j < inner; ++j) copy(updates, t * inner + j, out, to + j);
  }
  return one(std::move(out));
}

// ---- reducing ----------------------------------------------------------------------------------------------------

template <IntPair ints, FloatPair floats>
Result reduce(const NodeProto& n, const Inputs& in) {
  const Value& v = *in[0];
  if (v.dtype == DType::uint64 || v.size() == 0) return {};
  bool keep = int_attribute(n, "keepdims", 1) != 0, named = in.size() > 1 && in[1] && in[1]->size() > 0;
  if (!named && int_attribute(n, "noop_with_empty_axes", 0) != 0) return one(v);
  std::vector<bool> reduced(v.shape.size(), !named);
  if (named)
    for (int64_t a : in[1]->ints) {
      size_t axis;
      if (!axis_of(a, v.shape.size(), axis)) return {};
      reduced[axis] = true;
    }
  Shape kept = v.shape, shape;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (reduced[i]) kept[i] = 1;
    if (keep || !reduced[i]) shape.push_back(kept[i]);
  }
  auto out = make(v.dtype, shape);
  if (!out) return {};
  std::vector<bool> seen(static_cast<size_t>(out->size()), false);
  std::vector<int64_t> strides = strides_of(kept);
  for_each_element(v.shape, [&](int64_t i, const std::vector<int64_t>& at) {
    int64_t to = 0;
    for (size_t d = 0; d < at.size(); ++d) to += reduced[d] ? 0 : at[d] * strides[d];
    if (!seen[to]) {
      copy(v, i, *out, to);
      seen[to] = true;
    } else if (v.floating()) {
      out->floats[to] = round_to(floats(out->floats[to], v.floats[i]), v.dtype);
    } else {
      out->ints[to] = wrap(*ints(out->ints[to], v.ints[i]), v.dtype);
    }
  });
  return one(std::move(*out));
}

Result cumsum(const NodeProto& n, const Inputs& in) {
  const Value& v = *in[0];
  size_t axis;
  if (v.floating() || in[1]->floating() || in[1]->size() != 1 || !axis_of(in[1]->ints[0], v.shape.size(), axis))
    return {};
  if (int_attribute(n, "exclusive", 0) || int_attribute(n, "reverse", 0)) return {};
  Value out = v;
  int64_t stride = strides_of(v.shape)[axis];
  for (int64_t i = 0; i < v.size(); ++i)
    if (i / stride % v.shape[axis] > 0) out.ints[i] = wrap(*add_i(out.ints[i], out.ints[i - stride]), out.dtype);
  return one(std::move(out));
}

Result trilu(const NodeProto& n, const Inputs& in) {
  Value out = *in[0];
  size_t rank = out.shape.size();
  if (rank < 2) return {};
  int64_t k = in.size() > 1 && in[1] && !in[1]->ints.empty() ? in[1]->ints[0] : 0;
  bool upper = int_attribute(n, "upper", 1) != 0;
  k = std::clamp(k, -kMaxFolded, kMaxFolded);
  for_each_element(out.shape, [&](int64_t i, const std::vector<int64_t>& at) {
    int64_t offset = at[rank - 1] - at[rank - 2];
    if (upper ? offset >= k : offset <= k) return;
    if (out.floating()) {
      out.floats[i] = 0;
    } else {
      out.ints[i] = 0;
    }
  });
  return one(std::move(out));
}

const std::map<std::string, Rule>& rules() {
  static const std::map<std::string, Rule> table = {
      {"Abs", unary<abs_i, abs_f>},
      {"Add", binary<add_i, add_f>},
      {"And", binary<and_i, nullptr>},
      {"Cast", cast},
      {"CastLike", cast_like},
      {"Ceil", unary<same_i, ceil_f>},
      {"Concat", concat},
      {"Constant", constant},
      {"ConstantOfShape", constant_of_shape},
      {"CumSum", cumsum},
      {"Div", binary<div_i, div_f>},
      {"Equal", compare<equal>},
      {"Expand", expand},
      {"Flatten", flatten},
      {"Floor", unary<same_i, floor_f>},
      {"Gather", gather},
      {"GatherND", gather_nd},
      {"Greater", compare<greater>},
      {"GreaterOrEqual", compare<greater_or_equal>},
      {"Identity", identity},
      {"Less", compare<less>},
      {"LessOrEqual", compare<less_or_equal>},
      {"Max", variadic<max_i, max_f>},
      {"Min", variadic<min_i, min_f>},
      {"Mod", mod},
      {"Mul", binary<mul_i, mul_f>},
      {"Neg", unary<neg_i, neg_f>},
      {"NonZero", nonzero},
      {"Not", negate},
      {"Or", binary<or_i, nullptr>},
      {"Pow", pow},
      {"Range", range},
      {"Reciprocal", unary<same_i, reciprocal_f>},
      {"ReduceMax", reduce<max_i, max_f>},
      {"ReduceMin", reduce<min_i, min_f>},
      {"ReduceProd", reduce<mul_i, mul_f>},
      {"ReduceSum", reduce<add_i, add_f>},
      {"Reshape", reshape},
      {"Round", unary<same_i, round_f>},
      {"ScatterND", scatter_nd},
      {"Sign", unary<sign_i, sign_f>},
      {"Slice", slice},
      {"Split", split},
      {"Sqrt", unary<same_i, sqrt_f>},
      {"Squeeze", squeeze},
      {"Sub", binary<sub_i, sub_f>},
      {"Tile", tile},
      {"Transpose", transpose},
      {"Trilu", trilu},
      {"Unsqueeze", unsqueeze},
      {"Where", where},
      {"Xor", binary<xor_i, nullptr>},
  };
  return table;
}

}  // namespace

bool can_fold(const NodeProto& node) { return node.domain().empty() && rules().count(node.op_type()) > 0; }

std::optional<std::vector<Value>> fold(const NodeProto& node, const std::vector<const Value*>& inputs) {
  return rules().at(node.op_type())(node, inputs);
}

}  // namespace monet
