// Operators without a gradient rule: one problem per operator, and the ways around them.
#include <gtest/gtest.h>

#include <set>

#include "engine/training/training_graph.h"
#include "tests/engine/training_models.h"

namespace monet {
namespace {

// x -> fc1 [2, 4] -> three Mystery -> Riddle (another shape if `other_shape`) -> fc2 [2, 3]
ForwardGraph chain(bool other_shape = false) {
  ForwardGraph f;
  TensorId y = f.linear(f.input("x", {2, 4}), "fc1", 4);
  for (const char* name : {"m1", "m2", "m3"}) {
    y = f.same("Mystery", y, name);
    f.graph.nodes.back().domain = "com.example";
  }
  y = f.node("Riddle", {y}, "r", {2, other_shape ? 5 : 4});
  f.output(f.linear(y, "fc2", 3));
  return f;
}

std::set<std::string> trained(const TrainingGraph& t) {
  std::set<std::string> names;
  for (TensorId p : t.parameters) names.insert(t.graph.tensors[p].name);
  return names;
}

TEST(Unsupported, EveryOperatorOnceWithItsCountAndAnExample) {
  try {
    build_training_graph(chain().graph, {});
    FAIL();
  } catch (const Refusal& refused) {
    ASSERT_EQ(refused.problems().size(), 2u);
    const Diagnostic &riddle = refused.problems()[0], &mystery = refused.problems()[1];
    EXPECT_EQ(riddle.message, "operator Riddle (node r) has no gradient rule");
    EXPECT_EQ(mystery.message, "operator com.example.Mystery (3 nodes, the first m1) has no gradient rule");
    EXPECT_EQ(mystery.node, "m1");
    for (const Diagnostic& d : refused.problems()) {
      EXPECT_EQ(d.code, "no-gradient");
      for (const char* way : {"freeze", "stop", "pass"}) EXPECT_NE(d.hint.find(way), std::string::npos) << way;
    }
  }
}

TEST(Unsupported, StoppedGradientsTrainOnlyWhatComesAfter) {
  TrainingGraph t = build_training_graph(chain().graph, {.unsupported = Unsupported::stop});
  EXPECT_EQ(trained(t), (std::set<std::string>{"fc2.weight", "fc2.bias"}));
  // Nothing is computed towards where the gradient stops: weight and bias gradient of fc2 only.
  for (const Unit& unit : t.graph.units) {
    if (unit.phase != Phase::backward) continue;
    EXPECT_EQ(t.graph.nodes[unit.origin].name, "fc2");
    EXPECT_NE(unit.role, Role::input_gradient);
  }
  ASSERT_EQ(t.warnings.size(), 2u);
  EXPECT_EQ(t.warnings[0].code, "gradient-stopped");
  EXPECT_NE(t.warnings[1].message.find("3 nodes"), std::string::npos);
}

TEST(Unsupported, PassedGradientsGoThroughUnchanged) {
  TrainingGraph t = build_training_graph(chain().graph, {.unsupported = Unsupported::pass});
  EXPECT_EQ(trained(t), (std::set<std::string>{"fc1.weight", "fc1.bias", "fc2.weight", "fc2.bias"}));
  // No backward unit comes from the unknown operators: fc1's gradient reads what fc2's input gradient made.
  TensorId made = kNone;
  for (const Unit& unit : t.graph.units) {
    if (unit.phase != Phase::backward) continue;
    const std::string& origin = t.graph.nodes[unit.origin].name;
    EXPECT_TRUE(origin == "fc1" || origin == "fc2") << origin;
    if (unit.role == Role::input_gradient && origin == "fc2") made = t.graph.nodes[unit.nodes.back()].outputs[0];
  }
  ASSERT_NE(made, kNone);
  bool read = false;
  for (const Unit& unit : t.graph.units)
    if (unit.role == Role::weight_gradient && t.graph.nodes[unit.origin].name == "fc1")
      for (NodeId n : unit.nodes)
        for (TensorId in : t.graph.nodes[n].inputs) read = read || in == made;
  EXPECT_TRUE(read);
  ASSERT_EQ(t.warnings.size(), 2u);
  EXPECT_EQ(t.warnings[0].code, "gradient-passed");
  EXPECT_NE(t.warnings[0].message.find("assumed"), std::string::npos);
}

TEST(Unsupported, NothingPassesBetweenDifferentShapes) {
  TrainingGraph t = build_training_graph(chain(true).graph, {.unsupported = Unsupported::pass});
  EXPECT_EQ(trained(t), (std::set<std::string>{"fc2.weight", "fc2.bias"}));
}

TEST(Unsupported, StoppedBeforeEveryParameterLeavesNothingToTrain) {
  ForwardGraph f;
  f.output(f.same("Mystery", f.linear(f.input("x", {2, 4}), "fc", 3), "m"));
  for (Unsupported choice : {Unsupported::stop, Unsupported::refuse}) {
    try {
      build_training_graph(f.graph, {.unsupported = choice});
      FAIL();
    } catch (const Refusal& refused) {
      EXPECT_EQ(refused.problems()[0].code, choice == Unsupported::stop ? "nothing-to-train" : "no-gradient");
    }
  }
}

// A variant that a rule refuses is treated as an operator without a rule.
TEST(Unsupported, RefusedVariants) {
  ForwardGraph f;
  TensorId x = f.linear(f.input("x", {2, 4}), "fc1", 4);
  TensorId mode = f.tensor("mode", {}, TensorKind::input, DType::boolean);
  TensorId y = f.node("Dropout", {x, kNone, mode}, "drop", {2, 4});
  f.output(f.linear(y, "fc2", 3));
  EXPECT_EQ(trained(build_training_graph(f.graph, {.unsupported = Unsupported::stop})).size(), 2u);
  TrainingGraph passed = build_training_graph(f.graph, {.unsupported = Unsupported::pass});
  EXPECT_EQ(trained(passed).size(), 4u);
  EXPECT_NE(passed.warnings[0].message.find("training_mode"), std::string::npos);
}

}  // namespace
}  // namespace monet
