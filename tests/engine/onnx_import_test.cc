// Import on small models: order of stages, kinds of tensors, folding, refusals. Numbers in comments are rows of the
// project's list of what real ONNX files contain.
#include <gtest/gtest.h>

#include "onnx_builder.h"

namespace monet::test {
namespace {

TEST(OnnxImport, BindsDimensionsByNameAndDefaultsTheRest) {  // case 1
  Model model = open(Builder().input("x", {"batch", 4, "sequence"}).op("Flatten", {"x"}, {"y"}).output("y"));
  BindOptions options;
  options.dims = {{"sequence", 5}};
  BoundModel bound = model.bind(options);
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{1, 20}));
  ASSERT_EQ(bound.dims.size(), 2u);
  EXPECT_EQ(bound.dims[0].name, "batch");
  EXPECT_TRUE(bound.dims[0].defaulted);
  EXPECT_EQ(bound.dims[1].name, "sequence");
  EXPECT_EQ(bound.dims[1].value, 5);
  EXPECT_FALSE(bound.dims[1].defaulted);
  options.batch = 7;
  EXPECT_EQ(tensor(model.bind(options).graph, "y").shape, (Shape{7, 20}));
}

}  // namespace
}  // namespace monet::test
