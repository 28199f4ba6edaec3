// The bundled models through import, training graph, workload and bounds: counts that are known from elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "engine/cost/bounds.h"
#include "engine/onnx/byte_source.h"
#include "engine/onnx/model.h"
#include "engine/training/training_graph.h"
#include "engine/workload/operations.h"

namespace monet {
namespace {

Graph bound_model(const std::string& name, std::map<std::string, int64_t> dims) {
  std::unique_ptr<ByteSource> source = open_file(MONET_SOURCE_DIR "/examples/models/" + name + ".onnx");
  BindOptions options;
  options.dims = std::move(dims);
  options.has_rule = has_gradient_rule;
  return Model::open(*source, name).bind(options).graph;
}

int64_t parameter_elements(const Graph& graph) {
  int64_t sum = 0;
  for (TensorId t : parameters(graph)) sum += elements(graph.tensors[t].shape);
  return sum;
}

int64_t total_macs(const Graph& graph, Role role) {
  std::vector<Work> all = works(graph);
  int64_t sum = 0;
  for (size_t i = 0; i < all.size(); ++i)
    if (graph.units[i].role == role) sum += all[i].macs;
  return sum;
}

struct Example {
  const char* name;
  std::map<std::string, int64_t> dims;
  int64_t parameters;
  int64_t forward_macs;
};

// Parameters as PyTorch counts them. MACs at batch 1:
// - lenet5: 28*28*6*25 + 10*10*16*6*25 + 400*120 + 120*84 + 84*10
// - ResNets and MobileNetV2: sums over the layer tables of their papers (He et al. 2016, Sandler et al. 2018) made by a
//   few lines of Python; torchvision's documentation rounds them to 1.81, 4.09 and 0.30 G
// - vit_b_16: patches 196*768*768; 12 layers of 197*768*(4+8)*768 + 2*197*197*768; head 768*1000
// - gpt2_small, 16 tokens: 12 layers of 16*12*768*768 + 2*16*16*768; output 16*768*50257
const Example kExamples[] = {
    {"lenet5", {{"batch", 1}}, 61706, 416520},
    {"resnet18_cifar", {{"batch", 1}}, 11173962, 555422720},
    {"resnet18", {{"batch", 1}}, 11689512, 1814073344},
    {"resnet50", {{"batch", 1}}, 25557032, 4089184256},
    {"mobilenet_v2", {{"batch", 1}}, 3504872, 300774272},
    {"vit_b_16", {{"batch", 1}}, 86567656, 115605504 + int64_t{12} * (1394343936 + 59610624) + 768000},
    {"gpt2_small", {{"batch", 1}, {"sequence", 16}}, 124439808, int64_t{12} * (113246208 + 393216) + 617558016},
};

TEST(Examples, ParametersAndForwardMacs) {
  for (const Example& example : kExamples) {
    Graph graph = bound_model(example.name, example.dims);
    EXPECT_EQ(parameter_elements(graph), example.parameters) << example.name;
    EXPECT_EQ(total_macs(graph, Role::forward), example.forward_macs) << example.name;
    for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id)
      EXPECT_TRUE(has_operation_cost(graph.nodes[id])) << example.name << ": " << graph.nodes[id].op;
  }
}

TEST(Examples, StructureOnlyAndSmall) {
  for (const Example& example : kExamples) {
    std::unique_ptr<ByteSource> source =
        open_file(MONET_SOURCE_DIR "/examples/models/" + std::string(example.name) + ".onnx");
    EXPECT_LT(source->size(), 500000u) << example.name;
  }
}

TEST(Examples, TrainingStepOfResNet18) {
  for (int64_t batch : {1, 3}) {
    TrainingGraph training = build_training_graph(bound_model("resnet18", {{"batch", batch}}), {});
    EXPECT_EQ(total_macs(training.graph, Role::forward), batch * 1814073344);
    EXPECT_EQ(total_macs(training.graph, Role::weight_gradient), batch * 1814073344);
    EXPECT_EQ(total_macs(training.graph, Role::input_gradient), batch * 1696059392);
    for (NodeId id = 0; id < static_cast<NodeId>(training.graph.nodes.size()); ++id)
      EXPECT_TRUE(has_operation_cost(training.graph.nodes[id])) << training.graph.nodes[id].op;
  }
}

// One step of ResNet-18 with SGD at batch 1, fp32: image, label, learning rate and parameters in, parameters out, loss
// and logits as far as they are outputs; running statistics (2 x 4,800 floats) in and out.
TEST(Examples, CompulsoryTrafficOfResNet18) {
  TrainingGraph training = build_training_graph(bound_model("resnet18", {{"batch", 1}}), {});
  Accelerator accelerator;
  for (const Preset& preset : hardware_presets())
    if (preset.name == "edge_tpu") accelerator = parse_accelerator(preset.json);
  std::vector<Work> all = works(training.graph);
  Bound total = total_bound(training.graph, all, accelerator, Precision{});
  int64_t parameters = 4 * 11689512, image = 4 * 3 * 224 * 224, statistics = 4 * 2 * 4800;
  int64_t least = 2 * parameters + image + statistics;
  EXPECT_GE(total.traffic_bytes, least);
  EXPECT_LE(total.traffic_bytes, least + statistics + 4 * 1000 + 64);  // logits, label, loss, learning rate, step
  double macs = 1814073344.0 * 2 + 1696059392.0;
  EXPECT_GE(total.compute_cycles, macs / 4096);
  EXPECT_GE(total.compute_energy, macs * 0.04);
  double cycles = 0;
  for (size_t u = 0; u < all.size(); ++u)
    cycles += unit_bound(training.graph, training.graph.units[u], all[u], accelerator, Precision{}).cycles();
  EXPECT_GT(cycles, total.cycles());
}

}  // namespace
}  // namespace monet
