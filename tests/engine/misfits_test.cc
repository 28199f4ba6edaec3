// Nodes whose attributes and shapes do not fit each other, as damaged files have them: rules refuse them by name,
// whatever the numbers are.
#include <gtest/gtest.h>

#include <limits>

#include "engine/training/training_graph.h"
#include "tests/engine/training_models.h"

namespace monet {
namespace {

constexpr int64_t kHuge = std::numeric_limits<int64_t>::max();
using Ints = std::vector<int64_t>;

// One node `op` whose first input is a parameter of this shape, the others parameters too. What training says of it.
std::string refusal(const std::string& op, const Shape& x, const std::vector<Shape>& others, const Shape& y,
                    std::vector<Attribute> attributes = {}) {
  ForwardGraph f;
  std::vector<TensorId> inputs = {f.parameter("x", x)};
  for (size_t i = 0; i < others.size(); ++i) inputs.push_back(f.parameter("p" + std::to_string(i), others[i]));
  f.output(f.node(op, inputs, "y", y, std::move(attributes)));
  try {
    build_training_graph(f.graph, {.loss = Loss::sum});
  } catch (const Refusal& refused) {
    EXPECT_EQ(refused.problems().size(), 1u);
    std::string message = refused.problems()[0].message, reason = "has no gradient rule: ";
    EXPECT_EQ(message.rfind("operator " + op + " ", 0), 0u) << message;
    EXPECT_NE(message.find(reason), std::string::npos) << message;
    return message.substr(message.find(reason) + reason.size());
  }
  return "";
}

TEST(Misfits, Normalisations) {
  EXPECT_EQ(refusal("LayerNormalization", {2, 4}, {{4}, {4}}, {2, 4}), "");
  for (int64_t axis : {int64_t{2}, int64_t{-3}, kHuge, -kHuge})
    EXPECT_EQ(refusal("LayerNormalization", {2, 4}, {{4}}, {2, 4}, {{"axis", axis}}),
              "its axis or stash_type is none that its input can have");
  EXPECT_NE(refusal("LayerNormalization", {2, 4}, {{4}}, {2, 4}, {{"stash_type", int64_t{7}}}), "");
  for (const Shape& scale : {Shape{3}, Shape{1, 2, 4}, Shape{0}})
    EXPECT_EQ(refusal("LayerNormalization", {2, 4}, {scale}, {2, 4}), "its scale or bias does not fit its input");
  EXPECT_EQ(refusal("GroupNormalization", {2, 6, 3}, {{6}, {6}}, {2, 6, 3}, {{"num_groups", int64_t{3}}}), "");
  for (int64_t groups : {int64_t{0}, int64_t{-1}, int64_t{4}, kHuge})
    EXPECT_NE(refusal("GroupNormalization", {2, 6, 3}, {{6}, {6}}, {2, 6, 3}, {{"num_groups", groups}}), "");
  EXPECT_NE(refusal("GroupNormalization", {2, 6, 3}, {{6}, {5}}, {2, 6, 3}, {{"num_groups", int64_t{3}}}), "");
  EXPECT_NE(refusal("InstanceNormalization", {2, 6, 3}, {{1}, {6}}, {2, 6, 3}), "");
  EXPECT_NE(refusal("InstanceNormalization", {6}, {{6}, {6}}, {6}), "");
  EXPECT_NE(refusal("MeanVarianceNormalization", {2, 6}, {}, {2, 6}), "");  // its default axes need four dimensions
  EXPECT_NE(refusal("LRN", {2, 6, 3}, {}, {2, 6, 3}, {{"size", -kHuge}}), "");
}

TEST(Misfits, Sampling) {
  EXPECT_EQ(refusal("GridSample", {2, 3, 4, 4}, {{2, 5, 5, 2}}, {2, 3, 5, 5}), "");
  EXPECT_NE(refusal("GridSample", {2, 3, 4, 4}, {{2, 5, 5, 3}}, {2, 3, 5, 5}), "");
  EXPECT_NE(refusal("GridSample", {2, 3, 4, 4}, {{1, 5, 5, 2}}, {2, 3, 5, 5}), "");
  Shape deep(34, 1), grid(34, 1);
  grid.back() = 32;
  EXPECT_NE(refusal("GridSample", deep, {grid}, deep), "");
  EXPECT_EQ(refusal("AffineGrid", {2, 2, 3}, {}, {2, 4, 5, 2}), "");
  EXPECT_NE(refusal("AffineGrid", {2, 2, 4}, {}, {2, 4, 5, 2}), "");
  EXPECT_NE(refusal("AffineGrid", {2, 2, 3}, {}, {2, int64_t{1} << 40, 5, 2}), "");
  EXPECT_NE(refusal("MaxUnpool", {1, 1, 2, 2}, {{1, 1, 2, 3}}, {1, 1, 4, 4}), "");
}

std::string raw(const Ints& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
}

std::string refused_col2im(const Ints& block, std::vector<Attribute> attributes = {}) {
  ForwardGraph f;
  TensorId x = f.parameter("x", {1, 4, 9});
  TensorId image = f.tensor("image", {2}, TensorKind::constant, DType::int64, raw({4, 4}));
  TensorId size =
      f.tensor("block", {static_cast<int64_t>(block.size())}, TensorKind::constant, DType::int64, raw(block));
  f.output(f.node("Col2Im", {x, image, size}, "y", {1, 1, 4, 4}, std::move(attributes)));
  try {
    build_training_graph(f.graph, {.loss = Loss::sum});
  } catch (const Refusal& refused) {
    return refused.problems()[0].message;
  }
  return "";
}

TEST(Misfits, Columns) {
  EXPECT_EQ(refused_col2im({2, 2}), "");
  for (const Ints& block : {Ints{2, 3}, Ints{2}, Ints{0, 2}, Ints{kHuge, 2}, Ints{-1, 2}})
    EXPECT_NE(refused_col2im(block), "");
  EXPECT_NE(refused_col2im({2, 2}, {{"pads", Ints{kHuge, kHuge, kHuge, kHuge}}}), "");
  EXPECT_NE(refused_col2im({2, 2}, {{"dilations", Ints{kHuge, 1}}}), "");
  EXPECT_NE(refused_col2im({2, 2}, {{"strides", Ints{0, 1}}}), "");
}

std::string refused_resize(const std::vector<float>& scales, const Shape& y, std::vector<Attribute> attributes = {}) {
  ForwardGraph f;
  TensorId x = f.parameter("x", {1, 1, 4, 4});
  TensorId s = f.tensor("scales", {static_cast<int64_t>(scales.size())}, TensorKind::constant, DType::float32,
                        std::string(reinterpret_cast<const char*>(scales.data()), scales.size() * sizeof(float)));
  f.output(f.node("Resize", {x, kNone, s}, "y", y, std::move(attributes)));
  try {
    build_training_graph(f.graph, {.loss = Loss::sum});
  } catch (const Refusal& refused) {
    return refused.problems()[0].message;
  }
  return "";
}

TEST(Misfits, Resizes) {
  std::vector<Attribute> antialias = {{"mode", std::string("linear")}, {"antialias", int64_t{1}}};
  EXPECT_EQ(refused_resize({1, 1, 2, 2}, {1, 1, 8, 8}), "");
  EXPECT_NE(refused_resize({1, 1, 2}, {1, 1, 8, 8}), "");
  EXPECT_NE(refused_resize({1, 1, -2, 2}, {1, 1, 8, 8}), "");
  EXPECT_NE(refused_resize({1, 1, std::numeric_limits<float>::quiet_NaN(), 2}, {1, 1, 8, 8}), "");
  EXPECT_NE(refused_resize({1, 1, 2, 1e-30f}, {1, 1, 8, 1}, antialias), "");
  EXPECT_NE(refused_resize({1, 1, 1e6f, 1}, {1, 1, 4000000, 4}), "");
  EXPECT_NE(refused_resize({2, 2}, {1, 1, 8, 8}, {{"axes", Ints{2, kHuge}}}), "");
  EXPECT_NE(refused_resize({1, 1, 2, 0.25f}, {1, 1, 8, 0}), "");
}

}  // namespace
}  // namespace monet
