// Resize's interpolation along one axis, against values worked out by hand, and the size of its gradient in a graph.
#include "engine/training/interpolation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/training/training_graph.h"
#include "tests/engine/training_models.h"

namespace monet {
namespace {

// Dense [out][in].
std::vector<std::vector<double>> matrix(const Interpolation& interpolation, const ResizedAxis& axis) {
  std::vector<std::vector<double>> m(axis.out, std::vector<double>(axis.in, 0));
  for (const Tap& tap : taps(interpolation, axis))
    for (int64_t o = 0; o < axis.out; ++o) m[o][tap.index[o]] += tap.weight[o];
  return m;
}

using Rows = std::vector<std::vector<double>>;

TEST(Interpolation, LinearTwice) {
  Rows expected = {{1, 0}, {0.75, 0.25}, {0.25, 0.75}, {0, 1}};
  EXPECT_EQ(matrix({.mode = "linear"}, {.in = 2, .out = 4, .scale = 2}), expected);
}

TEST(Interpolation, AlignedCornersMeetTheLastElements) {
  Rows expected = {{1, 0, 0}, {0.5, 0.5, 0}, {0, 1, 0}, {0, 0.5, 0.5}, {0, 0, 1}};
  EXPECT_EQ(matrix({.mode = "linear", .coordinates = "align_corners"}, {.in = 3, .out = 5, .scale = 5.0f / 3}),
            expected);
}

// Keys' cubic half way between two elements: (a, 4 - a, 4 - a, a) / 8 with a = -0.75 gives -3/32 and 19/32.
TEST(Interpolation, CubicHalfWay) {
  Rows m = matrix({.mode = "cubic", .coordinates = "asymmetric"}, {.in = 8, .out = 16, .scale = 2});
  EXPECT_EQ(m[7], (std::vector<double>{0, 0, -3.0 / 32, 19.0 / 32, 19.0 / 32, -3.0 / 32, 0, 0}));
}

TEST(Interpolation, NearestAtTies) {
  auto picks = [](const char* mode) {  // 4 -> 8 by asymmetric coordinates: 0, 0.5, 1, 1.5, ...
    Interpolation nearest{.coordinates = "asymmetric", .nearest_mode = mode};
    return taps(nearest, {.in = 4, .out = 8, .scale = 2})[0].index;
  };
  EXPECT_EQ(picks("floor"), (std::vector<int64_t>{0, 0, 1, 1, 2, 2, 3, 3}));
  EXPECT_EQ(picks("round_prefer_floor"), picks("floor"));
  EXPECT_EQ(picks("ceil"), (std::vector<int64_t>{0, 1, 1, 2, 2, 3, 3, 3}));
  EXPECT_EQ(picks("round_prefer_ceil"), picks("ceil"));
}

// Antialiased to a quarter, the filter covers 8 elements: 1/16, 3/16, 5/16, 7/16 and back, each a quarter of that.
TEST(Interpolation, AntialiasingStretchesTheFilter) {
  Rows m = matrix({.mode = "linear", .antialias = true}, {.in = 12, .out = 3, .scale = 0.25});
  std::vector<double> expected = {0, 0, 1, 3, 5, 7, 7, 5, 3, 1, 0, 0};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(m[1][i], expected[i] / 32, 1e-12);
}

TEST(Interpolation, WeightsSumToOneAndTapsStayInBounds) {
  for (const char* mode : {"nearest", "linear", "cubic"})
    for (const char* coordinates :
         {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"})
      for (bool antialias : {false, true})
        for (int64_t in : {1, 2, 5, 9})
          for (int64_t out : {1, 2, 4, 7, 20}) {
            Interpolation interpolation{.mode = mode, .coordinates = coordinates, .antialias = antialias};
            ResizedAxis axis{.in = in, .out = out, .scale = static_cast<float>(out) / static_cast<float>(in)};
            EXPECT_LE(static_cast<double>(taps(interpolation, axis).size()), tap_bound(interpolation, axis));
            for (const std::vector<double>& row : matrix(interpolation, axis)) {
              double sum = 0;
              for (double weight : row) sum += weight;
              EXPECT_NEAR(sum, 1, 1e-12) << mode << " " << coordinates << " " << in << " -> " << out;
            }
          }
}

TrainingGraph upscale(const std::string& mode, int64_t size) {
  ForwardGraph f;
  float scales[] = {1, 1, 2, 2};
  TensorId x = f.parameter("x", {1, 3, size, size});
  TensorId s = f.tensor("scales", {4}, TensorKind::constant, DType::float32,
                        std::string(reinterpret_cast<char*>(scales), sizeof scales));
  f.output(f.node("Resize", {x, kNone, s}, "y", {1, 3, 2 * size, 2 * size}, {{"mode", mode}}));
  return build_training_graph(f.graph, {.loss = Loss::sum});
}

TEST(ResizeGradient, WholeRepetitionIsASum) {
  for (const Node& n : upscale("nearest", 16).graph.nodes) EXPECT_NE(n.op, "ScatterElements");
}

// A product with the interpolation matrix would hold in * out numbers per axis: 2 million at 1024.
TEST(ResizeGradient, ConstantsGrowWithTheAxis) {
  for (int64_t size : {64, 1024}) {
    int64_t held = 0;
    for (const Tensor& t : upscale("linear", size).graph.tensors)
      if (t.kind == TensorKind::constant) held += static_cast<int64_t>(t.data.size());
    EXPECT_LT(held, 2 * 2 * 2 * size * (8 + 4) + 512);  // two axes, two taps, an index and a weight per output
  }
}

}  // namespace
}  // namespace monet
