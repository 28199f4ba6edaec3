// Recurrent operators and control flow as plain operators: what they become, and what stays and why. That the result
// computes the same is tested by numbers (tests/numeric).
#include <gtest/gtest.h>

#include <set>

#include "engine/training/training_graph.h"
#include "tests/engine/onnx_builder.h"

namespace monet::test {
namespace {

BoundModel lowered(const Builder& b) { return bind(b, {.has_rule = has_gradient_rule}); }

// The only reason why something stays; "" when there is none.
std::string kept(const BoundModel& bound) {
  std::string all;
  for (const Diagnostic& d : bound.warnings)
    if (d.code == "not-unrolled") all += d.message.substr(d.message.find("gradient: ") + 10);
  return all;
}

int count(const Graph& graph, const std::string& op) {
  int found = 0;
  for (const Node& n : graph.nodes) found += n.op == op;
  return found;
}

void expect_names_once(const Graph& graph) {
  std::set<std::string> names;
  for (const Node& n : graph.nodes) EXPECT_TRUE(n.name.empty() || names.insert(n.name).second) << n.name;
}

Builder lstm(int64_t steps, const std::vector<Message>& attributes = {}, const std::string& lengths = "",
             int64_t directions = 1) {
  std::vector<Message> all = attributes;
  all.push_back(attr("hidden_size", 4));
  Builder b;
  b.input("x", {steps, 2, 3}).weight("w", {directions, 16, 3}).weight("r", {directions, 16, 4});
  b.weight("b", {directions, 32});
  if (lengths == "lengths") b.input("lengths", {2}, DType::int32);
  b.op("LSTM", {"x", "w", "r", "b", lengths}, {"y"}, all, "rnn").output("y");
  return b;
}

TEST(LowerRecurrent, OneGemmForAllInputsAndOnePerStep) {
  BoundModel bound = lowered(lstm(3));
  EXPECT_EQ(count(bound.graph, "LSTM"), 0);
  EXPECT_EQ(count(bound.graph, "Gemm"), 1 + 3);
  EXPECT_EQ(count(bound.graph, "Sigmoid"), 3 * 3);
  EXPECT_EQ(count(bound.graph, "Tanh"), 3 * 2);
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{3, 1, 2, 4}));
  expect_names_once(bound.graph);
  std::string last;
  for (const Node& n : bound.graph.nodes)
    if (n.op == "Tanh") last = n.name;
  EXPECT_EQ(last, "rnn/forward/2/Tanh_1");  // named after what they come from
  ASSERT_EQ(bound.warnings.size(), 1u);
  EXPECT_EQ(bound.warnings[0].message, "LSTM (1 node) is replaced by its steps as plain operators");
  EXPECT_NO_THROW(export_model(bound.graph));
}

TEST(LowerRecurrent, NodesGrowLinearlyWithSteps) {
  size_t a = lowered(lstm(100)).graph.nodes.size(), b = lowered(lstm(200)).graph.nodes.size();
  size_t c = lowered(lstm(400)).graph.nodes.size();
  EXPECT_EQ(c - b, 2 * (b - a));
  EXPECT_EQ(b - a, 100 * 11u);
}

TEST(LowerRecurrent, WithoutTrainingItStaysOneNode) { EXPECT_EQ(operators(bind(lstm(3)).graph), "LSTM"); }

TEST(LowerRecurrent, WhatStaysAndWhy) {
  EXPECT_EQ(kept(lowered(lstm(3, {attr("clip", 1.0f)}))), "it clips its gates");
  EXPECT_EQ(kept(lowered(lstm(3, {}, "lengths"))), "its sequence_lens are not constant");
  Builder some = lstm(3, {}, "some"), full = lstm(3, {}, "full");
  some.initializer(tensor_proto("some", DType::int32, {2}, raw<int32_t>({3, 2})));
  full.initializer(tensor_proto("full", DType::int32, {2}, raw<int32_t>({3, 3})));
  EXPECT_EQ(kept(lowered(some)), "its sequences (sequence_lens) are not all of full length");
  EXPECT_EQ(kept(lowered(full)), "");
  EXPECT_EQ(kept(lowered(lstm(100000))), "its 100000 steps would become too many nodes");
  BoundModel bound = lowered(lstm(3, {attr("clip", 1.0f)}));
  EXPECT_EQ(operators(bound.graph), "LSTM");
  ASSERT_EQ(bound.warnings.size(), 1u);
  EXPECT_EQ(bound.warnings[0].node, "rnn");
  Message activations = Message().bytes(1, "activations");
  for (const char* name : {"Sigmoid", "ScaledTanh", "Tanh"}) activations.bytes(9, name);
  EXPECT_EQ(kept(lowered(lstm(3, {activations.number(20, 8)}))), "its activation ScaledTanh takes parameters");
}

TEST(LowerRecurrent, TwoOfOneNameGetNamesOfTheirOwn) {
  Builder b;
  b.input("x", {3, 2, 4}).weight("w", {1, 4, 4}).weight("r", {1, 4, 4});
  b.op("RNN", {"x", "w", "r"}, {"", "h"}, {attr("hidden_size", 4)}, "rnn");
  b.op("RNN", {"x", "w", "r"}, {"", "g"}, {attr("hidden_size", 4)}, "rnn");
  b.op("Add", {"h", "g"}, {"y"}).output("y");
  BoundModel bound = lowered(b);
  EXPECT_EQ(count(bound.graph, "Gemm"), 2 * (1 + 3));
  expect_names_once(bound.graph);
}

Message graph_of(const std::vector<Message>& nodes, const std::vector<Message>& inputs,
                 const std::vector<std::string>& outputs, const std::vector<Message>& initializers = {}) {
  Message g;
  for (const Message& n : nodes) g.message(1, n);
  g.bytes(2, "body");
  for (const Message& t : initializers) g.message(5, t);
  for (const Message& v : inputs) g.message(11, v);
  for (const std::string& o : outputs) g.message(12, Message().bytes(1, o));
  return g;
}

Message scalar_input(const std::string& name, DType type) { return value_info(name, tensor_type(type, {})); }

// h <- Relu(h * w), rows of h given out; `w` is stored in the body. `go_on`: the condition that the body gives out.
Builder loop(const std::string& trips, const std::string& condition, const Message& go_on) {
  Message body = graph_of({go_on, node("Mul", {"h", "w"}, {"m"}, {}, "times"), node("Relu", {"m"}, {"next"})},
                          {scalar_input("i", DType::int64), scalar_input("go", DType::boolean),
                           value_info("h", tensor_type(DType::float32, {300}))},
                          {"go_on", "next", "m"}, {tensor_proto("w", DType::float32, {300}, "", false)});
  Builder b;
  b.input("x", {300}).input("n", {}, DType::int64).input("flag", {}, DType::boolean);
  b.initializer(tensor_proto("four", DType::int64, {}, raw<int64_t>({4})));
  b.initializer(tensor_proto("zero", DType::int64, {}, raw<int64_t>({0})));
  b.initializer(tensor_proto("million", DType::int64, {}, raw<int64_t>({1000000})));
  b.initializer(tensor_proto("yes", DType::boolean, {}, std::string(1, '\1')));
  b.initializer(tensor_proto("no", DType::boolean, {}, std::string(1, '\0')));
  b.op("Loop", {trips, condition, "x"}, {"last", "rows"}, {attr_graph("body", body)}, "loop");
  return b.output("last").output("rows");
}
Message passed_on() { return node("Identity", {"go"}, {"go_on"}); }

TEST(LowerLoop, RoundsOneAfterTheOther) {
  for (const char* condition : {"", "yes"}) {
    BoundModel bound = lowered(loop("four", condition, passed_on()));
    EXPECT_EQ(count(bound.graph, "Loop"), 0);
    EXPECT_EQ(count(bound.graph, "Relu"), 4);
    EXPECT_EQ(count(bound.graph, "Mul"), 4);
    EXPECT_EQ(tensor(bound.graph, "rows").shape, (Shape{4, 300}));
    expect_names_once(bound.graph);
    // The weight is one tensor that all rounds read.
    std::set<TensorId> weights;
    for (const Node& n : bound.graph.nodes)
      if (n.op == "Mul") weights.insert(n.inputs[1]);
    ASSERT_EQ(weights.size(), 1u);
    EXPECT_EQ(bound.graph.tensors[*weights.begin()].kind, TensorKind::parameter);
    EXPECT_NO_THROW(export_model(bound.graph));
    EXPECT_NO_THROW(build_training_graph(bound.graph, {}));
  }
}

// What a Loop makes has no shape that ONNX could tell, so one that stays is refused, and the hint says why it stays.
TEST(LowerLoop, WhatIsRefusedAndWhy) {
  auto hint = [](const Builder& b) {
    std::vector<Diagnostic> problems = refusal([&] { lowered(b); });
    return problems.empty() ? "" : codes(problems) + ": " + problems[0].hint;
  };
  EXPECT_EQ(hint(loop("four", "yes", passed_on())), "");
  EXPECT_EQ(hint(loop("n", "yes", passed_on())),
            "unknown-shape: its trip count depends on the data; export with fixed lengths and conditions");
  std::string condition = "unknown-shape: its condition depends on the data; export with fixed lengths and conditions";
  EXPECT_EQ(hint(loop("four", "flag", passed_on())), condition);
  EXPECT_EQ(hint(loop("four", "yes", node("Identity", {"flag"}, {"go_on"}))), condition);
  std::string none = "unknown-shape: it has no rounds, and what it would stack has no known shape; ";
  EXPECT_EQ(hint(loop("zero", "yes", passed_on())), none + "export with fixed lengths and conditions");
  EXPECT_EQ(hint(loop("four", "no", passed_on())), none + "export with fixed lengths and conditions");
  EXPECT_EQ(hint(loop("million", "yes", passed_on())),
            "unknown-shape: its rounds would become too many nodes; export with fixed lengths and conditions");
}

// As TensorFlow's while loops come: a counter of its own, compared with a limit.
TEST(LowerLoop, ConditionsThatCountAreFollowed) {
  auto model = [](int64_t limit, const std::string& trips) {
    Message body = graph_of({node("Add", {"count", "one"}, {"counted"}), node("Less", {"counted", "limit"}, {"go_on"}),
                             node("Relu", {"h"}, {"next"})},
                            {scalar_input("i", DType::int64), scalar_input("go", DType::boolean),
                             scalar_input("count", DType::int32), value_info("h", tensor_type(DType::float32, {3}))},
                            {"go_on", "counted", "next", "next"});
    Builder b;
    b.input("x", {3}).initializer(tensor_proto("start", DType::int32, {}, raw<int32_t>({2})));
    b.initializer(tensor_proto("one", DType::int32, {}, raw<int32_t>({1})));
    b.initializer(tensor_proto("limit", DType::int32, {}, raw<int32_t>({static_cast<int32_t>(limit)})));
    b.initializer(tensor_proto("four", DType::int64, {}, raw<int64_t>({4})));
    b.op("Less", {"start", "limit"}, {"first"});
    b.op("Loop", {trips, "first", "start", "x"}, {"", "last", "rows"}, {attr_graph("body", body)}, "loop");
    return b.output("last").output("rows");
  };
  EXPECT_EQ(count(lowered(model(7, "")).graph, "Relu"), 5);      // 2, 3, ..., 6
  EXPECT_EQ(count(lowered(model(7, "four")).graph, "Relu"), 4);  // the trip count comes first
  EXPECT_EQ(count(lowered(model(3, "four")).graph, "Relu"), 1);
  EXPECT_EQ(refusal([&] { lowered(model(1 << 30, "")); })[0].hint,
            "its rounds would become too many nodes; export with fixed lengths and conditions");
}

TEST(LowerIf, TheTakenBranch) {
  auto model = [](const std::string& condition) {
    auto branch = [](const char* op) { return graph_of({node(op, {"h"}, {"out"})}, {}, {"out"}); };
    Builder b;
    b.input("x", {5}).input("flag", {}, DType::boolean);
    b.initializer(tensor_proto("yes", DType::boolean, {}, std::string(1, '\1')));
    b.initializer(tensor_proto("no", DType::boolean, {}, std::string(1, '\0')));
    b.op("Relu", {"x"}, {"h"});
    b.op("If", {condition}, {"y"},
         {attr_graph("then_branch", branch("Abs")), attr_graph("else_branch", branch("Neg"))});
    return b.output("y");
  };
  EXPECT_EQ(operators(lowered(model("yes")).graph), "Relu Abs");
  EXPECT_EQ(operators(lowered(model("no")).graph), "Relu Neg");
  EXPECT_EQ(operators(lowered(model("flag")).graph), "Relu If");
  EXPECT_EQ(kept(lowered(model("flag"))),
            "its condition depends on the data; assumed: one operation for each element it makes");
}

TEST(LowerIf, BranchThatGivesOutANameFromOutsideTwice) {
  Message branch = graph_of({node("Abs", {"x"}, {"a"})}, {}, {"h", "a", "a"});
  Builder b;
  b.input("x", {5}).initializer(tensor_proto("yes", DType::boolean, {}, std::string(1, '\1')));
  b.op("Relu", {"x"}, {"h"});
  b.op("If", {"yes"}, {"p", "q", "r"}, {attr_graph("then_branch", branch), attr_graph("else_branch", branch)});
  BoundModel bound = lowered(b.output("p").output("q").output("r"));
  EXPECT_EQ(operators(bound.graph), "Relu Abs Identity Identity");
}

TEST(LowerScan, SlicesInBothDirections) {
  for (int backwards : {0, 1}) {
    Message body = graph_of(
        {node("Add", {"s", "slice"}, {"next"}), node("Relu", {"next"}, {"out"})},
        {value_info("s", tensor_type(DType::float32, {2})), value_info("slice", tensor_type(DType::float32, {2}))},
        {"next", "out"});
    Builder b;
    b.input("x", {2, 3}).input("s0", {2});
    b.op("Scan", {"s0", "x"}, {"last", "rows"},
         {attr_graph("body", body), attr("num_scan_inputs", 1), attr("scan_input_axes", std::vector<int64_t>{-1}),
          attr("scan_input_directions", std::vector<int64_t>{backwards})});
    BoundModel bound = lowered(b.output("last").output("rows"));
    EXPECT_EQ(tensor(bound.graph, "rows").shape, (Shape{3, 2}));
    const Graph& g = bound.graph;
    std::vector<int> order;  // which part of the Split each Add meets, through its Squeeze
    for (const Node& n : g.nodes) {
      if (n.op != "Add") continue;
      TensorId slice = g.nodes[g.tensors[n.inputs[1]].producer].inputs[0];
      const Node& split = g.nodes[g.tensors[slice].producer];
      for (size_t i = 0; i < split.outputs.size(); ++i)
        if (split.outputs[i] == slice) order.push_back(static_cast<int>(i));
    }
    EXPECT_EQ(order, backwards ? (std::vector<int>{2, 1, 0}) : (std::vector<int>{0, 1, 2}));
  }
}

TEST(LowerGroupNorm, OldScalesAreRepeatedForChannels) {
  Builder b(18);
  b.input("x", {2, 6, 4}).weight("scale", {2}).weight("bias", {2});
  b.op("GroupNormalization", {"x", "scale", "bias"}, {"y"}, {attr("num_groups", 2)}).output("y");
  BoundModel bound = lowered(b);
  EXPECT_EQ(count(bound.graph, "Expand"), 2);
  const Node& norm = bound.graph.nodes.back();
  EXPECT_EQ(bound.graph.tensors[norm.inputs[1]].shape, (Shape{6}));
}

TEST(LowerPool, GlobalNormPoolBecomesAPoolOfTheWholeImage) {
  BoundModel bound =
      lowered(Builder().input("x", {2, 3, 4, 5}).op("GlobalLpPool", {"x"}, {"y"}, {attr("p", 3)}).output("y"));
  EXPECT_EQ(operators(bound.graph), "LpPool");
  EXPECT_EQ(attribute(bound.graph.nodes[0], "kernel_shape", std::vector<int64_t>{}), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(attribute(bound.graph.nodes[0], "p", int64_t{0}), 3);
}

}  // namespace
}  // namespace monet::test
