// Structure of training graphs: phases, units, origins, what is saved, what trains, what is refused.
#include "engine/training/training_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "engine/onnx/model.h"
#include "engine/training/gradient_rules.h"
#include "tests/engine/training_models.h"

namespace monet {
namespace {

std::vector<std::string> names(const Graph& graph, const std::vector<TensorId>& tensors) {
  std::vector<std::string> result;
  for (TensorId t : tensors) result.push_back(graph.tensors[t].name);
  return result;
}

std::vector<std::string> saved_names(const TrainingGraph& t) { return names(t.graph, saved_for_backward(t.graph)); }

using Names = std::vector<std::string>;

// What holds of every training graph.
void check_structure(const Graph& forward, const TrainingGraph& training) {
  const Graph& g = training.graph;
  ASSERT_GE(g.nodes.size(), forward.nodes.size());
  std::vector<bool> available(g.tensors.size());
  for (size_t t = 0; t < g.tensors.size(); ++t)
    available[t] = g.tensors[t].kind != TensorKind::computed && g.tensors[t].producer == kNone;
  for (size_t id = 0; id < g.nodes.size(); ++id) {
    const Node& node = g.nodes[id];
    if (id < forward.nodes.size()) {
      EXPECT_EQ(node.phase, Phase::forward);
      EXPECT_EQ(node.op, forward.nodes[id].op);
    }
    if (id > 0) {
      EXPECT_LE(g.nodes[id - 1].phase, node.phase) << "phases follow each other";
    }
    if (node.phase == Phase::backward) {
      ASSERT_GE(node.origin, 0);
      EXPECT_LT(node.origin, static_cast<NodeId>(forward.nodes.size()));
    } else {
      EXPECT_EQ(node.origin, kNone);
    }
    for (TensorId t : node.inputs) {
      if (t != kNone) {
        EXPECT_TRUE(available[t]) << label(g, id) << " reads " << g.tensors[t].name << " before it is made";
      }
    }
    for (TensorId t : node.outputs) {
      if (t == kNone) continue;
      EXPECT_EQ(g.tensors[t].producer, static_cast<NodeId>(id));
      available[t] = true;
    }
  }
  // Units: every node in exactly one, contiguous, in execution order.
  NodeId next = 0;
  for (size_t u = 0; u < g.units.size(); ++u) {
    const Unit& unit = g.units[u];
    ASSERT_FALSE(unit.nodes.empty());
    for (NodeId id : unit.nodes) {
      EXPECT_EQ(id, next++);
      EXPECT_EQ(g.nodes[id].unit, static_cast<UnitId>(u));
      EXPECT_EQ(g.nodes[id].phase, unit.phase);
    }
    bool operand = unit.role == Role::input_gradient || unit.role == Role::weight_gradient;
    if (operand) {
      ASSERT_NE(unit.contraction, kNone);
      EXPECT_TRUE(is_contraction(g.nodes[unit.contraction]));
      EXPECT_NE(unit.target, kNone);
    } else if (unit.role == Role::update && unit.target != kNone) {
      EXPECT_EQ(g.tensors[unit.target].kind, TensorKind::parameter);
    }
  }
  EXPECT_EQ(next, static_cast<NodeId>(g.nodes.size()));
  std::set<std::string> unique;
  for (const Tensor& t : g.tensors) {
    EXPECT_FALSE(t.name.empty());
    EXPECT_TRUE(unique.insert(t.name).second) << t.name << " twice";
  }
  ASSERT_EQ(training.gradients.size(), training.parameters.size());
  for (size_t i = 0; i < training.parameters.size(); ++i) {
    EXPECT_EQ(g.tensors[training.gradients[i]].of, training.parameters[i]);
    EXPECT_EQ(g.tensors[training.gradients[i]].shape, g.tensors[training.parameters[i]].shape);
    EXPECT_EQ(g.tensors[training.gradients[i]].name, g.tensors[training.parameters[i]].name + "_grad");
  }
  for (TensorId t : g.outputs) EXPECT_TRUE(available[t]);
}

TEST(TrainingGraph, StructureHoldsForEveryOptimizer) {
  ForwardGraph f = small_network();
  for (Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam}) {
    TrainingGraph t = build_training_graph(f.graph, {.optimizer = optimizer});
    check_structure(f.graph, t);
    int states = 0;
    for (const Tensor& tensor : t.graph.tensors) states += tensor.kind == TensorKind::state;
    int per_parameter = optimizer == Optimizer::sgd ? 0 : optimizer == Optimizer::momentum ? 1 : 2;
    EXPECT_EQ(states, per_parameter * 6);  // conv1, bn1 (2), conv2, fc (2)
  }
}

TEST(TrainingGraph, InputsAndOutputsInOrder) {
  ForwardGraph f = small_network();
  TrainingGraph t = build_training_graph(f.graph, {.optimizer = Optimizer::momentum});
  EXPECT_EQ(names(t.graph, t.graph.inputs),
            (Names{"x", "labels", "conv1.weight", "bn1.weight", "bn1.bias", "conv2.weight", "fc.weight", "fc.bias",
                   "bn1.mean", "bn1.var", "conv1.weight_momentum", "bn1.weight_momentum", "bn1.bias_momentum",
                   "conv2.weight_momentum", "fc.weight_momentum", "fc.bias_momentum", "learning_rate"}));
  Names outputs = names(t.graph, t.graph.outputs);
  EXPECT_EQ(outputs.size(), 1 + 2 + 12u);
  EXPECT_EQ(outputs[0], "loss");
  EXPECT_EQ(outputs[1], "bn1.mean_next");
  EXPECT_EQ(outputs[2], "bn1.var_next");
  EXPECT_EQ(t.graph.tensors[t.graph.outputs[1]].of, f.graph.nodes[1].inputs[3]);
}

TEST(TrainingGraph, UnitsOfContractions) {
  ForwardGraph f = small_network();
  TrainingGraph t = build_training_graph(f.graph, {});
  std::vector<std::string> units;
  for (const Unit& u : t.graph.units) {
    if (u.phase == Phase::backward) units.push_back(label(t.graph, u.origin) + " " + name(u.role));
  }
  // Reverse order; bias, then weight, then input gradient; the first convolution has no input gradient.
  EXPECT_EQ(units, (Names{"fc gradient", "fc weight_gradient", "fc input_gradient", "flat gradient",
                          "conv2 weight_gradient", "conv2 input_gradient", "pool gradient", "relu1 gradient",
                          "bn1 gradient", "conv1 weight_gradient"}));
}

// Read by hand: what each rule needs, tensors shared by two rules once.
TEST(SavedForBackward, SmallNetwork) {
  TrainingGraph t = build_training_graph(small_network().graph, {});
  // x (conv1), conv1 (batch norm), relu1 (its own gradient), pool (conv2), conv2 (fc reads its flattened view), the
  // logits (loss) and the indices of the pooling.
  EXPECT_EQ(saved_names(t), (Names{"x", "conv1", "relu1", "pool", "conv2", "fc", "pool_1"}));
  int64_t total = 0;
  for (TensorId s : saved_for_backward(t.graph)) total += bytes(t.graph.tensors[s]);
  EXPECT_EQ(total, 4 * (2 * 3 * 64 + 2 * 4 * 64 + 2 * 4 * 64 + 2 * 4 * 16 + 2 * 6 * 16 + 20) + 8 * 2 * 4 * 16);
}

TEST(SavedForBackward, ActivationsReadTheirOutput) {
  for (const char* op : {"Relu", "Clip", "Sigmoid", "Softmax", "LogSoftmax", "Tanh", "Elu", "Selu", "Celu", "LeakyRelu",
                         "HardSigmoid", "Softsign", "ThresholdedRelu", "Shrink", "Exp", "Sqrt", "Reciprocal", "Tan"}) {
    ForwardGraph f;
    TensorId x = f.input("x", {4, 8});
    TensorId low = f.tensor("low", {}, TensorKind::constant, DType::float32, std::string(4, '\0'));
    TensorId before = f.linear(x, "fc1", 16);
    TensorId after =
        op == std::string("Clip") ? f.node("Clip", {before, low}, "act", {4, 16}) : f.same(op, before, "act");
    f.output(f.linear(after, "fc2", 3));
    TrainingGraph t = build_training_graph(f.graph, {});
    EXPECT_EQ(saved_names(t), (Names{"x", "act", "fc2"})) << op;
  }
}

TEST(SavedForBackward, OthersReadTheirInputOrNothing) {
  auto saved = [](const char* op) {
    ForwardGraph f;
    TensorId before = f.linear(f.input("x", {4, 8}), "fc1", 16);
    f.output(f.linear(f.same(op, before, "act"), "fc2", 3));
    return saved_names(build_training_graph(f.graph, {}));
  };
  for (const char* op : {"Gelu", "HardSwish", "Mish", "Softplus", "Erf", "Log", "Sin", "Cos", "Abs"})
    EXPECT_EQ(saved(op), (Names{"x", "fc1", "act", "fc2"})) << op;
  EXPECT_EQ(saved("Neg"), (Names{"x", "act", "fc2"}));
}

// A maximum of two needs both, to compare them; its output only if the next operator does.
TEST(SavedForBackward, MaximumOfTwoReadsItsOperands) {
  ForwardGraph f;
  TensorId x = f.input("x", {4, 8});
  TensorId largest = f.node("Max", {f.linear(x, "fc1", 8), f.parameter("floor", {8})}, "max", {4, 8});
  f.output(largest);
  EXPECT_EQ(saved_names(build_training_graph(f.graph, {.loss = Loss::sum})), (Names{"x", "fc1", "max"}));
}

TEST(SavedForBackward, SumsSaveNothingAndDropoutItsMask) {
  ForwardGraph f;
  TensorId x = f.input("x", {4, 8});
  TensorId a = f.linear(x, "fc1", 8);
  TensorId sum = f.node("Add", {a, x}, "sum", {4, 8});
  TensorId ratio = f.tensor("ratio", {}, TensorKind::constant, DType::float32, std::string("\0\0\0\x3f", 4));  // 0.5
  TensorId on = f.tensor("on", {}, TensorKind::constant, DType::boolean, std::string(1, '\1'));
  TensorId dropped = f.node("Dropout", {sum, ratio, on}, "drop", {4, 8});
  f.output(f.node("ReduceMean", {dropped}, "mean", {}, {{"keepdims", int64_t{0}}}));
  TrainingGraph t = build_training_graph(f.graph, {.loss = Loss::sum});
  check_structure(f.graph, t);
  EXPECT_EQ(saved_names(t), (Names{"x", "mean", "drop_1"}));
  EXPECT_EQ(bytes(t.graph.tensors[saved_for_backward(t.graph).back()]), 32);  // one byte an element
}

TEST(SavedForBackward, OnlyWhatTrainedParametersNeed) {
  TrainingGraph t = build_training_graph(small_network().graph, {.train = {"fc.*"}});
  EXPECT_EQ(saved_names(t), (Names{"conv2", "fc"}));
  t = build_training_graph(small_network().graph, {.train = {"*.bias"}});
  // The bias of bn1 needs the way back to it, but neither the input of a convolution nor that of the linear layer.
  EXPECT_EQ(saved_names(t), (Names{"relu1", "fc", "pool_1"}));
}

TEST(Selection, TrainAndFreeze) {
  Graph forward = small_network().graph;
  auto trained = [&](std::vector<std::string> train, std::vector<std::string> freeze) {
    TrainingGraph t = build_training_graph(forward, {.train = std::move(train), .freeze = std::move(freeze)});
    check_structure(forward, t);
    return names(t.graph, t.parameters);
  };
  EXPECT_EQ(trained({}, {}), (Names{"conv1.weight", "bn1.weight", "bn1.bias", "conv2.weight", "fc.weight", "fc.bias"}));
  EXPECT_EQ(trained({"conv?.*"}, {}), (Names{"conv1.weight", "conv2.weight"}));
  EXPECT_EQ(trained({"*.weight"}, {"bn*", "conv1*"}), (Names{"conv2.weight", "fc.weight"}));
  EXPECT_EQ(trained({}, {"conv*"}), (Names{"bn1.weight", "bn1.bias", "fc.weight", "fc.bias"}));
}

TEST(Selection, TheBackwardGraphShrinks) {
  Graph forward = small_network().graph;
  auto backward_units = [&](std::vector<std::string> train) {
    TrainingGraph t = build_training_graph(forward, {.train = std::move(train)});
    return std::count_if(t.graph.units.begin(), t.graph.units.end(),
                         [](const Unit& u) { return u.phase == Phase::backward; });
  };
  EXPECT_EQ(backward_units({"fc.bias"}), 1);
  EXPECT_EQ(backward_units({"fc.*"}), 2);
  EXPECT_EQ(backward_units({"conv2.weight"}), 3);  // fc input gradient, flatten, conv2 weight gradient
}

Names problems_of(const Graph& forward, const TrainingOptions& options) {
  Names result;
  try {
    build_training_graph(forward, options);
  } catch (const Refusal& refusal) {
    for (const Diagnostic& d : refusal.problems()) {
      result.push_back(d.code + " " + d.node + d.tensor);
      EXPECT_FALSE(d.message.empty());
      EXPECT_EQ(d.message.find('\n'), std::string::npos);
      EXPECT_FALSE(d.hint.empty());
    }
  }
  return result;
}

TEST(Refusals, EverythingAtOnce) {  // case 19
  ForwardGraph f;
  TensorId x = f.input("x", {2, 3, 8, 8});
  TensorId y = f.conv(x, "conv", {4, 3, 1, 1}, {2, 4, 8, 8});
  y = f.node("LpPool", {y}, "pool", {2, 4, 4, 4}, {{"p", int64_t{0}}});
  y = f.same("Riddle", y, "riddle");
  TensorId mode = f.tensor("mode", {}, TensorKind::input, DType::boolean);
  y = f.node("Dropout", {y, kNone, mode}, "drop", {2, 4, 4, 4});
  y = f.same("Mystery", y, "mystery");
  f.graph.nodes.back().domain = "com.example";
  f.output(y);
  EXPECT_EQ(problems_of(f.graph, {.train = {"nothing*"}, .freeze = {"*", "no?"}}),
            (Names{"unmatched-pattern train", "unmatched-pattern freeze", "nothing-to-train mystery"}));
  EXPECT_EQ(problems_of(f.graph, {.freeze = {"no?"}}),
            (Names{"unmatched-pattern freeze", "no-gradient mystery", "no-gradient drop", "no-gradient riddle",
                   "no-gradient pool"}));
  // An operator without a rule that no trained parameter needs is no problem.
  ForwardGraph g;
  TensorId z = g.same("Mystery", g.input("x", {2, 4}), "mystery");
  g.output(g.linear(z, "fc", 3));
  EXPECT_EQ(problems_of(g.graph, {}), Names{});
}

TEST(Refusals, Outputs) {
  Graph forward = small_network().graph;
  EXPECT_EQ(problems_of(forward, {.output = "nowhere"}), Names{"no-such-output nowhere"});
  forward.outputs.clear();
  EXPECT_EQ(problems_of(forward, {}), Names{"no-float-output "});
  ForwardGraph f;
  f.output(f.same("Relu", f.input("x", {2, 3}), "y"));
  EXPECT_EQ(problems_of(f.graph, {}), Names{"no-parameters y"});
  ForwardGraph scalar;
  TensorId x = scalar.linear(scalar.input("x", {2, 3}), "fc", 3);
  scalar.output(scalar.node("ReduceSum", {x}, "sum", {}, {{"keepdims", int64_t{0}}}));
  EXPECT_EQ(problems_of(scalar.graph, {.loss = Loss::cross_entropy}), Names{"no-classes losssum"});
}

TEST(Gradients, TiedParametersAreSummedInPairs) {  // case 22
  ForwardGraph f;
  TensorId x = f.input("x", {4, 5}), w = f.parameter("w", {5, 5});
  for (int i = 0; i < 3; ++i)
    x = f.same("Relu", f.node("MatMul", {x, w}, "m" + std::to_string(i), {4, 5}), "r" + std::to_string(i));
  f.output(x);
  TrainingGraph t = build_training_graph(f.graph, {.optimizer = Optimizer::adam});
  check_structure(f.graph, t);
  ASSERT_EQ(names(t.graph, t.parameters), Names{"w"});
  int sums = 0;
  for (const Unit& u : t.graph.units) {
    if (u.role != Role::accumulate) continue;
    ++sums;
    EXPECT_EQ(t.graph.nodes[u.nodes[0]].inputs.size(), 2u);
  }
  EXPECT_EQ(sums, 2);
  EXPECT_EQ(t.graph.nodes[t.graph.tensors[t.gradients[0]].producer].op, "Sum");
}

TEST(Gradients, ParameterGradientsAreTensorsOfTheirOwn) {
  ForwardGraph f;
  TensorId a = f.parameter("a", {4, 5}), b = f.parameter("b", {4, 5});
  TensorId sum = f.node("Add", {a, b}, "sum", {4, 5});
  f.output(f.node("Add", {sum, f.input("x", {4, 5})}, "y", {4, 5}));
  TrainingGraph t = build_training_graph(f.graph, {});
  check_structure(f.graph, t);
  EXPECT_NE(t.gradients[0], t.gradients[1]);
}

TEST(Parameters, OperandsThatNoGradientReachesAreNone) {
  ForwardGraph f;
  TensorId x = f.input("x", {2, 4, 3, 3});
  TensorId low = f.parameter("low", {});
  TensorId y = f.batch_norm(x, "bn");
  f.graph.tensors[f.graph.nodes[0].inputs[3]].kind = TensorKind::parameter;  // a file that cannot tell them apart
  y = f.node("Clip", {y, low}, "clip", {2, 4, 3, 3});
  f.parameter("unread", {7});
  TensorId shape_only = f.parameter("shape_only", {2, 3});
  f.tensor("s", {2}, TensorKind::computed, DType::int64);
  Node shape;
  shape.op = "Shape";
  shape.inputs = {shape_only};
  shape.outputs = {static_cast<TensorId>(f.graph.tensors.size()) - 1};
  f.graph.add(shape);
  TensorId unknown = f.parameter("unknown", {4});
  y = f.node("Mystery", {y, unknown}, "mystery", {2, 4, 3, 3});
  f.output(y);
  EXPECT_EQ(names(f.graph, parameters(f.graph)), (Names{"bn.weight", "bn.bias", "unknown"}));
}

TEST(BatchNorm, Modes) {
  Graph forward = small_network().graph;
  TrainingGraph batch = build_training_graph(forward, {});
  EXPECT_EQ(attribute(batch.graph.nodes[1], "training_mode", int64_t{0}), 1);
  EXPECT_EQ(batch.graph.nodes[1].outputs.size(), 3u);
  TrainingGraph frozen = build_training_graph(forward, {.frozen_batch_norm = true});
  check_structure(forward, frozen);
  EXPECT_EQ(attribute(frozen.graph.nodes[1], "training_mode", int64_t{1}), 0);
  EXPECT_EQ(frozen.graph.nodes[1].outputs.size(), 1u);
  EXPECT_EQ(frozen.graph.outputs.size(), 1 + 6u);
  // With frozen scale too, its input is of no use any more.
  TrainingGraph all = build_training_graph(forward, {.frozen_batch_norm = true, .freeze = {"bn*"}});
  EXPECT_EQ(saved_names(all), (Names{"x", "relu1", "pool", "conv2", "fc", "pool_1"}));

  ForwardGraph single;
  single.output(single.batch_norm(single.input("x", {1, 3}), "bn"));
  TrainingGraph warned = build_training_graph(single.graph, {});
  ASSERT_EQ(warned.warnings.size(), 1u);
  EXPECT_EQ(warned.warnings[0].code, "one-value-per-channel");
}

TEST(Losses, Automatic) {
  auto chosen = [](const Shape& shape) {
    ForwardGraph f;
    TensorId x = f.input("x", shape);
    f.output(f.node("Mul", {x, f.parameter("w", {})}, "y", shape));
    TrainingGraph t = build_training_graph(f.graph, {});
    TensorId label = t.graph.inputs[1];
    return std::string(name(t.loss)) + " " + t.graph.tensors[label].name + " " +
           to_string(t.graph.tensors[label].shape);
  };
  EXPECT_EQ(chosen({4, 10}), "cross_entropy labels [4]");
  EXPECT_EQ(chosen({2, 7, 100}), "cross_entropy labels [2, 7]");
  EXPECT_EQ(chosen({2, 21, 8, 9}), "cross_entropy labels [2, 8, 9]");
  EXPECT_EQ(chosen({4, 1}), "mse target [4, 1]");
  EXPECT_EQ(chosen({4}), "mse target [4]");
  EXPECT_EQ(chosen({}), "mse target []");
}

TEST(Losses, SoftmaxAtTheEndIsPartOfTheLoss) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    ForwardGraph f;
    TensorId logits = f.linear(f.input("x", {4, 8}), "fc", 10);
    f.output(f.same(op, logits, "p"));
    TrainingGraph t = build_training_graph(f.graph, {});
    check_structure(f.graph, t);
    ASSERT_EQ(t.warnings.size(), 1u);
    EXPECT_EQ(t.warnings[0].code, "softmax-output");
    for (const Unit& u : t.graph.units) {
      if (u.phase == Phase::backward) {
        EXPECT_EQ(label(t.graph, u.origin), "fc");
      }
    }
  }
}

// Constants, seeds and learning rates follow the model's element type: the exporter checks types as ONNX infers them.
TEST(TrainingGraph, OtherElementTypes) {
  for (DType type : {DType::float16, DType::bfloat16, DType::float64}) {
    ForwardGraph f = small_network();
    for (Tensor& t : f.graph.tensors) t.dtype = type;
    for (Optimizer optimizer : {Optimizer::sgd, Optimizer::momentum, Optimizer::adam}) {
      TrainingGraph t = build_training_graph(f.graph, {.optimizer = optimizer});
      check_structure(f.graph, t);
      for (TensorId g : t.gradients) EXPECT_EQ(t.graph.tensors[g].dtype, type);
      try {
        export_model(t.graph);
      } catch (const Refusal& refusal) {
        for (const Diagnostic& d : refusal.problems()) ADD_FAILURE() << name(type) << ": " << d.message;
      }
    }
  }
}

// A graph that ONNX would refuse must not crash the rules either.
TEST(Refusals, WindowsThatDoNotFit) {
  auto problems = [](std::vector<Attribute> attributes) {
    ForwardGraph f;
    TensorId x = f.input("x", {1, 2, 4, 4});
    f.output(f.conv(x, "conv", {2, 2, 3, 3}, {1, 2, 4, 4}, std::move(attributes)));
    return problems_of(f.graph, {.loss = Loss::sum});
  };
  using Ints = std::vector<int64_t>;
  for (const char* name : {"strides", "dilations"}) {
    EXPECT_EQ(problems({{name, Ints{1}}}), Names{"no-gradient conv"});
    EXPECT_EQ(problems({{name, Ints{0, 1}}}), Names{"no-gradient conv"});
  }
  EXPECT_EQ(problems({{"pads", Ints{1, 1}}}), Names{"no-gradient conv"});
  EXPECT_EQ(problems({{"pads", Ints{0, 0, -1, 0}}}), Names{"no-gradient conv"});
}

TEST(Refusals, IndicesThatDoNotFit) {
  using Ints = std::vector<int64_t>;
  auto raw = [](const Ints& values) {
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof values[0]);
  };
  auto problems = [&](const char* op, const Shape& x, const Shape& indices, Ints values,
                      std::vector<Attribute> attributes = {}) {
    ForwardGraph f;
    TensorId before = f.node("Mul", {f.input("x", x), f.parameter("w", x)}, "before", x);
    TensorId second = f.tensor("second", indices, TensorKind::constant, DType::int64, raw(values));
    std::vector<TensorId> inputs = {before, second};
    if (op == std::string("Slice")) inputs = {before, second, second, second};
    if (op == std::string("ScatterND")) inputs.push_back(f.parameter("updates", {2}));
    f.output(f.node(op, inputs, "y", {2}, std::move(attributes)));
    return problems_of(f.graph, {.loss = Loss::sum});
  };
  const Names kRefused = {"no-gradient y"};
  EXPECT_EQ(problems("GatherND", {3, 4}, {2, 1}, {}, {{"batch_dims", int64_t{-1}}}), kRefused);
  EXPECT_EQ(problems("GatherND", {3, 4}, {2, 1}, {}, {{"batch_dims", int64_t{2}}}), kRefused);
  EXPECT_EQ(problems("GatherND", {3, 4}, {2, 3}, {}), kRefused);
  EXPECT_EQ(problems("GatherND", {3, 4}, {}, {}), kRefused);
  EXPECT_EQ(problems("ScatterND", {3, 4}, {2, 3}, {}, {{"reduction", std::string("mul")}}), kRefused);
  EXPECT_EQ(problems("Gather", {3, 4}, {2}, {}, {{"axis", int64_t{7}}}), kRefused);
  EXPECT_EQ(problems("GatherElements", {3, 4}, {2, 4}, {}, {{"axis", int64_t{-3}}}), kRefused);
  EXPECT_EQ(problems("Slice", {3, 4}, {1}, {5}), kRefused);
  EXPECT_EQ(problems("Slice", {3, 4}, {2}, {}), kRefused);  // not known
  EXPECT_EQ(problems("ReduceMax", {3, 4}, {1}, {2}), kRefused);
  EXPECT_EQ(problems("ReduceProd", {3, 4}, {1}, {}), kRefused);  // not known
  EXPECT_EQ(problems("NegativeLogLikelihoodLoss", {3, 4}, {}, {}), kRefused);
  EXPECT_EQ(problems("SoftmaxCrossEntropyLoss", {3}, {}, {}), kRefused);
  EXPECT_EQ(problems("Einsum", {3, 4}, {2}, {}, {{"equation", std::string("ij,jk->ik")}}), kRefused);
  EXPECT_EQ(problems("Einsum", {3, 4}, {2}, {}, {{"equation", std::string("ij->ik")}}), kRefused);
  EXPECT_EQ(problems("Einsum", {3, 4}, {2}, {}, {{"equation", std::string("i..j,k->ik")}}), kRefused);
}

// As for MatMul: the weight's gradient first, each a unit with its multiply-accumulates.
TEST(Units, EinsumOfMatrices) {
  ForwardGraph f;
  TensorId x = f.same("Sigmoid", f.linear(f.input("x", {4, 8}), "fc", 8), "act");
  f.output(f.node("Einsum", {x, f.parameter("w", {3, 8})}, "y", {4, 3}, {{"equation", std::string("...i,oi->...o")}}));
  TrainingGraph t = build_training_graph(f.graph, {.loss = Loss::sum});
  check_structure(f.graph, t);
  std::vector<Role> roles;
  for (const Unit& unit : t.graph.units)
    if (unit.op == "Einsum" && unit.contraction != kNone) roles.push_back(unit.role);
  EXPECT_EQ(roles, (std::vector<Role>{Role::forward, Role::weight_gradient, Role::input_gradient}));
}

// Sign's slope is 0 wherever it exists: what comes before it is not trained, and that is no problem.
TEST(Gradients, StopByDefinition) {
  ForwardGraph f;
  TensorId before = f.linear(f.input("x", {4, 8}), "fc1", 8);
  f.output(f.linear(f.same("Sign", before, "sign"), "fc2", 3));
  TrainingGraph t = build_training_graph(f.graph, {});
  EXPECT_EQ(names(t.graph, t.parameters), (Names{"fc2.weight", "fc2.bias"}));
  EXPECT_NE(gradient_stops("", "Sign"), nullptr);
  EXPECT_EQ(gradient_stops("com.example", "Sign"), nullptr);
  EXPECT_EQ(gradient_stops("", "Exp"), nullptr);
}

TEST(TrainingGraph, ClashingNamesStayUnique) {
  ForwardGraph f;
  TensorId x = f.input("labels", {4, 8});
  TensorId y = f.linear(x, "loss", 8);
  f.output(f.linear(y, "fc.weight_grad", 4));
  TrainingGraph t = build_training_graph(f.graph, {});
  std::set<std::string> unique;
  for (const Tensor& tensor : t.graph.tensors) EXPECT_TRUE(unique.insert(tensor.name).second) << tensor.name;
}

}  // namespace
}  // namespace monet
