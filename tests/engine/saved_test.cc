// What lifting and the rules that know exporters' habits leave in a graph: node counts of real exports, and tensors
// that are kept for backward.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "engine/onnx/model.h"
#include "engine/training/training_graph.h"
#include "tests/engine/training_models.h"

namespace monet {
namespace {

// The output among them: the loss reads it.
std::set<std::string> saved(const ForwardGraph& f) {
  TrainingGraph training = build_training_graph(f.graph, {.loss = Loss::sum});
  std::set<std::string> names;
  for (TensorId t : saved_for_backward(training.graph)) names.insert(training.graph.tensors[t].name);
  return names;
}

TEST(Saved, SiluKeepsItsInputAlone) {
  for (bool exchanged : {false, true}) {
    ForwardGraph f;
    TensorId h = f.linear(f.input("x", {2, 4}), "fc1", 4), gate = f.same("Sigmoid", h, "gate");
    TensorId y =
        f.node("Mul", exchanged ? std::vector<TensorId>{gate, h} : std::vector<TensorId>{h, gate}, "silu", {2, 4});
    f.output(f.linear(y, "fc2", 3));
    EXPECT_EQ(saved(f), (std::set<std::string>{"x", "fc1", "silu", "fc2"}));
  }
  // A gate of something else is an ordinary product.
  ForwardGraph f;
  TensorId h = f.linear(f.input("x", {2, 4}), "fc1", 4), gate = f.same("Sigmoid", f.same("Neg", h, "neg"), "gate");
  f.output(f.linear(f.node("Mul", {h, gate}, "product", {2, 4}), "fc2", 3));
  EXPECT_EQ(saved(f), (std::set<std::string>{"x", "fc1", "gate", "product", "fc2"}));
}

TEST(Saved, ATransposedWeightIsNotKept) {
  ForwardGraph f;
  auto layer = [&](TensorId x, const std::string& name) {
    TensorId turned = f.node("Transpose", {f.parameter(name + ".weight", {4, 4})}, name + "_turned", {4, 4});
    return f.node("MatMul", {x, turned}, name, {2, 3, 4});
  };
  f.output(layer(layer(f.input("x", {2, 3, 4}), "a"), "b"));
  EXPECT_EQ(saved(f), (std::set<std::string>{"x", "a", "b"}));
}

struct Remains {
  const char* file;
  std::map<std::string, int64_t> dims;
  int64_t in_file;
  size_t after;
  std::map<std::string, int> lifted;
};

TEST(Lifting, NodesOfRealExports) {
  const Remains kCases[] = {
      {"tests/models/vit_b_16_opset14.onnx",
       {{"batch", 2}},
       1772,
       442,
       {{"Gelu", 12}, {"LayerNormalization", 25}, {"Identity", 37}}},
      {"examples/models/vit_b_16.onnx", {{"batch", 2}}, 1522, 442, {{"Gelu", 12}, {"Identity", 37}}},
      {"tests/models/gpt2_6_layers_opset14.onnx",
       {{"batch", 2}, {"sequence", 16}},
       779,
       211,
       {{"Gelu", 6}, {"LayerNormalization", 13}}},
      {"examples/models/gpt2_small.onnx", {{"batch", 2}, {"sequence", 16}}, 1279, 415, {{"Gelu", 12}}},
  };
  for (const Remains& c : kCases) {
    auto source = open_file(std::string(MONET_SOURCE_DIR "/") + c.file);
    Model model = Model::open(*source, c.file);
    BindOptions options;
    options.dims = c.dims;
    options.has_rule = has_gradient_rule;
    BoundModel bound = model.bind(options);
    EXPECT_EQ(model.node_count(), c.in_file) << c.file;
    EXPECT_EQ(bound.graph.nodes.size(), c.after) << c.file;
    EXPECT_EQ(bound.lifted, c.lifted) << c.file;
    for (const Node& node : bound.graph.nodes)
      for (const char* piece : {"Erf", "Tanh", "ReduceMean", "Pow", "Sqrt"}) EXPECT_NE(node.op, piece) << c.file;
  }
}

}  // namespace
}  // namespace monet
