#include <gtest/gtest.h>

#include "engine/ir/graph.h"

namespace monet {
namespace {

TEST(Tensor, BytesAtEveryWidth) {
  Tensor t;
  t.shape = {3, 5};
  t.dtype = DType::float32;
  EXPECT_EQ(bytes(t), 60);
  t.dtype = DType::bfloat16;
  EXPECT_EQ(bytes(t), 30);
  t.dtype = DType::int4;
  EXPECT_EQ(bytes(t), 8);  // 15 elements of 4 bits: 7.5 bytes, rounded up
  t.dtype = DType::boolean;
  EXPECT_EQ(bytes(t), 15);
  t.shape = {};
  t.dtype = DType::int64;
  EXPECT_EQ(bytes(t), 8);
  t.shape = {0, 7};
  EXPECT_EQ(bytes(t), 0);
}

TEST(Tensor, HostileShapesSaturate) {
  Tensor t;
  t.dtype = DType::float64;
  t.shape = {INT64_MAX, INT64_MAX, 3};
  EXPECT_EQ(elements(t.shape), INT64_MAX);
  EXPECT_EQ(bytes(t), INT64_MAX);
}

TEST(Node, LabelFallsBackToOutputThenIndex) {
  Graph g;
  TensorId out = g.add(Tensor{.name = "y"});
  g.add(Node{.name = "conv", .outputs = {out}});
  g.add(Node{.outputs = {kNone, out}});
  g.add(Node{});
  EXPECT_EQ(label(g, 0), "conv");
  EXPECT_EQ(label(g, 1), "y");
  EXPECT_EQ(label(g, 2), "#2");
}

}  // namespace
}  // namespace monet
