// What trains and what is recomputed: selection, adapters, recomputation. Their numbers:
// tests/numeric/options.test.mjs.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/training/recompute.h"
#include "engine/training/selection.h"
#include "engine/training/training_graph.h"
#include "tests/engine/training_models.h"

namespace monet {
namespace {

using Names = std::vector<std::string>;

Names names(const Graph& graph, const std::vector<TensorId>& tensors) {
  Names result;
  for (TensorId t : tensors) result.push_back(graph.tensors[t].name);
  return result;
}

Names trained(const TrainingOptions& options) {
  TrainingGraph t = build_training_graph(small_network().graph, options);
  return names(t.graph, t.parameters);
}

Names codes(const TrainingOptions& options) {
  try {
    build_training_graph(small_network().graph, options);
  } catch (const Refusal& refusal) {
    Names result;
    for (const Diagnostic& d : refusal.problems()) result.push_back(d.code);
    return result;
  }
  return {};
}

size_t nodes_of(const Graph& graph, Phase phase) {
  return static_cast<size_t>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return n.phase == phase; }));
}

TEST(Selection, LastLayersGoByNamesUpToTheLastDot) {
  EXPECT_EQ(trained({.last_layers = 1}), (Names{"fc.weight", "fc.bias"}));
  EXPECT_EQ(trained({.last_layers = 3}), (Names{"bn1.weight", "bn1.bias", "conv2.weight", "fc.weight", "fc.bias"}));
  EXPECT_EQ(trained({.last_layers = 99}).size(), 6u);
  EXPECT_EQ(trained({.freeze = {"fc.*"}, .last_layers = 1}), Names{"conv2.weight"});
}

TEST(Selection, LastLayersWithoutDottedNamesGoByNode) {
  ForwardGraph f;
  TensorId y = f.node("MatMul", {f.input("x", {2, 4}), f.parameter("w", {4, 4})}, "first", {2, 4});
  f.output(f.node("MatMul", {y, f.parameter("v", {4, 4})}, "second", {2, 4}));
  TrainingGraph t = build_training_graph(f.graph, {.last_layers = 1});
  EXPECT_EQ(names(t.graph, t.parameters), Names{"v"});
}

TEST(Selection, BiasesAreWhatLayersAdd) {
  EXPECT_EQ(trained({.biases_only = true}), (Names{"bn1.bias", "fc.bias"}));
  EXPECT_EQ(codes({.train = {"conv*"}, .biases_only = true}), (Names{"no-bias", "nothing-to-train"}));
  // A linear layer as PyTorch exports it: MatMul and Add. What is no vector (positions) is no bias, nor what scales.
  ForwardGraph f;
  TensorId y = f.node("MatMul", {f.input("x", {2, 3, 4}), f.parameter("w", {4, 4})}, "m", {2, 3, 4});
  y = f.node("Add", {f.parameter("bias", {4}), y}, "added", {2, 3, 4});
  y = f.node("Add", {y, f.parameter("positions", {1, 3, 4})}, "placed", {2, 3, 4});
  f.output(f.node("Mul", {y, f.parameter("scale", {4})}, "scaled", {2, 3, 4}));
  TrainingGraph t = build_training_graph(f.graph, {.biases_only = true});
  EXPECT_EQ(names(t.graph, t.parameters), Names{"bias"});
}

TEST(Selection, TheBackboneOfATrainedHeadHasNoBackwardNodes) {
  TrainingGraph t = build_training_graph(small_network().graph, {.last_layers = 1});
  for (const Node& node : t.graph.nodes)
    if (node.phase == Phase::backward) {
      EXPECT_EQ(label(t.graph, node.origin), "fc");
    }
}

TEST(Adapters, OneConvolutionOrProductDownAndOneUp) {
  ForwardGraph f;
  TensorId x = f.input("x", {2, 6, 8, 8});
  TensorId y = f.conv(
      x, "grouped", {4, 3, 3, 3}, {2, 4, 4, 4},
      {{"group", int64_t{2}}, {"strides", std::vector<int64_t>{2, 2}}, {"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  y = f.node("Flatten", {y}, "flat", {2, 64});
  f.output(f.linear(y, "fc", 10));
  TrainingGraph t = build_training_graph(f.graph, {.lora_rank = 3});
  EXPECT_EQ(names(t.graph, t.parameters),
            (Names{"grouped.weight.lora_A", "grouped.weight.lora_B", "fc.weight.lora_A", "fc.weight.lora_B"}));
  auto shape = [&](size_t i) { return t.graph.tensors[t.parameters[i]].shape; };
  EXPECT_EQ(shape(0), (Shape{6, 3, 3, 3}));  // rank per group
  EXPECT_EQ(shape(1), (Shape{4, 3, 1, 1}));
  EXPECT_EQ(shape(2), (Shape{64, 3}));
  EXPECT_EQ(shape(3), (Shape{3, 10}));
  EXPECT_EQ(nodes_of(t.graph, Phase::forward), 3u + 2 * 3);
  // The frozen weights have no gradient: only what the adapters and what passes through needs.
  for (const Unit& unit : t.graph.units)
    if (unit.role == Role::weight_gradient) {
      EXPECT_NE(t.graph.tensors[unit.target].name.find("lora_"), std::string::npos);
    }
  EXPECT_EQ(codes({.train = {"bn1.*"}, .lora_rank = 3}), (Names{"no-weight-to-adapt", "nothing-to-train"}));
}

TEST(Recompute, CopiesTheSliceFromTheNearestKeptTensorsOnce) {
  Graph forward = small_network().graph;
  TrainingGraph kept = build_training_graph(forward, {});
  Names saved = names(kept.graph, saved_for_backward(kept.graph));
  ASSERT_EQ(std::count(saved.begin(), saved.end(), "relu1"), 1);
  TrainingGraph t = build_training_graph(forward, {.recompute = {"relu1"}});
  Names left = names(t.graph, saved_for_backward(t.graph));
  EXPECT_EQ(std::count(left.begin(), left.end(), "relu1"), 0);
  // relu1 is bn1 of conv1, which its own gradient keeps: two units, whoever reads the copies.
  Names copied;
  for (const Unit& unit : t.graph.units)
    if (unit.phase == Phase::recompute) copied.push_back(label(t.graph, unit.origin));
  EXPECT_EQ(copied, (Names{"bn1", "relu1"}));
  // In order: every node's inputs are made before it, and a unit's nodes lie together.
  std::vector<bool> made(t.graph.tensors.size());
  for (size_t i = 0; i < made.size(); ++i) made[i] = t.graph.tensors[i].producer == kNone;
  for (const Node& node : t.graph.nodes) {
    for (TensorId in : node.inputs) EXPECT_TRUE(in == kNone || made[in]) << node.op;
    for (TensorId out : node.outputs)
      if (out != kNone) made[out] = true;
  }
  EXPECT_EQ(t.graph.outputs.size(), kept.graph.outputs.size());
}

TEST(TrainingGraph, WhatOptionsAddClashesWithNoNameOfTheModel) {
  ForwardGraph f;
  TensorId x = f.input("recompute_constant", {4, 8});
  TensorId ratio = f.tensor("ratio", {}, TensorKind::constant, DType::float32, std::string("\0\0\0\x3f", 4));
  TensorId training = f.tensor("training", {}, TensorKind::constant, DType::boolean, "\1");
  TensorId y = f.linear(x, "fc", 8);
  y = f.node("Dropout", {y, ratio, training}, "drop", {4, 8});
  for (const char* name : {"fc_base", "fc.weight.lora_A", "fc.weight.lora", "drop_mask", "drop_1"})
    y = f.same("Relu", y, name);
  for (const char* name : {"drop_recomputed", "drop_recomputed/Where"}) y = f.linear(y, name, 8);
  f.output(y);
  TrainingGraph t =
      build_training_graph(f.graph, {.lora_rank = 2, .recompute = {"fc.weight.lora_A", "drop_mask", "drop_1"}});
  std::set<std::string> unique;
  for (const Tensor& tensor : t.graph.tensors) EXPECT_TRUE(unique.insert(tensor.name).second) << tensor.name;
  EXPECT_GT(nodes_of(t.graph, Phase::recompute), 0u);
}

TEST(Recompute, RefusesWhatIsNotSaved) {
  EXPECT_EQ(codes({.recompute = {"relu1", "flat", "nowhere"}}), (Names{"not-saved", "not-saved"}));
}

}  // namespace
}  // namespace monet
