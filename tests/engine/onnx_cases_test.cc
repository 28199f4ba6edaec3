// What real ONNX files contain and what must happen: the cases that no other test of this folder holds. The numbers are
// those of the list in ../shared/ONNX_CASES.md; `grep -n "case" tests/engine` finds the others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <set>

#include "engine/analysis/session.h"
#include "engine/workload/work.h"
#include "onnx_builder.h"

namespace monet::test {
namespace {

TrainingGraph train(const Graph& forward) {
  TrainingOptions options;
  options.loss = Loss::sum;
  return build_training_graph(forward, options);
}

BoundModel bind_for_training(const Builder& b) { return bind(b, {.has_rule = has_gradient_rule}); }

TEST(OnnxCases, RebindingRecomputesEverything) {  // case 1
  // Tokens flattened for a Gemm and unflattened again, both targets computed from symbolic dimensions.
  Builder b;
  b.input("x", {"batch", "sequence", 8}).weight("w", {8, 5}).ints("rest", {-1}).ints("eight", {8}).ints("five", {5});
  b.ints("first", {0}).ints("second", {1}).op("Shape", {"x"}, {"s"});
  b.op("Gather", {"s", "first"}, {"n"}).op("Gather", {"s", "second"}, {"t"}).op("Mul", {"n", "t"}, {"nt"});
  b.op("Concat", {"nt", "eight"}, {"flat"}, {attr("axis", 0)});
  b.op("Concat", {"n", "t", "five"}, {"back"}, {attr("axis", 0)});
  b.op("Reshape", {"x", "flat"}, {"rows"}).op("Gemm", {"rows", "w"}, {"p"}).op("Reshape", {"p", "back"}, {"y"});
  b.output("y");
  Model model = open(b);
  BoundModel defaults = model.bind({});
  EXPECT_EQ(tensor(defaults.graph, "y").shape, (Shape{1, 1, 5}));
  ASSERT_EQ(defaults.dims.size(), 2u);
  EXPECT_TRUE(defaults.dims[0].defaulted && defaults.dims[1].defaulted);
  for (int64_t batch : {3, 7}) {
    for (int64_t sequence : {2, 11}) {
      BoundModel bound = model.bind({.dims = {{"sequence", sequence}}, .batch = batch});
      EXPECT_EQ(tensor(bound.graph, "rows").shape, (Shape{batch * sequence, 8}));
      EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{batch, sequence, 5}));
      EXPECT_EQ(integers(tensor(bound.graph, "back")), (std::vector<int64_t>{batch, sequence, 5}));
      EXPECT_EQ(tensor(train(bound.graph).graph, "w_grad").shape, (Shape{8, 5}));
    }
  }
}

int64_t forward_macs(const Graph& graph) {
  int64_t total = 0;
  for (const Unit& unit : graph.units)
    if (unit.role == Role::forward && unit.contraction != kNone) total += loop_nest(graph, unit).macs();
  return total;
}

TEST(OnnxCases, GroupsDivideTheMacs) {  // case 15
  for (int64_t group : {1, 2, 8}) {
    Builder b;
    b.input("x", {2, 8, 6, 6}).weight("w", {8, 8 / group, 3, 3});
    b.op("Conv", {"x", "w"}, {"y"}, {attr("group", group)}).output("y");
    Graph graph = bind_for_training(b).graph;
    EXPECT_EQ(forward_macs(graph), 2 * 8 * (8 / group) * 4 * 4 * 3 * 3) << group;
    // The weight gradient does as many.
    Graph training = train(graph).graph;
    for (const Unit& unit : training.units) {
      if (unit.role != Role::weight_gradient) continue;
      EXPECT_EQ(loop_nest(training, unit).macs(), forward_macs(graph)) << group;
    }
  }
}

TEST(OnnxCases, ControlFlowIsCostedByRoundAndByBranch) {  // case 14
  auto graph = [](const std::vector<Message>& nodes, const std::vector<Message>& inputs,
                  const std::vector<std::string>& outputs) {
    Message g;
    for (const Message& n : nodes) g.message(1, n);
    for (const Message& v : inputs) g.message(11, v);
    for (const std::string& o : outputs) g.message(12, Message().bytes(1, o));
    return g.bytes(2, "body");
  };
  auto report = [](const Builder& b) {
    std::string bytes = b.bytes();
    MemorySource source(bytes);
    return Session(source, "control").analyze(parse_settings("{}"));
  };
  // Five rounds of h <- h * w, with `w` from outside the body.
  Builder loop;
  loop.input("x", {2, 8}).weight("w", {8, 8});
  loop.initializer(tensor_proto("five", DType::int64, {}, raw<int64_t>({5})));
  Message body =
      graph({node("MatMul", {"h", "w"}, {"next"}), node("Identity", {"go"}, {"go_on"})},
            {value_info("i", tensor_type(DType::int64, {})), value_info("go", tensor_type(DType::boolean, {})),
             value_info("h", tensor_type(DType::float32, {2, 8}))},
            {"go_on", "next"});
  loop.op("Loop", {"five", "", "x"}, {"y"}, {attr_graph("body", body)}, "loop").output("y");
  EXPECT_EQ(report(loop)["model"]["forward_macs"], 5 * 2 * 8 * 8);
  EXPECT_EQ(report(loop)["training"]["macs"]["weight_gradient"], 5 * 2 * 8 * 8);
  EXPECT_EQ(report(loop)["training"]["macs"]["input_gradient"], 4 * 2 * 8 * 8);  // the first round reads data
  EXPECT_EQ(report(loop)["model"]["parameters"], 64);

  // The branch that is taken, where that is known; else one operation an element, which is said.
  auto branches = [&](const std::string& condition) {
    Builder b;
    b.input("x", {2, 8}).input("flag", {}, DType::boolean).weight("w", {8, 8}).weight("v", {8, 8});
    b.initializer(tensor_proto("yes", DType::boolean, {}, std::string(1, '\1')));
    Message twice = graph({node("MatMul", {"x", "w"}, {"a"}), node("MatMul", {"a", "v"}, {"out"})}, {}, {"out"});
    Message once = graph({node("MatMul", {"x", "w"}, {"out"})}, {}, {"out"});
    b.op("If", {condition}, {"y"}, {attr_graph("then_branch", twice), attr_graph("else_branch", once)}, "if");
    return report(b.output("y"));
  };
  EXPECT_EQ(branches("yes")["model"]["forward_macs"], 2 * 2 * 8 * 8);
  nlohmann::ordered_json opaque = branches("flag");
  EXPECT_EQ(opaque["model"]["forward_macs"], 0);
  ASSERT_EQ(opaque["layers"].size(), 1u);
  EXPECT_EQ(opaque["layers"][0]["operations"], 2 * 8);
  EXPECT_NE(opaque["warnings"].dump().find("assumed: one operation for each element"), std::string::npos);
}

TEST(OnnxCases, GemmKeepsItsRoles) {  // case 16
  for (int trans_a : {0, 1}) {
    for (int trans_b : {0, 1}) {
      for (const char* c : {"", "c"}) {
        for (float beta : {1.0f, 0.0f}) {
          SCOPED_TRACE(testing::Message() << trans_a << trans_b << c << beta);
          Builder b;
          b.input("data", trans_a ? std::vector<Dim>{6, 4} : std::vector<Dim>{4, 6}).weight("c", {5});
          b.weight("w", trans_b ? Shape{5, 6} : Shape{6, 5}).op("Relu", {"data"}, {"x"});
          b.op("Gemm", {"x", "w", c}, {"y"}, {attr("transA", trans_a), attr("transB", trans_b), attr("beta", beta)});
          b.output("y");
          Graph training = train(bind_for_training(b).graph).graph;
          std::multiset<std::string> roles;
          for (const Unit& unit : training.units) {
            if (unit.op != "Gemm") continue;
            roles.insert(name(unit.role));
            if (unit.role == Role::forward || unit.role == Role::weight_gradient) {
              EXPECT_EQ(loop_nest(training, unit).macs(), 4 * 6 * 5);
            }
          }
          // No gradient for the data; the bias gradient is the only other part.
          std::multiset<std::string> expected = {"forward", "weight_gradient"};
          if (*c) expected.insert("gradient");
          EXPECT_EQ(roles, expected);
          EXPECT_EQ(tensor(training, "w_grad").shape, tensor(training, "w").shape);
        }
      }
    }
  }
}

bool warns(const std::vector<Diagnostic>& warnings, const std::string& code) {
  return std::any_of(warnings.begin(), warnings.end(), [&](const Diagnostic& d) { return d.code == code; });
}

TEST(OnnxCases, QuantisedModelsTrainStraightThroughAndSaySo) {  // case 17
  Builder b;
  b.input("x", {2, 4})
      .weight("w", {4, 3})
      .floats("scale", {0.1f})
      .initializer(tensor_proto("zero", DType::int8, {}, std::string(1, '\0')));
  b.op("QuantizeLinear", {"x", "scale", "zero"}, {"xq"}).op("DequantizeLinear", {"xq", "scale", "zero"}, {"xd"});
  b.op("QuantizeLinear", {"w", "scale", "zero"}, {"wq"}).op("DequantizeLinear", {"wq", "scale", "zero"}, {"wd"});
  b.op("MatMul", {"xd", "wd"}, {"y"}).output("y");
  TrainingGraph training = train(bind_for_training(b).graph);
  EXPECT_EQ(tensor(training.graph, "w_grad").shape, (Shape{4, 3}));
  EXPECT_TRUE(warns(training.warnings, "straight-through"));
  // Where no gradient passes a quantiser there is nothing to say.
  Builder plain;
  plain.input("x", {2, 4})
      .weight("w", {4, 3})
      .floats("scale", {0.1f})
      .initializer(tensor_proto("zero", DType::int8, {}, std::string(1, '\0')));
  plain.op("QuantizeLinear", {"x", "scale", "zero"}, {"xq"}).op("DequantizeLinear", {"xq", "scale", "zero"}, {"xd"});
  plain.op("MatMul", {"xd", "w"}, {"y"}).output("y");
  EXPECT_FALSE(warns(train(bind_for_training(plain).graph).warnings, "straight-through"));
}

TEST(OnnxCases, IntegerConvolutionsAreAnalysed) {  // case 17
  Builder b;
  b.input("x", {1, 4, 8, 8}, DType::uint8).weight("w", {6, 4, 3, 3}, DType::int8);
  for (const char* scale : {"x_scale", "w_scale", "y_scale"}) b.floats(scale, {0.1f});
  b.initializer(tensor_proto("x_zero", DType::uint8, {}, std::string(1, '\0')));
  b.initializer(tensor_proto("w_zero", DType::int8, {}, std::string(1, '\0')));
  b.op("QLinearConv", {"x", "x_scale", "x_zero", "w", "w_scale", "w_zero", "y_scale", "x_zero"}, {"q"});
  b.op("DequantizeLinear", {"q", "y_scale", "x_zero"}, {"y"}).output("y");
  std::string bytes = b.bytes();
  MemorySource source(bytes);
  nlohmann::ordered_json report = Session(source, "quantised").analyze(parse_settings("{}"));
  EXPECT_TRUE(report["training"].is_null());  // there is no float to train
  ASSERT_EQ(report["layers"].size(), 2u);
  EXPECT_EQ(report["layers"][0]["op"], "QLinearConv");
}

TEST(OnnxCases, ThousandsOfNodesTrain) {  // case 23, whose second is printed here, as every speed
  constexpr int kLayers = 1500;
  Builder b;
  b.input("x0", {2, 16});
  for (int i = 0; i < kLayers; ++i) {
    std::string n = std::to_string(i);
    b.weight("w" + n, {16, 16}).op("MatMul", {"x" + n, "w" + n}, {"m" + n}).op("Relu", {"m" + n}, {"r" + n});
    b.op("Add", {"r" + n, "x" + n}, {"a" + n}).op("Identity", {"a" + n}, {"x" + std::to_string(i + 1)});
  }
  b.output("x" + std::to_string(kLayers));
  std::string bytes = b.bytes();
  std::clock_t start = std::clock();
  MemorySource source(bytes);
  Graph forward = Model::open(source, "deep").bind({.has_rule = has_gradient_rule}).graph;
  TrainingGraph training = train(forward);
  double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  std::printf("[ MEASURED ] %zu forward nodes to a training graph of %zu: %.3f s\n", forward.nodes.size(),
              training.graph.nodes.size(), seconds);
  EXPECT_EQ(forward.nodes.size(), 4u * kLayers);
  EXPECT_EQ(training.parameters.size(), static_cast<size_t>(kLayers));
}

}  // namespace
}  // namespace monet::test
