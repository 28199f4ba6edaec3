#include "engine/onnx/value.h"

#include <cmath>
#include <cstring>

namespace monet {

namespace {

// Binary floats of 16 bits: `mantissa` explicit bits, exponents as in IEEE 754.
struct Half {
  int mantissa, exponent_bits;
};
constexpr Half kFloat16{10, 5}, kBfloat16{7, 8};

double decode_half(uint16_t bits, Half format) {
  int bias = (1 << (format.exponent_bits - 1)) - 1, top = (1 << format.exponent_bits) - 1;
  int exponent = bits >> format.mantissa & top, fraction = bits & ((1 << format.mantissa) - 1);
  double sign = bits >> 15 ? -1.0 : 1.0;
  if (exponent == top) return fraction ? std::nan("") : sign * HUGE_VAL;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - format.mantissa);
  return sign * std::ldexp(fraction + (1 << format.mantissa), exponent - bias - format.mantissa);
}

// Rounds to nearest even on the format's grid, then overflows to infinity.
double round_half(double value, Half format) {
  if (!std::isfinite(value) || value == 0) return value;
  int bias = (1 << (format.exponent_bits - 1)) - 1;
  int exponent = std::max(std::ilogb(value), 1 - bias);
  double step = std::ldexp(1.0, exponent - format.mantissa);
  double rounded = std::nearbyint(value / step) * step;
  double largest = std::ldexp(2.0 - std::ldexp(1.0, -format.mantissa), bias);
  return std::fabs(rounded) > largest ? std::copysign(HUGE_VAL, value) : rounded;
}

uint16_t encode_half(double value, Half format) {
  int bias = (1 << (format.exponent_bits - 1)) - 1, top = (1 << format.exponent_bits) - 1;
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<uint16_t>(top << format.mantissa | 1 << (format.mantissa - 1));
  if (std::isinf(value)) return static_cast<uint16_t>(sign | top << format.mantissa);
  if (value == 0) return sign;
  int exponent = std::max(std::ilogb(value), 1 - bias);
  int scaled = static_cast<int>(std::ldexp(std::fabs(value), format.mantissa - exponent));
  if (scaled < 1 << format.mantissa) return static_cast<uint16_t>(sign | scaled);  // subnormal
  return static_cast<uint16_t>(sign | (exponent + bias) << format.mantissa | (scaled - (1 << format.mantissa)));
}

template <typename T, typename To>
void read_all(const std::string& raw, std::vector<To>& to) {
  for (size_t at = 0; at + sizeof(T) <= raw.size(); at += sizeof(T)) {
    T element;
    std::memcpy(&element, raw.data() + at, sizeof element);
    to.push_back(static_cast<To>(element));
  }
}

template <typename T, typename From>
void write_all(const std::vector<From>& from, std::string& raw) {
  for (From value : from) {
    T element = static_cast<T>(value);
    raw.append(reinterpret_cast<const char*>(&element), sizeof element);
  }
}

}  // namespace

bool foldable(DType dtype) {
  switch (dtype) {
    case DType::float32:
    case DType::float64:
    case DType::float16:
    case DType::bfloat16:
    case DType::boolean:
    case DType::uint8:
    case DType::int8:
    case DType::uint16:
    case DType::int16:
    case DType::uint32:
    case DType::int32:
    case DType::uint64:
    case DType::int64:
      return true;
    default:
      return false;
  }
}

std::optional<Value> decode(const ::onnx::TensorProto& tensor) {
  Value v;
  v.dtype = dtype_of(tensor.data_type());
  v.shape = shape_of(tensor);
  if (!foldable(v.dtype) || v.size() > kMaxFolded || !has_payload(tensor)) return std::nullopt;
  const std::string& raw = tensor.raw_data();
  if (static_cast<int64_t>(raw.size()) != v.size() * bits(v.dtype) / 8) return std::nullopt;
  switch (v.dtype) {
    case DType::float32:
      read_all<float>(raw, v.floats);
      break;
    case DType::float64:
      read_all<double>(raw, v.floats);
      break;
    case DType::float16:
    case DType::bfloat16: {
      std::vector<uint16_t> halves;
      read_all<uint16_t>(raw, halves);
      for (uint16_t h : halves) v.floats.push_back(decode_half(h, v.dtype == DType::float16 ? kFloat16 : kBfloat16));
      break;
    }
    case DType::boolean:
    case DType::uint8:
      read_all<uint8_t>(raw, v.ints);
      break;
    case DType::int8:
      read_all<int8_t>(raw, v.ints);
      break;
    case DType::uint16:
      read_all<uint16_t>(raw, v.ints);
      break;
    case DType::int16:
      read_all<int16_t>(raw, v.ints);
      break;
    case DType::uint32:
      read_all<uint32_t>(raw, v.ints);
      break;
    case DType::int32:
      read_all<int32_t>(raw, v.ints);
      break;
    default:
      read_all<int64_t>(raw, v.ints);
      break;  // int64; uint64 keeps its bits
  }
  if (v.dtype == DType::boolean)
    for (int64_t& b : v.ints) b = b != 0;
  return v;
}

::onnx::TensorProto encode(const Value& v, const std::string& name) {
  ::onnx::TensorProto tensor;
  tensor.set_name(name);
  tensor.set_data_type(static_cast<int32_t>(v.dtype));
  for (int64_t d : v.shape) tensor.add_dims(d);
  std::string& raw = *tensor.mutable_raw_data();
  switch (v.dtype) {
    case DType::float32:
      write_all<float>(v.floats, raw);
      break;
    case DType::float64:
      write_all<double>(v.floats, raw);
      break;
    case DType::float16:
    case DType::bfloat16:
      for (double f : v.floats) {
        uint16_t h = encode_half(f, v.dtype == DType::float16 ? kFloat16 : kBfloat16);
        raw.append(reinterpret_cast<const char*>(&h), sizeof h);
      }
      break;
    case DType::boolean:
    case DType::uint8:
      write_all<uint8_t>(v.ints, raw);
      break;
    case DType::int8:
      write_all<int8_t>(v.ints, raw);
      break;
    case DType::uint16:
      write_all<uint16_t>(v.ints, raw);
      break;
    case DType::int16:
      write_all<int16_t>(v.ints, raw);
      break;
    case DType::uint32:
      write_all<uint32_t>(v.ints, raw);
      break;
    case DType::int32:
      write_all<int32_t>(v.ints, raw);
      break;
    default:
      write_all<int64_t>(v.ints, raw);
      break;
  }
  return tensor;
}

int64_t wrap(int64_t value, DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return value != 0;
    case DType::uint8:
      return static_cast<uint8_t>(value);
    case DType::int8:
      return static_cast<int8_t>(value);
    case DType::uint16:
      return static_cast<uint16_t>(value);
    case DType::int16:
      return static_cast<int16_t>(value);
    case DType::uint32:
      return static_cast<uint32_t>(value);
    case DType::int32:
      return static_cast<int32_t>(value);
    default:
      return value;
  }
}

double round_to(double value, DType dtype) {
  switch (dtype) {
    case DType::float32:
      return static_cast<float>(value);
    case DType::float16:
      return round_half(value, kFloat16);
    case DType::bfloat16:
      return round_half(value, kBfloat16);
    default:
      return value;
  }
}

}  // namespace monet
