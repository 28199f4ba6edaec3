// Resize along one axis as the linear map it is: output element o is a weighted sum of few input elements. The formulas
// are those of ONNX's Resize (coordinate_transformation_mode, nearest_mode, cubic_coeff_a, exclude_outside, antialias)
// as ONNX Runtime computes them, coordinates in float32 so that ties fall as they do there. Cubic: Keys, Cubic
// convolution interpolation for digital image processing, 1981; antialiasing stretches the filter as Pillow does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace monet {

struct Interpolation {
  std::string mode = "nearest";  // nearest, linear, cubic
  std::string coordinates = "half_pixel";
  std::string nearest_mode = "round_prefer_floor";
  double cubic_a = -0.75;
  bool exclude_outside = false;
  bool antialias = false;
};

struct ResizedAxis {
  int64_t in = 1, out = 1;  // elements, at least 1 each
  float scale = 1;          // as given, which is not always out / in
  float roi_begin = 0, roi_end = 1;
};

// One term of the sums: output o has weight[o] * input[index[o]] among its terms.
struct Tap {
  std::vector<int64_t> index;  // in [0, in)
  std::vector<double> weight;
};

// All terms: at most one tap for nearest, two for linear, four for cubic; antialiased ones have as many as the
// stretched filter covers. Taps whose weights are all 0 are left out.
std::vector<Tap> taps(const Interpolation& interpolation, const ResizedAxis& axis);

// How many taps `taps` can give, without computing them.
double tap_bound(const Interpolation& interpolation, const ResizedAxis& axis);

}  // namespace monet
