// The parts of engine/training/ by themselves: window arithmetic, shapes of emitted gradients, patterns, element types.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/training/builder.h"
#include "engine/training/precision.h"
#include "engine/training/selection.h"
#include "engine/training/training_graph.h"
#include "engine/training/window.h"
#include "tests/engine/training_models.h"

namespace monet {
namespace {

using Ints = std::vector<int64_t>;

// Against the definition: enumerate which elements of the large side each window meets.
TEST(Window, CoversWhatTheDefinitionSays) {
  for (int64_t kernel = 1; kernel <= 4; ++kernel)
    for (int64_t stride = 1; stride <= 3; ++stride)
      for (int64_t dilation = 1; dilation <= 3; ++dilation)
        for (int64_t begin = 0; begin <= 2; ++begin)
          for (int64_t end = 0; end <= 2; ++end)
            for (int64_t large = 1; large <= 9; ++large) {
              int64_t span = large + begin + end - dilation * (kernel - 1) - 1;
              if (span < 0) continue;
              int64_t small = span / stride + 1, last = -1;
              for (int64_t i = 0; i < small; ++i)
                for (int64_t k = 0; k < kernel; ++k) last = std::max(last, i * stride + k * dilation);
              Node node;
              node.attributes = {{"pads", Ints{begin, end}}, {"strides", Ints{stride}}, {"dilations", Ints{dilation}}};
              Window w = conv_window(node, {1, 1, large}, {1, 1, small}, {kernel});
              EXPECT_EQ(w[0].covered(), last + 1);
              // What DESIGN calls output_padding is the part of the end pad that no window reaches.
              EXPECT_EQ(end - w[0].end(), span % stride);
            }
}

TEST(Window, SamePadsWithDilation) {
  // 6 elements, 3 taps 2 apart, stride 1: 4 of padding, shared evenly; with stride 2 the extent is 9, 3 of padding.
  Node node;
  node.attributes = {{"auto_pad", std::string("SAME_UPPER")}, {"dilations", Ints{2}}, {"strides", Ints{1}}};
  EXPECT_EQ(pads(conv_window(node, {1, 1, 6}, {1, 1, 6}, {3})), (Ints{2, 2}));
  node.attributes[2].value = Ints{2};
  EXPECT_EQ(pads(conv_window(node, {1, 1, 6}, {1, 1, 3}, {3})), (Ints{1, 2}));
  node.attributes[0].value = std::string("SAME_LOWER");
  EXPECT_EQ(pads(conv_window(node, {1, 1, 6}, {1, 1, 3}, {3})), (Ints{2, 1}));
}

const Node& contraction(const Graph& graph, Role role) {
  for (const Unit& u : graph.units)
    if (u.role == role) return graph.nodes[u.contraction];
  throw std::runtime_error("no such unit");
}

// ResNet's shortcut: 56 x 56, 1 x 1, stride 2 meets elements 0, 2, ..., 54.
TEST(Convolution, StrideThatDoesNotDivide) {
  ForwardGraph f;
  TensorId x = f.input("x", {2, 64, 56, 56});
  TensorId y = f.conv(f.node("Mul", {x, f.parameter("p", {})}, "m", {2, 64, 56, 56}), "down", {128, 64, 1, 1},
                      {2, 128, 28, 28}, {{"strides", Ints{2, 2}}});
  f.output(y);
  TrainingGraph t = build_training_graph(f.graph, {.loss = Loss::mse});
  const Node& dx = contraction(t.graph, Role::input_gradient);
  EXPECT_EQ(dx.op, "ConvTranspose");
  EXPECT_EQ(attribute(dx, "output_padding", Ints{}), (Ints{1, 1}));
  EXPECT_EQ(attribute(dx, "pads", Ints{}), (Ints{0, 0, 0, 0}));
  EXPECT_EQ(t.graph.tensors[dx.outputs[0]].shape, (Shape{2, 64, 56, 56}));
  const Node& dw = contraction(t.graph, Role::weight_gradient);
  EXPECT_EQ(t.graph.tensors[dw.inputs[0]].shape, (Shape{64, 2, 55, 55}));  // the last row and column are met by none
  EXPECT_EQ(t.graph.tensors[dw.inputs[1]].shape, (Shape{128, 2, 28, 28}));
  EXPECT_EQ(attribute(dw, "dilations", Ints{}), (Ints{2, 2}));
  EXPECT_EQ(t.graph.tensors[dw.outputs[0]].shape, (Shape{64, 128, 1, 1}));
}

TEST(Convolution, DepthwiseWeightGradientIsOneNode) {
  ForwardGraph f;
  TensorId y = f.conv(f.input("x", {2, 32, 8, 8}), "dw", {32, 1, 3, 3}, {2, 32, 8, 8},
                      {{"group", int64_t{32}}, {"pads", Ints{1, 1, 1, 1}}});
  f.output(y);
  TrainingGraph t = build_training_graph(f.graph, {.loss = Loss::mse});
  int convolutions = 0;
  for (const Node& n : t.graph.nodes) convolutions += n.phase == Phase::backward && n.op == "Conv";
  EXPECT_EQ(convolutions, 1);
  const Node& dw = contraction(t.graph, Role::weight_gradient);
  EXPECT_EQ(attribute(dw, "group", int64_t{1}), 32);
  EXPECT_EQ(t.graph.tensors[dw.inputs[0]].shape, (Shape{1, 64, 8, 8}));
  EXPECT_EQ(t.graph.tensors[dw.inputs[1]].shape, (Shape{32, 2, 8, 8}));
}

// A borrowed ConvTranspose has no loop nest of its own: it is no contraction of the unit.
TEST(Pooling, AverageIsNoContraction) {
  ForwardGraph f;
  TensorId x = f.node("Mul", {f.input("x", {2, 4, 6, 6}), f.parameter("p", {})}, "m", {2, 4, 6, 6});
  f.output(f.node("AveragePool", {x}, "y", {2, 4, 3, 3}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}));
  TrainingGraph t = build_training_graph(f.graph, {.loss = Loss::mse});
  bool borrowed = false;
  for (const Unit& u : t.graph.units) {
    if (u.op != "AveragePool" || u.phase != Phase::backward) continue;
    for (NodeId n : u.nodes) borrowed = borrowed || t.graph.nodes[n].op == "ConvTranspose";
    EXPECT_EQ(u.contraction, kNone);
    EXPECT_EQ(u.role, Role::gradient);
  }
  EXPECT_TRUE(borrowed);
}

// Attention's two products: both operands come from data, so neither is a weight.
TEST(MatMul, RolesFollowWhatOperandsDependOn) {
  ForwardGraph f;
  TensorId x = f.input("x", {2, 3, 4}), w = f.parameter("w", {4, 4});
  TensorId q = f.node("MatMul", {x, w}, "q", {2, 3, 4});
  TensorId k = f.node("Transpose", {q}, "k", {2, 4, 3}, {{"perm", Ints{0, 2, 1}}});
  f.output(f.node("MatMul", {q, k}, "scores", {2, 3, 3}));
  TrainingGraph t = build_training_graph(f.graph, {.loss = Loss::sum});
  int inputs = 0, weights = 0;
  for (const Unit& u : t.graph.units) {
    inputs += u.role == Role::input_gradient;
    weights += u.role == Role::weight_gradient;
  }
  EXPECT_EQ(inputs, 2);
  EXPECT_EQ(weights, 1);
}

TEST(Glob, Patterns) {
  EXPECT_TRUE(glob_match("*", ""));
  EXPECT_TRUE(glob_match("layer4.*", "layer4.0.conv1.weight"));
  EXPECT_TRUE(glob_match("*.bias", "a.b.bias"));
  EXPECT_TRUE(glob_match("*a*b", "xaxbxab"));
  EXPECT_TRUE(glob_match("l?yer", "layer"));
  EXPECT_FALSE(glob_match("layer4.*", "layer3.0.weight"));
  EXPECT_FALSE(glob_match("*.bias", "bias"));
  EXPECT_FALSE(glob_match("", "x"));
  EXPECT_FALSE(glob_match("?", ""));
  // Hostile patterns stay quadratic at worst.
  EXPECT_FALSE(glob_match(std::string(2000, '*') + "b", std::string(20000, 'a')));
}

TEST(Encode, SixteenBitFloats) {
  auto code = [](double value, DType type) {
    uint16_t bits;
    std::string bytes = encode(value, type);
    std::memcpy(&bits, bytes.data(), 2);
    return bits;
  };
  // IEEE 754 binary16 values by table.
  EXPECT_EQ(code(1, DType::float16), 0x3c00);
  EXPECT_EQ(code(-2, DType::float16), 0xc000);
  EXPECT_EQ(code(65504, DType::float16), 0x7bff);
  EXPECT_EQ(code(65520, DType::float16), 0x7c00);  // rounds to infinity
  EXPECT_EQ(code(1e300, DType::float16), 0x7c00);
  EXPECT_EQ(code(INFINITY, DType::float16), 0x7c00);
  EXPECT_EQ(code(std::ldexp(1, -14), DType::float16), 0x0400);
  EXPECT_EQ(code(std::ldexp(1, -24), DType::float16), 0x0001);
  EXPECT_EQ(code(std::ldexp(1, -25), DType::float16), 0x0000);  // a tie goes to even
  EXPECT_EQ(code(1 + std::ldexp(3, -11), DType::float16), 0x3c02);
  EXPECT_EQ(code(1, DType::bfloat16), 0x3f80);
  EXPECT_EQ(code(1 + std::ldexp(1, -8), DType::bfloat16), 0x3f80);
  EXPECT_EQ(code(1 + std::ldexp(3, -8), DType::bfloat16), 0x3f82);
  for (double value : {0.5, -3.25, 1e-7, 1024.0}) {
    for (DType type : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
      Tensor t;
      t.dtype = type;
      t.data = encode(value, type);
      double back = 0;
      ASSERT_TRUE(known_scalar(t, &back));
      double precision = type == DType::float16 ? 6e-8 : type == DType::bfloat16 ? 4e-10 : 1e-14;
      EXPECT_NEAR(back, value, precision) << value << " as " << name(type);
    }
  }
}

TEST(Precision, BytesPerClass) {
  ForwardGraph f = small_network();
  TrainingGraph t = build_training_graph(f.graph, {.optimizer = Optimizer::adam});
  const Graph& g = t.graph;
  auto total = [&](const char* recipe) {
    Precision p = *precision_named(recipe);
    int64_t parameter = bytes(g, t.parameters[0], p), gradient = bytes(g, t.gradients[0], p), state = 0, statistic = 0;
    for (TensorId i = 0; i < static_cast<TensorId>(g.tensors.size()); ++i) {
      if (g.tensors[i].name == "conv1.weight_adam_m" || g.tensors[i].name == "conv1.weight_adam_v_next")
        state += bytes(g, i, p);
      if (g.tensors[i].name == "bn1.mean" || g.tensors[i].name == "bn1.var_next") statistic += bytes(g, i, p);
    }
    int64_t activation = bytes(g, f.graph.nodes[0].outputs[0], p);
    return Ints{parameter, gradient, state, statistic, activation, bytes(g, g.inputs[1], p)};
  };
  // conv1.weight has 108 elements, conv1's output 512, a running statistic 4; two labels of 8 bytes.
  EXPECT_EQ(total("model"), (Ints{432, 432, 864, 32, 2048, 16}));
  EXPECT_EQ(total("fp32"), (Ints{432, 432, 864, 32, 2048, 16}));
  EXPECT_EQ(total("bf16"), (Ints{216, 216, 432, 32, 1024, 16}));
  EXPECT_EQ(total("mixed_fp16"), (Ints{216, 216, 864, 32, 1024, 16}));
  EXPECT_TRUE(precision_named("mixed_bf16")->master_weights);
  EXPECT_FALSE(precision_named("fp8").has_value());
  EXPECT_EQ(dtype_named("bf16"), DType::bfloat16);
  EXPECT_FALSE(dtype_named("float").has_value());
}

}  // namespace
}  // namespace monet
