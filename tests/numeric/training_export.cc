// ONNX model -> training graph as ONNX with the gradients among its outputs, for run.test.mjs and models.test.mjs.
//   training_export MODEL.onnx OUT.onnx LOSS OPTIMIZER [frozen] [opset=N]
// Prints which outputs are what, as JSON. Exit 1 with one line per problem on stderr when the model is refused.
#include <cstdio>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "engine/onnx/model.h"
#include "engine/training/training_graph.h"

using namespace monet;

namespace {

nlohmann::json run(int count, char** arguments) {
  TrainingOptions options;
  for (Loss loss : {Loss::cross_entropy, Loss::mse, Loss::sum})
    if (arguments[3] == std::string(name(loss))) options.loss = loss;
  bool known = false;
  for (Optimizer optimizer : kOptimizers) {
    if (arguments[4] != std::string(name(optimizer))) continue;
    options.optimizer = optimizer;
    known = true;
  }
  if (!known) throw Refusal({"unknown-optimizer", std::string("no optimizer ") + arguments[4], "", "", ""});
  int opset = 0;  // what to declare the graph as, 0: as it is
  for (int i = 5; i < count; ++i) {
    std::string argument = arguments[i];
    if (argument == "frozen") options.frozen_batch_norm = true;
    if (argument.rfind("opset=", 0) == 0) opset = std::stoi(argument.substr(6));
  }

  auto source = open_file(arguments[1]);
  BoundModel bound = Model::open(*source, arguments[1]).bind({.has_rule = has_gradient_rule});
  TrainingGraph training = build_training_graph(bound.graph, options);
  Graph& graph = training.graph;
  if (opset) graph.opset = opset;
  nlohmann::json result = {{"loss", graph.tensors[training.loss_value].name}, {"labels", nlohmann::json::array()}};
  for (TensorId t : graph.inputs)
    if (graph.tensors[t].kind == TensorKind::label) result["labels"].push_back(graph.tensors[t].name);
  for (TensorId t : graph.outputs)
    if (graph.tensors[t].of != kNone) result["next"][graph.tensors[graph.tensors[t].of].name] = graph.tensors[t].name;
  for (size_t i = 0; i < training.parameters.size(); ++i) {
    result["gradients"][graph.tensors[training.parameters[i]].name] = graph.tensors[training.gradients[i]].name;
    graph.outputs.push_back(training.gradients[i]);
  }
  // Masks of dropout: without them nobody could tell what the gradient should be.
  for (const Node& node : graph.nodes) {
    if (node.op != "Dropout" || node.outputs.size() < 2) continue;
    graph.outputs.push_back(node.outputs[1]);
    result["masks"].push_back(graph.tensors[node.outputs[1]].name);
  }
  std::ofstream(arguments[2], std::ios::binary) << export_model(graph);
  return result;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 5) {
    std::cerr << "usage: training_export MODEL.onnx OUT.onnx LOSS OPTIMIZER [frozen] [opset=N]\n";
    return 2;
  }
  try {
    std::cout << run(count, arguments) << "\n";
  } catch (const Refusal& refusal) {
    for (const Diagnostic& problem : refusal.problems()) std::cerr << problem.code << ": " << problem.message << "\n";
    return 1;
  }
}
