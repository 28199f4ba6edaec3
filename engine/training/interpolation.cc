#include "engine/training/interpolation.h"

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

// Where output element `at` lies among the input elements.
float original(const std::string& mode, const ResizedAxis& axis, float at) {
  float in = static_cast<float>(axis.in), out = static_cast<float>(axis.out);
  if (mode == "asymmetric") return at / axis.scale;
  // Of opset 11 alone, but neither the converter nor runtimes change it.
  if (mode == "tf_half_pixel_for_nn") return (at + 0.5f) / axis.scale;
  if (mode == "pytorch_half_pixel") return out > 1 ? (at + 0.5f) / axis.scale - 0.5f : 0.0f;
  if (mode == "align_corners") return out > 1 ? at * (in - 1) / (out - 1) : 0.0f;
  if (mode == "tf_crop_and_resize") {
    return out > 1 ? axis.roi_begin * (in - 1) + at * (axis.roi_end - axis.roi_begin) * (in - 1) / (out - 1)
                   : 0.5f * (axis.roi_begin + axis.roi_end) * (in - 1);
  }
  // Symmetric: keeps the centre where out is not scale * in.
  float offset = mode == "half_pixel_symmetric" ? in / 2 * (1 - out / (axis.scale * in)) : 0.0f;
  return offset + (at + 0.5f) / axis.scale - 0.5f;
}

int64_t nearest(const std::string& mode, float at) {
  if (mode == "floor") return static_cast<int64_t>(std::floor(at));
  if (mode == "ceil") return static_cast<int64_t>(std::ceil(at));
  bool half = at == std::floor(at) + 0.5f;
  if (mode == "round_prefer_ceil") return static_cast<int64_t>(half ? std::ceil(at) : std::round(at));
  return static_cast<int64_t>(half ? std::floor(at) : std::round(at));
}

double triangle(double x) { return std::max(0.0, 1 - std::fabs(x)); }

double keys(double x, double a) {
  x = std::fabs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// Half the width of the filter, in input elements.
double support(const Interpolation& interpolation, const ResizedAxis& axis) {
  double plain = interpolation.mode == "cubic" ? 2 : 1;
  return interpolation.antialias && axis.scale < 1 ? plain / axis.scale : plain;
}

}  // namespace

double tap_bound(const Interpolation& interpolation, const ResizedAxis& axis) {
  return interpolation.mode == "nearest" ? 1 : 2 * support(interpolation, axis) + 1;
}

std::vector<Tap> taps(const Interpolation& interpolation, const ResizedAxis& axis) {
  bool crops = interpolation.coordinates == "tf_crop_and_resize";
  bool is_nearest = interpolation.mode == "nearest";
  double reach = support(interpolation, axis), squeeze = (interpolation.mode == "cubic" ? 2 : 1) / reach;
  std::vector<Tap> result;
  auto term = [&](size_t tap, int64_t o, int64_t index, double weight) {
    if (tap >= result.size()) {
      size_t size = static_cast<size_t>(axis.out);
      result.resize(tap + 1, {std::vector<int64_t>(size, 0), std::vector<double>(size, 0)});
    }
    result[tap].index[o] = std::clamp<int64_t>(index, 0, axis.in - 1);
    result[tap].weight[o] = weight;
  };
  for (int64_t o = 0; o < axis.out; ++o) {
    float at = original(interpolation.coordinates, axis, static_cast<float>(o));
    if (crops && !(at >= 0 && at <= static_cast<float>(axis.in - 1))) continue;  // the extrapolation value: no input
    if (is_nearest) {
      term(0, o, nearest(interpolation.nearest_mode, at), 1);
      continue;
    }
    // The elements that the filter, centred at `at`, covers.
    int64_t begin = static_cast<int64_t>(std::floor(at - reach)) + 1, end = static_cast<int64_t>(std::ceil(at + reach));
    std::vector<double> weights;
    double total = 0;
    for (int64_t i = begin; i < end; ++i) {
      double x = (static_cast<double>(i) - at) * squeeze;
      double weight = interpolation.mode == "cubic" ? keys(x, interpolation.cubic_a) : triangle(x);
      if (interpolation.exclude_outside && (i < 0 || i >= axis.in)) weight = 0;
      weights.push_back(weight);
      total += weight;
    }
    for (int64_t i = begin; i < end; ++i)
      term(static_cast<size_t>(i - begin), o, i, total == 0 ? 0 : weights[i - begin] / total);
  }
  result.erase(std::remove_if(result.begin(), result.end(),
                              [](const Tap& tap) {
                                return std::all_of(tap.weight.begin(), tap.weight.end(),
                                                   [](double weight) { return weight == 0; });
                              }),
               result.end());
  return result;
}

}  // namespace monet
