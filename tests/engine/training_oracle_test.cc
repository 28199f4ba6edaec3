// The bundled networks against what PyTorch keeps for backward (oracles/pytorch_saved_activations.json).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/onnx/model.h"
#include "engine/training/training_graph.h"

namespace monet {
namespace {

struct Case {
  const char* file;    // from the top of the tree
  const char* oracle;  // the entry's name
  int64_t batch;
  double tolerance;
  int64_t expected;  // bytes, if not what PyTorch keeps
};

class SavedActivations : public ::testing::TestWithParam<Case> {};

TEST_P(SavedActivations, AsPyTorch) {
  std::string model = std::string(MONET_SOURCE_DIR "/") + GetParam().file;
  std::string oracle = MONET_SHARED_DIR "/oracles/pytorch_saved_activations.json";
  for (const std::string& path : {model, oracle})
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";

  nlohmann::json entry;
  for (const auto& e : nlohmann::json::parse(std::ifstream(oracle)))
    if (e["model"] == GetParam().oracle && e["input"][0] == GetParam().batch) entry = e;
  ASSERT_FALSE(entry.is_null());

  auto source = open_file(model);
  BindOptions options;
  options.batch = GetParam().batch;
  options.has_rule = has_gradient_rule;
  BoundModel bound = Model::open(*source, model).bind(options);
  TrainingGraph training = build_training_graph(bound.graph, {});

  int64_t elements_of_parameters = 0, parameter_bytes = 0, saved = 0;
  for (TensorId t : parameters(bound.graph)) {
    elements_of_parameters += elements(bound.graph.tensors[t].shape);
    parameter_bytes += bytes(bound.graph.tensors[t]);
  }
  EXPECT_EQ(training.parameters, parameters(bound.graph));
  EXPECT_EQ(elements_of_parameters, entry["parameters"].get<int64_t>());
  EXPECT_EQ(parameter_bytes, entry["parameter_bytes"].get<int64_t>());

  for (TensorId t : saved_for_backward(training.graph)) saved += bytes(training.graph.tensors[t]);
  int64_t kept = entry["saved_activation_bytes"].get<int64_t>() + entry["saved_input_bytes"].get<int64_t>();
  double expected = static_cast<double>(GetParam().expected ? GetParam().expected : kept);
  double difference = (static_cast<double>(saved) - expected) / expected;
  EXPECT_LE(std::abs(difference), GetParam().tolerance) << saved << " against " << expected;
  std::printf("%-40s batch %2d  %12lld bytes, PyTorch %12lld  %+.2f%%\n", GetParam().file,
              static_cast<int>(GetParam().batch), static_cast<long long>(saved), static_cast<long long>(expected),
              100 * difference);
}

// What PyTorch keeps beyond us: mean and deviation of each batch normalisation (we reduce them from X
// again); the input of an average pooling, of which only the shape is needed (DenseNet's transitions, VGG's pooling of
// 7x7 to 7x7); dropout masks as floats instead of bools; labels and the loss (20 bytes).
INSTANTIATE_TEST_SUITE_P(
    Networks, SavedActivations,
    ::testing::Values(Case{"examples/models/resnet18.onnx", "resnet18", 2, 0.02, 0},
                      Case{"examples/models/resnet18.onnx", "resnet18", 8, 0.02, 0},
                      Case{"examples/models/resnet18_cifar.onnx", "resnet18_cifar_stem_10", 2, 0.02, 0},
                      Case{"examples/models/resnet18_cifar.onnx", "resnet18_cifar_stem_10", 8, 0.02, 0},
                      Case{"examples/models/resnet50.onnx", "resnet50", 2, 0.02, 0},
                      Case{"examples/models/resnet50.onnx", "resnet50", 8, 0.02, 0},
                      Case{"tests/models/resnet50_10classes.onnx", "resnet50_10classes", 2, 0.02, 0},
                      Case{"tests/models/vgg16_bn.onnx", "vgg16_bn", 2, 0.02, 0},
                      Case{"tests/models/densenet121.onnx", "densenet121", 2, 0.05, 0},
                      Case{"examples/models/vit_b_16.onnx", "vit_b_16", 2, 0.05, 0},
                      Case{"tests/models/vit_b_16_opset14.onnx", "vit_b_16", 2, 0.05, 0},
                      // PyTorch keeps what ReLU6 reads beside what it returns; we need the latter.
                      Case{"examples/models/mobilenet_v2.onnx", "mobilenet_v2", 2, 0.02, 108'100'000}),
    [](const auto& info) {
      std::string name = std::filesystem::path(info.param.file).stem().string();
      return name + "_batch" + std::to_string(info.param.batch);
    });

// The exporter compares every shape that the rules state with the one that ONNX infers, and ONNX's checker reads all.
TEST(Examples, TrainingGraphsAreValidOnnx) {
  for (const char* file : {"lenet5.onnx", "resnet18_cifar.onnx", "resnet18.onnx", "mobilenet_v2.onnx"}) {
    std::string path = std::string(MONET_SOURCE_DIR "/examples/models/") + file;
    if (!std::filesystem::exists(path)) GTEST_SKIP() << path << " is not here";
    auto source = open_file(path);
    BindOptions options;
    options.batch = 3;
    options.has_rule = has_gradient_rule;
    BoundModel bound = Model::open(*source, file).bind(options);
    for (bool frozen : {false, true}) {
      TrainingOptions training;
      training.optimizer = Optimizer::adam;
      training.frozen_batch_norm = frozen;
      EXPECT_NO_THROW(export_model(build_training_graph(bound.graph, training).graph)) << file;
    }
  }
}

}  // namespace
}  // namespace monet
