#include <gtest/gtest.h>

#include "engine/workload/operations.h"
#include "engine/workload/work.h"

namespace monet {
namespace {

// A graph written as it is read: tensors by name, nodes in order, one unit per node unless said otherwise.
struct Builder {
  Graph graph;
  std::map<std::string, TensorId> names;

  TensorId tensor(const std::string& name, Shape shape, TensorKind kind = TensorKind::computed,
                  DType dtype = DType::float32) {
    Tensor t;
    t.name = name;
    t.shape = std::move(shape);
    t.kind = kind;
    t.dtype = dtype;
    return names[name] = graph.add(std::move(t));
  }
  NodeId node(const std::string& op, const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
              std::vector<Attribute> attributes = {}) {
    Node n;
    n.op = op;
    for (const std::string& name : inputs) n.inputs.push_back(name.empty() ? kNone : names.at(name));
    for (const std::string& name : outputs) n.outputs.push_back(name.empty() ? kNone : names.at(name));
    n.attributes = std::move(attributes);
    return graph.add(std::move(n));
  }
  // A contraction with operands and result of these shapes; returns its forward unit.
  Unit contraction(const std::string& op, Shape first, Shape second, Shape result,
                   std::vector<Attribute> attributes = {}) {
    std::string tag = std::to_string(graph.nodes.size());
    tensor("a" + tag, std::move(first));
    tensor("b" + tag, std::move(second));
    tensor("y" + tag, std::move(result));
    Unit unit;
    unit.origin = unit.contraction = node(op, {"a" + tag, "b" + tag}, {"y" + tag}, std::move(attributes));
    unit.nodes = {unit.origin};
    return unit;
  }
};

Attribute ints(const char* name, std::vector<int64_t> values) { return {name, std::move(values)}; }
Attribute integer(const char* name, int64_t value) { return {name, value}; }
Attribute text(const char* name, const char* value) { return {name, std::string(value)}; }

// "B=1 K=64 ... | C FX FY"
std::string show(const LoopNest& nest) {
  std::string result;
  for (const Loop& loop : nest.loops) result += loop.dim + "=" + std::to_string(loop.size) + " ";
  result += "|";
  for (const std::string& dim : nest.reduction) result += " " + dim;
  return result;
}

Unit gradient(Unit unit, const Graph& graph, int operand, Role role) {
  unit.role = role;
  unit.target = graph.nodes[unit.origin].inputs[operand];
  return unit;
}

TEST(LoopNest, ConvInThreeRoles) {
  Builder b;
  Unit unit = b.contraction("Conv", {2, 3, 224, 220}, {64, 3, 7, 5}, {2, 64, 112, 110},
                            {ints("strides", {2, 2}), ints("kernel_shape", {7, 5})});
  const std::string loops = "B=2 K=64 G=1 OX=110 OY=112 C=3 FX=5 FY=7 |";
  EXPECT_EQ(show(loop_nest(b.graph, unit)), loops + " C FX FY");
  EXPECT_EQ(show(loop_nest(b.graph, gradient(unit, b.graph, 0, Role::input_gradient))), loops + " K FX FY");
  EXPECT_EQ(show(loop_nest(b.graph, gradient(unit, b.graph, 1, Role::weight_gradient))), loops + " B OX OY");
  // A weight that depends on data has an "input" gradient, of the other operand all the same.
  EXPECT_EQ(show(loop_nest(b.graph, gradient(unit, b.graph, 1, Role::input_gradient))), loops + " B OX OY");
  EXPECT_EQ(loop_nest(b.graph, unit).macs(), int64_t{2} * 64 * 110 * 112 * 3 * 5 * 7);
}

TEST(LoopNest, ConvGroupsAndRanks) {
  Builder b;
  Unit grouped = b.contraction("Conv", {1, 32, 8, 8}, {64, 8, 3, 3}, {1, 64, 8, 8}, {integer("group", 4)});
  EXPECT_EQ(show(loop_nest(b.graph, grouped)), "B=1 K=16 G=4 OX=8 OY=8 C=8 FX=3 FY=3 | C FX FY");
  Unit depthwise = b.contraction("Conv", {1, 32, 8, 8}, {32, 1, 3, 3}, {1, 32, 8, 8}, {integer("group", 32)});
  EXPECT_EQ(show(loop_nest(b.graph, depthwise)), "B=1 K=1 G=32 OX=8 OY=8 C=1 FX=3 FY=3 | C FX FY");
  Unit line = b.contraction("Conv", {1, 4, 100}, {8, 4, 5}, {1, 8, 96});
  EXPECT_EQ(show(loop_nest(b.graph, line)), "B=1 K=8 G=1 OY=96 C=4 FY=5 | C FY");
  EXPECT_EQ(show(loop_nest(b.graph, gradient(line, b.graph, 1, Role::weight_gradient))),
            "B=1 K=8 G=1 OY=96 C=4 FY=5 | B OY");
  Unit volume = b.contraction("Conv", {1, 4, 9, 8, 7}, {6, 4, 3, 2, 1}, {1, 6, 7, 7, 7});
  EXPECT_EQ(show(loop_nest(b.graph, volume)), "B=1 K=6 G=1 OX=7 OY=7 OZ=7 C=4 FX=1 FY=2 FZ=3 | C FX FY FZ");
}

// ConvTranspose from 8 channels at 5x6 to 4 channels: every one of its 8 x 5 x 6 inputs meets 4 x 3 x 3 weights.
TEST(LoopNest, ConvTransposeIsTheGradientOfAConv) {
  Builder b;
  Unit unit = b.contraction("ConvTranspose", {2, 8, 5, 6}, {8, 4, 3, 3}, {2, 4, 11, 13}, {ints("strides", {2, 2})});
  const std::string loops = "B=2 K=8 G=1 OX=6 OY=5 C=4 FX=3 FY=3 |";
  EXPECT_EQ(show(loop_nest(b.graph, unit)), loops + " K FX FY");
  EXPECT_EQ(show(loop_nest(b.graph, gradient(unit, b.graph, 0, Role::input_gradient))), loops + " C FX FY");
  EXPECT_EQ(show(loop_nest(b.graph, gradient(unit, b.graph, 1, Role::weight_gradient))), loops + " B OX OY");
  EXPECT_EQ(loop_nest(b.graph, unit).macs(), 2 * 8 * 5 * 6 * 4 * 3 * 3);
  Unit grouped = b.contraction("ConvTranspose", {1, 8, 5, 5}, {8, 3, 2, 2}, {1, 6, 10, 10}, {integer("group", 2)});
  EXPECT_EQ(show(loop_nest(b.graph, grouped)), "B=1 K=4 G=2 OX=5 OY=5 C=3 FX=2 FY=2 | K FX FY");
}

TEST(LoopNest, Gemm) {
  Builder b;
  for (int64_t ta : {0, 1}) {
    for (int64_t tb : {0, 1}) {
      Unit unit = b.contraction("Gemm", ta ? Shape{7, 5} : Shape{5, 7}, tb ? Shape{3, 7} : Shape{7, 3}, {5, 3},
                                {integer("transA", ta), integer("transB", tb)});
      EXPECT_EQ(show(loop_nest(b.graph, unit)), "B=1 D=5 C=7 K=3 | C") << ta << tb;
      EXPECT_EQ(show(loop_nest(b.graph, gradient(unit, b.graph, 0, Role::input_gradient))), "B=1 D=5 C=7 K=3 | K");
      EXPECT_EQ(show(loop_nest(b.graph, gradient(unit, b.graph, 1, Role::weight_gradient))), "B=1 D=5 C=7 K=3 | D");
    }
  }
}

TEST(LoopNest, MatMulBroadcasts) {
  Builder b;
  auto nest = [&](Shape x, Shape y) { return show(loop_nest(b.graph, b.contraction("MatMul", x, y, {}))); };
  EXPECT_EQ(nest({5, 7}, {7, 3}), "B=1 D=5 C=7 K=3 | C");
  EXPECT_EQ(nest({2, 12, 64, 16}, {2, 12, 16, 64}), "B=24 D=64 C=16 K=64 | C");
  EXPECT_EQ(nest({2, 197, 768}, {768, 3072}), "B=1 D=394 C=768 K=3072 | C");  // rank-2 weight
  EXPECT_EQ(nest({64, 32}, {6, 32, 10}), "B=1 D=64 C=32 K=60 | C");           // the left operand is shared
  EXPECT_EQ(nest({8, 1, 5, 7}, {9, 7, 3}), "B=1 D=40 C=7 K=27 | C");          // rows and columns both
  EXPECT_EQ(nest({8, 4, 5, 7}, {4, 7, 3}), "B=4 D=40 C=7 K=3 | C");
  EXPECT_EQ(nest({7}, {7, 3}), "B=1 D=1 C=7 K=3 | C");
  EXPECT_EQ(nest({5, 7}, {7}), "B=1 D=5 C=7 K=1 | C");
  EXPECT_EQ(nest({7}, {7}), "B=1 D=1 C=7 K=1 | C");
  Unit scores = b.contraction("MatMul", {4, 5, 7}, {4, 7, 3}, {4, 5, 3});
  EXPECT_EQ(loop_nest(b.graph, gradient(scores, b.graph, 0, Role::input_gradient)).reduction[0], "K");
  EXPECT_EQ(loop_nest(b.graph, gradient(scores, b.graph, 1, Role::input_gradient)).reduction[0], "D");
}

TEST(LoopNest, EinsumLetterByLetter) {
  Builder b;
  auto unit = [&](const char* equation, Shape x, Shape y) {
    return b.contraction("Einsum", x, y, {}, {text("equation", equation)});
  };
  auto nest = [&](const char* equation, Shape x, Shape y) { return show(loop_nest(b.graph, unit(equation, x, y))); };
  EXPECT_EQ(nest("ij,jk->ik", {5, 7}, {7, 3}), "B=1 D=5 C=7 K=3 | C");
  EXPECT_EQ(nest("kj, ij", {3, 7}, {5, 7}), "B=1 D=3 C=7 K=5 | C");  // ik by the alphabet
  EXPECT_EQ(nest("bhqd,bhkd->bhqk", {2, 12, 64, 16}, {2, 12, 32, 16}), "B=24 D=64 C=16 K=32 | C");
  EXPECT_EQ(nest("...i,oi->...o", {2, 197, 768}, {3072, 768}), "B=1 D=394 C=768 K=3072 | C");
  EXPECT_EQ(nest("...ij,...jk->...ik", {8, 1, 5, 7}, {1, 9, 7, 3}), "B=1 D=40 C=7 K=27 | C");
  Unit scores = unit("bqd,bkd->bqk", {4, 5, 7}, {4, 3, 7});
  EXPECT_EQ(show(loop_nest(b.graph, gradient(scores, b.graph, 0, Role::input_gradient))), "B=4 D=5 C=7 K=3 | K");
  EXPECT_EQ(show(loop_nest(b.graph, gradient(scores, b.graph, 1, Role::input_gradient))), "B=4 D=5 C=7 K=3 | D");
}

TEST(LoopNest, HostileShapesSaturate) {
  Builder b;
  Unit unit = b.contraction("MatMul", {INT64_MAX, 3}, {3, INT64_MAX}, {INT64_MAX, INT64_MAX});
  EXPECT_EQ(loop_nest(b.graph, unit).macs(), INT64_MAX);
  Unit empty = b.contraction("MatMul", {0, 3}, {3, INT64_MAX}, {0, INT64_MAX});
  EXPECT_EQ(loop_nest(b.graph, empty).macs(), 0);
}

// ResNet-18 at batch 1 and 224x224 as torchvision builds it: stem, four stages of two blocks, classifier.
TEST(LoopNest, ResNet18Counts) {
  Builder b;
  std::vector<Unit> units = {b.contraction("Conv", {1, 3, 224, 224}, {64, 3, 7, 7}, {1, 64, 112, 112})};
  int64_t in = 64, size = 56;
  for (int64_t out : {64, 128, 256, 512}) {
    int64_t stride = out == 64 ? 1 : 2, next = size / stride;
    units.push_back(b.contraction("Conv", {1, in, size, size}, {out, in, 3, 3}, {1, out, next, next}));
    for (int i = 0; i < 3; ++i)
      units.push_back(b.contraction("Conv", {1, out, next, next}, {out, out, 3, 3}, {1, out, next, next}));
    if (stride == 2) units.push_back(b.contraction("Conv", {1, in, size, size}, {out, in, 1, 1}, {1, out, next, next}));
    in = out;
    size = next;
  }
  units.push_back(b.contraction("Gemm", {1, 512}, {1000, 512}, {1, 1000}, {integer("transB", 1)}));
  int64_t forward = 0, input = 0, weight = 0;
  for (size_t i = 0; i < units.size(); ++i) {
    forward += loop_nest(b.graph, units[i]).macs();
    weight += loop_nest(b.graph, gradient(units[i], b.graph, 1, Role::weight_gradient)).macs();
    if (i > 0) input += loop_nest(b.graph, gradient(units[i], b.graph, 0, Role::input_gradient)).macs();
  }
  EXPECT_EQ(units.size(), 21u);
  EXPECT_EQ(forward, 1814073344);
  EXPECT_EQ(weight, 1814073344);
  EXPECT_EQ(input, 1696059392);
}

// One node with inputs and outputs of the shapes given.
int64_t cost(const std::string& op, const std::vector<Shape>& in, const std::vector<Shape>& out,
             std::vector<Attribute> attributes = {}) {
  Builder b;
  std::vector<std::string> inputs, outputs;
  for (size_t i = 0; i < in.size(); ++i) b.tensor(inputs.emplace_back("i" + std::to_string(i)), in[i]);
  for (size_t i = 0; i < out.size(); ++i) b.tensor(outputs.emplace_back("o" + std::to_string(i)), out[i]);
  return operations(b.graph, b.node(op, inputs, outputs, std::move(attributes)));
}

TEST(Operations, ByHand) {
  EXPECT_EQ(cost("Add", {{2, 3}, {3}}, {{2, 3}}), 6);
  EXPECT_EQ(cost("Div", {{2, 3}, {3}}, {{2, 3}}), 30);  // reciprocal 4, multiply 1
  EXPECT_EQ(cost("Sqrt", {{10}}, {{10}}), 50);
  EXPECT_EQ(cost("Exp", {{10}}, {{10}}), 50);
  EXPECT_EQ(cost("Sigmoid", {{10}}, {{10}}), 100);  // exp 5, add 1, reciprocal 4
  EXPECT_EQ(cost("Tanh", {{10}}, {{10}}), 120);     // exp 5, add 1, reciprocal 4, multiply, subtract
  EXPECT_EQ(cost("Erf", {{1}}, {{1}}), 25);         // 7 + 9 + 7 + 2
  EXPECT_EQ(cost("Sum", {{8}, {8}, {8}}, {{8}}), 16);
  EXPECT_EQ(cost("ReduceSum", {{4, 25}}, {{4}}), 100);   // inputs count
  EXPECT_EQ(cost("ReduceMean", {{4, 25}}, {{4}}), 104);  // and one factor for each mean
  EXPECT_EQ(cost("MaxPool", {{1, 2, 8, 8}}, {{1, 2, 4, 4}}, {ints("kernel_shape", {3, 3})}), 32 * 9);
  EXPECT_EQ(cost("AveragePool", {{1, 2, 8, 8}}, {{1, 2, 4, 4}}, {ints("kernel_shape", {2, 2})}), 32 * 5);
  EXPECT_EQ(cost("GlobalAveragePool", {{1, 2, 8, 8}}, {{1, 2, 1, 1}}), 128 + 2);
  EXPECT_EQ(cost("BatchNormalization", {{2, 3, 4, 4}}, {{2, 3, 4, 4}}), 96 * 2);
  EXPECT_EQ(cost("BatchNormalization", {{2, 3, 4, 4}}, {{2, 3, 4, 4}}, {integer("training_mode", 1)}), 96 * 6);
  EXPECT_EQ(cost("Softmax", {{4, 10}}, {{4, 10}}), 40 * 9 + 4 * 4);
  EXPECT_EQ(cost("Softmax", {{4, 10}}, {{4, 10}}, {integer("axis", 0)}), 40 * 9 + 10 * 4);
  EXPECT_EQ(cost("Resize", {{1, 1, 2, 2}}, {{1, 1, 4, 4}}), 0);
  EXPECT_EQ(cost("Resize", {{1, 1, 2, 2}}, {{1, 1, 4, 4}}, {text("mode", "linear")}), 16 * 9);  // three lerps of 3
  EXPECT_EQ(cost("ScatterElements", {{100}, {7}, {7}}, {{100}}, {text("reduction", "add")}), 7);
  EXPECT_EQ(cost("ScatterElements", {{100}, {7}, {7}}, {{100}}), 0);
  EXPECT_EQ(cost("Einsum", {{2, 3, 4}, {2, 4, 5}}, {{2, 3, 5}}, {text("equation", "bij,bjk->bik")}), 2 * 60);  // MACs
  EXPECT_EQ(cost("Einsum", {{2, 3, 4}, {4}}, {{2, 3}}, {text("equation", "bij,j->bi")}), 24 * 2);  // a vector
  EXPECT_EQ(cost("Einsum", {{3}, {4}}, {{3, 4}}, {text("equation", "i,j->ij")}), 12);              // products only
  EXPECT_EQ(cost("Einsum", {{7, 3, 4}}, {{7}}, {text("equation", "...ij")}), 0);                   // moves only
  EXPECT_EQ(cost("Einsum", {{3, 3}}, {{}}, {text("equation", "ii->")}), 3);
  // Rows 2 and 3 lose column 1: a division, 2 multiplications, 2 subtractions each; row 3 column 2: 5 + 1 + 1; 2
  // products.
  EXPECT_EQ(cost("Det", {{4, 3, 3}}, {{4}}), 4 * (2 * (5 + 4) + (5 + 2) + 2));
  EXPECT_EQ(cost("Det", {{1, 1}}, {{}}), 0);
}

TEST(Operations, SamplingTransformsAndRecurrence) {
  EXPECT_EQ(cost("AffineGrid", {{2, 2, 3}, {4}}, {{2, 4, 5, 2}}), 80 * 4);  // two products, two sums
  EXPECT_EQ(cost("Col2Im", {{1, 12, 9}, {2}, {2}}, {{1, 3, 4, 4}}), 108);
  // 6 points: 2 axes of 5, 4 weights of one product; 18 outputs: 4 multiply-adds.
  EXPECT_EQ(cost("GridSample", {{1, 3, 4, 5}, {1, 2, 3, 2}}, {{1, 3, 2, 3}}), 6 * 14 + 18 * 8);
  EXPECT_EQ(cost("GridSample", {{1, 3, 4, 5}, {1, 2, 3, 2}}, {{1, 3, 2, 3}}, {text("mode", "nearest")}),
            6 * (2 * 3) + 18 * 2);
  EXPECT_EQ(cost("DFT", {{2, 8, 2}}, {{2, 8, 2}}), 2 * 5 * 8 * 3);
  EXPECT_EQ(cost("STFT", {{1, 24, 1}, {}}, {{1, 5, 5, 2}}), 5 * (5 * 8 * 3 + 8));  // 5 bins of 8: one-sided
  // 5 steps of 2 samples; gates times inputs and states; then LSTM 3 sigmoids, 2 tanh and 4 per unit, ...
  EXPECT_EQ(cost("LSTM", {{5, 2, 3}, {1, 16, 3}, {1, 16, 4}}, {{5, 1, 2, 4}}), 10 * (16 * 7 + 4 * 58));
  EXPECT_EQ(cost("GRU", {{5, 2, 3}, {2, 12, 3}, {2, 12, 4}}, {{5, 2, 2, 4}}), 20 * (12 * 7 + 4 * 36));
  EXPECT_EQ(cost("RNN", {{5, 2, 3}, {1, 4, 3}, {1, 4, 4}}, {{5, 1, 2, 4}}), 10 * (4 * 7 + 4 * 12));
}

TEST(Operations, DataMovementIsFree) {
  for (const char* op : {"Transpose", "Concat", "Split", "Slice", "Pad", "Gather", "Expand", "Reshape", "Tile"})
    EXPECT_EQ(cost(op, {{4, 4}}, {{4, 4}}), 0) << op;
}

// ConvTranspose with a kernel of ones inside the gradient of an average pooling: one addition per product.
TEST(Operations, StrayContractionsCountTheirProducts) {
  EXPECT_EQ(cost("ConvTranspose", {{6, 1, 4, 4}, {1, 1, 2, 2}}, {{6, 1, 8, 8}}), 6 * 16 * 4);
}

TEST(Operations, UnknownOperatorsCountOnePerOutput) {
  EXPECT_EQ(cost("Frobnicate", {{100}}, {{3}, {4}}), 7);
  Node node;
  node.op = "Add";
  EXPECT_TRUE(has_operation_cost(node));
  node.domain = "com.example";
  EXPECT_FALSE(has_operation_cost(node));
}

// Operators of ai.onnx at opset 22 that are left to the default: sequences, strings, subgraphs, images, signal
// processing, random numbers, recurrent layers, integer contractions, detection.
TEST(Operations, TableCoversOnnx) {
  const char* all =
      "Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization BitShift BitwiseAnd "
      "BitwiseNot BitwiseOr BitwiseXor Cast Ceil Compress Concat Constant ConstantOfShape Conv ConvTranspose Cos Cosh "
      "CumSum DepthToSpace DequantizeLinear Div Dropout Equal Erf Exp Expand EyeLike Flatten Floor Gather "
      "GatherElements "
      "GatherND Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater Hardmax Identity InstanceNormalization IsInf "
      "IsNaN LRN Less Log LpNormalization LpPool MatMul Max MaxPool MaxUnpool Mean Min Mod Mul Neg NonZero Not OneHot "
      "Or "
      "Pad Pow QuantizeLinear Reciprocal ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Reshape Resize "
      "ReverseSequence Round Scatter ScatterElements ScatterND Shape Sigmoid Sign Sin Sinh Size Slice SpaceToDepth "
      "Split "
      "Sqrt Squeeze Sub Sum Tan Tanh Tile TopK Transpose Trilu Unsqueeze Upsample Where Xor Bernoulli CastLike Celu "
      "CenterCropPad Clip DynamicQuantizeLinear Elu Gelu GreaterOrEqual GroupNormalization HardSigmoid HardSwish "
      "LayerNormalization LeakyRelu LessOrEqual LogSoftmax MeanVarianceNormalization Mish NegativeLogLikelihoodLoss "
      "PRelu "
      "Range ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceSumSquare Relu Selu Shrink Softmax "
      "SoftmaxCrossEntropyLoss Softplus Softsign ThresholdedRelu ";
  std::string name;
  for (const char* c = all; *c; ++c) {
    if (*c != ' ') {
      name += *c;
      continue;
    }
    Node node;
    node.op = name;
    EXPECT_TRUE(has_operation_cost(node)) << name;
    name.clear();
  }
}

std::vector<std::string> tensor_names(const Graph& graph, const std::vector<TensorId>& ids) {
  std::vector<std::string> result;
  for (TensorId t : ids) result.push_back(graph.tensors[t].name);
  return result;
}
using Names = std::vector<std::string>;

TEST(Work, ViewsResolveToWhatTheyAlias) {
  Builder b;
  b.tensor("x", {2, 6}, TensorKind::input);
  b.tensor("target", {1}, TensorKind::constant, DType::int64);
  b.tensor("flat", {12});
  b.tensor("same", {12});
  b.tensor("y", {12});
  b.tensor("out", {3, 4});
  b.node("Reshape", {"x", "target"}, {"flat"});
  b.node("Identity", {"flat"}, {"same"});
  b.node("Relu", {"same"}, {"y"});
  b.node("Reshape", {"y", "target"}, {"out"});
  b.graph.outputs = {b.names["out"]};
  assign_single_units(b.graph);
  std::vector<TensorId> own = storage(b.graph);
  EXPECT_EQ(own[b.names["same"]], b.names["x"]);
  EXPECT_EQ(own[b.names["out"]], b.names["y"]);
  std::vector<Work> all = works(b.graph);
  ASSERT_EQ(all.size(), 4u);
  EXPECT_TRUE(all[0].view);
  EXPECT_TRUE(all[0].reads.empty());
  EXPECT_TRUE(all[0].writes.empty());
  EXPECT_FALSE(all[2].view);
  EXPECT_EQ(tensor_names(b.graph, all[2].reads), Names{"x"});
  EXPECT_EQ(tensor_names(b.graph, all[2].writes), Names{"y"});  // outlives through its view, a graph output
  EXPECT_TRUE(all[3].writes.empty());
  EXPECT_EQ(all[2].operations, 12);
}

TEST(Work, WhatStaysInsideAUnitIsNoTraffic) {
  Builder b;
  b.tensor("x", {4, 4}, TensorKind::input);
  b.tensor("w", {4, 4}, TensorKind::parameter);
  b.tensor("wt", {4, 4});
  b.tensor("y", {4, 4});
  b.tensor("unused", {4, 4});
  b.tensor("z", {4, 4});
  b.node("Transpose", {"w"}, {"wt"});
  b.node("MatMul", {"x", "wt"}, {"y"});
  b.node("Split", {"y"}, {"z", "unused"});
  b.graph.outputs = {b.names["z"]};
  Unit unit;
  unit.nodes = {0, 1};
  unit.origin = unit.contraction = 1;
  b.graph.units = {unit};
  b.graph.nodes[0].unit = b.graph.nodes[1].unit = 0;
  assign_single_units(b.graph);
  std::vector<Work> all = works(b.graph);
  EXPECT_EQ(tensor_names(b.graph, all[0].reads), (Names{"w", "x"}));
  EXPECT_EQ(tensor_names(b.graph, all[0].writes), Names{"y"});
  EXPECT_EQ(all[0].macs, 64);
  EXPECT_EQ(all[0].operations, 0);
  EXPECT_EQ(tensor_names(b.graph, all[1].writes), Names{"z"});  // nobody reads the other half
  Work alone = work(b.graph, b.graph.units[0]);
  EXPECT_EQ(alone.reads, all[0].reads);
  EXPECT_EQ(alone.writes, all[0].writes);
}

TEST(Work, SelectingOperatorsReadWhatTheyGiveOut) {
  Builder b;
  b.tensor("table", {50257, 768}, TensorKind::parameter);
  b.tensor("ids", {1, 8}, TensorKind::input, DType::int64);
  b.tensor("rows", {1, 8, 768});
  b.tensor("more", {100000, 768});
  b.tensor("dims", {3}, TensorKind::computed, DType::int64);
  b.node("Gather", {"table", "ids"}, {"rows"});
  b.node("Gather", {"table", "ids"}, {"more"});
  b.node("Shape", {"rows"}, {"dims"});
  b.graph.outputs = {b.names["rows"], b.names["dims"]};
  assign_single_units(b.graph);
  std::vector<Work> all = works(b.graph);
  EXPECT_EQ(all[0].read_elements, (std::vector<int64_t>{8 * 768, 8}));
  EXPECT_EQ(all[1].read_elements[0], int64_t{50257} * 768);  // never more than there is
  EXPECT_TRUE(all[2].reads.empty());                         // only the shape is asked
}

}  // namespace
}  // namespace monet
