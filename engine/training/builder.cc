#include "engine/training/builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace monet {

namespace {

template <typename T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// IEEE 754 binary16, round to nearest even: the value is scaled so that one unit is one step of the result.
uint16_t half_bits(double value) {
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double magnitude = std::fabs(value);
  if (std::isnan(value)) return 0x7e00;
  if (std::isinf(value)) return sign | 0x7c00;
  if (magnitude == 0) return sign;
  int exponent = std::max(std::ilogb(magnitude), -14);                  // -14: smallest normal exponent
  double steps = std::nearbyint(std::ldexp(magnitude, 10 - exponent));  // 10 fraction bits
  // Carries of the rounding run into the exponent by themselves.
  double code = steps + (exponent + 14) * 1024.0;
  return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::min(code, 31744.0)));  // 0x7c00: infinity
}

double half_value(uint16_t code) {
  int exponent = (code >> 10) & 31;
  double fraction = code & 1023;
  double magnitude = exponent == 0    ? std::ldexp(fraction, -24)
                     : exponent == 31 ? (fraction == 0 ? INFINITY : NAN)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return code & 0x8000 ? -magnitude : magnitude;
}

uint16_t bfloat_bits(float value) {
  uint32_t code;
  std::memcpy(&code, &value, sizeof code);
  return static_cast<uint16_t>((code + 0x7fff + ((code >> 16) & 1)) >> 16);  // round to nearest even
}

Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  size_t shift = longer.size() - shorter.size();
  for (size_t i = 0; i < shorter.size(); ++i)
    if (result[shift + i] == 1) result[shift + i] = shorter[i];
  return result;
}

}  // namespace

std::string encode(double value, DType type) {
  switch (type) {
    case DType::float64:
      return raw(value);
    case DType::float16:
      return raw(half_bits(value));
    case DType::bfloat16:
      return raw(bfloat_bits(static_cast<float>(value)));
    case DType::int64:
      return raw(static_cast<int64_t>(value));
    case DType::int32:
      return raw(static_cast<int32_t>(value));
    default:
      return raw(static_cast<float>(value));
  }
}

bool known_scalar(const Tensor& tensor, double* value) {
  if (elements(tensor.shape) != 1 || tensor.data.size() * 8 != static_cast<size_t>(bits(tensor.dtype))) return false;
  const char* data = tensor.data.data();
  float narrow;
  uint16_t half;
  uint32_t wide;
  switch (tensor.dtype) {
    case DType::float32:
      std::memcpy(&narrow, data, sizeof narrow);
      *value = narrow;
      return true;
    case DType::float64:
      std::memcpy(value, data, sizeof *value);
      return true;
    case DType::float16:
      std::memcpy(&half, data, sizeof half);
      *value = half_value(half);
      return true;
    case DType::bfloat16:
      std::memcpy(&half, data, sizeof half);
      wide = static_cast<uint32_t>(half) << 16;
      std::memcpy(&narrow, &wide, sizeof narrow);
      *value = narrow;
      return true;
    case DType::boolean:
      *value = data[0] != 0;
      return true;
    case DType::int32:
    case DType::int64:
      *value = static_cast<double>(integers(tensor)[0]);
      return true;
    default:
      return false;
  }
}

void Builder::begin_unit(Unit unit) {
  unit_ = std::move(unit);
  current_ = kNone;
}

TensorId Builder::emit(const char* op, std::vector<TensorId> inputs, Shape shape, std::vector<Attribute> attributes) {
  DType type = dtype(inputs[0]);
  return emit_as(type, op, std::move(inputs), std::move(shape), std::move(attributes));
}

TensorId Builder::emit_as(DType type, const char* op, std::vector<TensorId> inputs, Shape shape,
                          std::vector<Attribute> attributes) {
  TensorId output = graph_.add(Tensor{.dtype = type, .shape = std::move(shape)});
  if (current_ == kNone) {
    current_ = static_cast<UnitId>(graph_.units.size());
    graph_.units.push_back(unit_);
  }
  Node node{.op = op, .inputs = std::move(inputs), .outputs = {output}, .attributes = std::move(attributes)};
  node.phase = unit_.phase;
  node.origin = unit_.origin;
  node.unit = current_;
  bool contraction = is_contraction(node);
  NodeId id = graph_.add(std::move(node));
  Unit& unit = graph_.units[current_];
  unit.nodes.push_back(id);
  // Only a contraction's own gradients have a loop nest; a pooling gradient borrows ConvTranspose without one.
  if (contraction && (unit.role == Role::input_gradient || unit.role == Role::weight_gradient)) unit.contraction = id;
  return output;
}

TensorId Builder::constant(DType type, const Shape& shape, std::string data) {
  auto [at, added] = constants_.try_emplace({type, shape, data}, kNone);
  if (added) {
    at->second =
        graph_.add(Tensor{.dtype = type, .shape = shape, .kind = TensorKind::constant, .data = std::move(data)});
  }
  return at->second;
}

TensorId Builder::ints(const std::vector<int64_t>& values) {
  std::string data;
  for (int64_t v : values) data += raw(v);
  return constant(DType::int64, {static_cast<int64_t>(values.size())}, std::move(data));
}

TensorId Builder::scalar(double value, DType type) { return constant(type, {}, encode(value, type)); }

TensorId Builder::floats(const std::vector<double>& values, const Shape& shape, DType type) {
  std::string data;
  for (double v : values) data += encode(v, type);
  return constant(type, shape, std::move(data));
}

TensorId Builder::binary(const char* op, TensorId a, TensorId b) {
  return emit(op, {a, b}, broadcast(shape(a), shape(b)));
}

TensorId Builder::scaled(TensorId a, double factor) { return factor == 1 ? a : mul(a, scalar(factor, dtype(a))); }

TensorId Builder::compare(const char* op, TensorId a, TensorId b) {
  return emit_as(DType::boolean, op, {a, b}, broadcast(shape(a), shape(b)));
}

TensorId Builder::where(TensorId mask, TensorId a, TensorId b) {
  return emit_as(dtype(a), "Where", {mask, a, b}, broadcast(shape(mask), broadcast(shape(a), shape(b))));
}

TensorId Builder::keep_where(TensorId mask, TensorId value) { return where(mask, value, scalar(0, dtype(value))); }

TensorId Builder::clear_where(TensorId mask, TensorId value) { return where(mask, scalar(0, dtype(value)), value); }

TensorId Builder::cast(TensorId a, DType type) {
  if (dtype(a) == type) return a;
  return emit_as(type, "Cast", {a}, shape(a), {{"to", static_cast<int64_t>(type)}});
}

TensorId Builder::reshape(TensorId a, const Shape& to) {
  if (shape(a) == to) return a;
  std::vector<Attribute> attributes;
  // Without it a 0 in the target means "copy this dimension".
  if (std::count(to.begin(), to.end(), 0)) attributes.push_back({"allowzero", int64_t{1}});
  return emit("Reshape", {a, ints(to)}, to, std::move(attributes));
}

TensorId Builder::expand(TensorId a, const Shape& to) {
  if (shape(a) == to) return a;
  return emit("Expand", {a, ints(to)}, to);
}

TensorId Builder::untransposed(TensorId a, const std::vector<int64_t>& perm) const {
  NodeId producer = graph_.tensors[a].producer;
  if (producer == kNone || graph_.nodes[producer].op != "Transpose" || !graph_.nodes[producer].domain.empty())
    return kNone;
  std::vector<int64_t> reversed(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) reversed[i] = static_cast<int64_t>(perm.size() - 1 - i);
  std::vector<int64_t> before = attribute(graph_.nodes[producer], "perm", reversed);
  if (before.size() != perm.size()) return kNone;
  for (size_t i = 0; i < perm.size(); ++i)
    if (before[perm[i]] != static_cast<int64_t>(i)) return kNone;
  return graph_.nodes[producer].inputs[0];
}

TensorId Builder::transpose(TensorId a, const std::vector<int64_t>& perm) {
  if (TensorId original = untransposed(a, perm); original != kNone) return original;
  Shape from = shape(a), to;
  for (int64_t axis : perm) to.push_back(from[axis]);
  return emit("Transpose", {a}, std::move(to), {{"perm", perm}});
}

TensorId Builder::reduce(const char* op, TensorId a, const std::vector<int64_t>& axes, bool keepdims) {
  Shape from = shape(a), to;
  for (int64_t i = 0; i < static_cast<int64_t>(from.size()); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), i)) {
      to.push_back(from[i]);
    } else if (keepdims) {
      to.push_back(1);
    }
  }
  return emit(op, {a, ints(axes)}, std::move(to), {{"keepdims", int64_t{keepdims}}});
}

TensorId Builder::slice(TensorId a, const std::vector<int64_t>& axes, const std::vector<int64_t>& starts,
                        const std::vector<int64_t>& ends) {
  Shape to = shape(a);
  for (size_t i = 0; i < axes.size(); ++i) to[axes[i]] = ends[i] - starts[i];
  return emit("Slice", {a, ints(starts), ints(ends), ints(axes)}, std::move(to));
}

TensorId Builder::filled(const Shape& to, double value, DType type) {
  return emit_as(type, "ConstantOfShape", {ints(to)}, to,
                 {{"value", TensorAttribute{.dtype = type, .shape = {1}, .data = encode(value, type)}}});
}

TensorId Builder::reduce_to(TensorId a, const Shape& to) {
  Shape from = shape(a);
  if (from == to) return a;
  int64_t added = static_cast<int64_t>(from.size()) - static_cast<int64_t>(to.size());
  std::vector<int64_t> axes;
  bool inner = false;  // a repeated dimension that stays, with size 1
  for (int64_t i = 0; i < static_cast<int64_t>(from.size()); ++i) {
    if (i < added) {
      axes.push_back(i);
    } else if (to[i - added] != from[i]) {
      axes.push_back(i);
      inner = true;
    }
  }
  return reshape(reduce("ReduceSum", a, axes, inner), to);
}

}  // namespace monet
