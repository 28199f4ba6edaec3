// Training graphs that come as files: those of ONNX Runtime (oracles/monet-training) and our own read back. Expected
// counts are those of the files' lists of nodes, MACs products of the shapes that the files declare (a few lines of
// Python over value_info).
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "engine/analysis/session.h"
#include "engine/training/existing.h"
#include "engine/workload/work.h"
#include "tests/engine/onnx_builder.h"

namespace monet {
namespace {

std::string artifact(const std::string& name) { return MONET_SHARED_DIR "/oracles/monet-training/" + name + ".onnx"; }

std::map<Phase, int> nodes_by_phase(const Graph& graph) {
  std::map<Phase, int> counts;
  for (const Node& node : graph.nodes) ++counts[node.phase];
  return counts;
}

int64_t macs(const Graph& graph, Role role) {
  std::vector<Work> all = works(graph);
  int64_t sum = 0;
  for (size_t u = 0; u < all.size(); ++u)
    if (graph.units[u].role == role && graph.units[u].phase != Phase::loss) sum += all[u].macs;
  return sum;
}

struct Expected {
  const char* file;
  int forward, backward, optimizer;
  int64_t forward_macs, input_gradient_macs, weight_gradient_macs;
  size_t trained;
  size_t saved;
  int64_t saved_bytes;
};

class Artifacts : public ::testing::TestWithParam<Expected> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(artifact(GetParam().file)))
      GTEST_SKIP() << artifact(GetParam().file) << " is not here";
  }
};

TEST_P(Artifacts, AreAnalysedAsTheyAre) {  // case 21 of the list of real ONNX files
  const Expected& e = GetParam();
  auto source = open_file(artifact(e.file));
  BindOptions options;
  options.has_rule = has_gradient_rule;
  BoundModel bound = Model::open(*source, e.file).bind(options);
  const Graph& graph = bound.graph;
  ASSERT_TRUE(bound.is_training_graph);
  std::map<Phase, int> counts = nodes_by_phase(graph);
  EXPECT_EQ(counts[Phase::forward], e.forward);
  EXPECT_EQ(counts[Phase::backward], e.backward);
  EXPECT_EQ(counts[Phase::optimizer], e.optimizer);
  EXPECT_EQ(counts[Phase::loss] + counts[Phase::recompute], 0);

  EXPECT_EQ(macs(graph, Role::forward), e.forward_macs);
  EXPECT_EQ(macs(graph, Role::input_gradient), e.input_gradient_macs);
  EXPECT_EQ(macs(graph, Role::weight_gradient), e.weight_gradient_macs);

  std::vector<TensorId> saved = saved_for_backward(graph);
  int64_t bytes_saved = 0;
  for (TensorId t : saved) bytes_saved += bytes(graph.tensors[t]);
  EXPECT_EQ(saved.size(), e.saved);
  EXPECT_EQ(bytes_saved, e.saved_bytes);

  TrainingGraph training = read_training_graph(graph);
  EXPECT_EQ(training.loss, Loss::cross_entropy);
  EXPECT_EQ(training.parameters.size(), e.trained);
  for (size_t i = 0; i < training.parameters.size(); ++i)
    EXPECT_EQ(graph.tensors[training.gradients[i]].shape, graph.tensors[training.parameters[i]].shape);
  EXPECT_EQ(optimizer_of(graph), "Adam");

  // Every node in one unit, units in order, their nodes contiguous.
  NodeId next = 0;
  for (size_t u = 0; u < graph.units.size(); ++u)
    for (NodeId n : graph.units[u].nodes) {
      EXPECT_EQ(n, next++);
      EXPECT_EQ(graph.nodes[n].unit, static_cast<UnitId>(u));
    }
  EXPECT_EQ(static_cast<size_t>(next), graph.nodes.size());
}

TEST_P(Artifacts, GiveAReport) {
  const Expected& e = GetParam();
  auto source = open_file(artifact(e.file));
  Session session(*source, e.file);
  auto report = session.analyze(parse_settings(R"({"hardware":"edge_tpu"})"));
  EXPECT_EQ(report["training"]["optimizer"], "adam");
  EXPECT_EQ(report["training"]["nodes"]["backward"], e.backward);
  EXPECT_EQ(report["training"]["trained_tensors"], e.trained);
  EXPECT_EQ(report["memory"]["activations"], e.saved_bytes);
  EXPECT_GT(report["memory"]["optimizer_state"].get<int64_t>(), 0);
  EXPECT_GT(report["step"]["latency_cycles"].get<double>(), 0);
  std::string all;
  for (const auto& w : report["warnings"]) all += w["code"].get<std::string>() + " ";
  EXPECT_NE(all.find("training-graph"), std::string::npos);
  EXPECT_NE(all.find("foreign-operator"), std::string::npos);
  // A batch is baked in.
  auto problems = test::refusal([&] { session.analyze(parse_settings(R"({"batch":3})")); });
  EXPECT_EQ(test::codes(problems), "baked-batch");
}

TEST_P(Artifacts, ComeBackFromAnExportUnchanged) {
  auto source = open_file(artifact(GetParam().file));
  Graph graph = Model::open(*source, "a").bind({}).graph;
  Graph back = test::open(export_model(graph)).bind({}).graph;
  EXPECT_EQ(nodes_by_phase(back), nodes_by_phase(graph));
  for (Role role : {Role::forward, Role::input_gradient, Role::weight_gradient})
    EXPECT_EQ(macs(back, role), macs(graph, role));
}

INSTANTIATE_TEST_SUITE_P(Files, Artifacts,
                         ::testing::Values(Expected{"resnet18_full", 49, 252, 314, 2221690880, 2214592512 + 20480,
                                                    2221670400 + 20480, 21, 19, 8921248},
                                           Expected{"resnet18_lora", 129, 442, 599, 2376454144, 2368471040 + 20480,
                                                    154763264, 40, 38, 9783456},
                                           Expected{"gpt2like", 139, 214, 89, 3309305856, 3577741312, 3040870400, 5, 34,
                                                    27033600}),
                         [](const auto& info) { return std::string(info.param.file); });

// Our own training graphs: what was exported is what is read back, and analysed as it is.
TEST(Existing, OwnTrainingGraphReadBack) {
  auto source = open_file(MONET_SOURCE_DIR "/examples/models/lenet5.onnx");
  Session session(*source, "lenet5.onnx");
  Settings settings = parse_settings(R"({"optimizer":"adam","batch":2})");
  auto first = session.analyze(settings);
  std::string exported = session.training_graph(settings);
  MemorySource bytes(exported);
  Session again(bytes, "training.onnx");
  auto second = again.analyze(parse_settings("{}"));
  for (const char* field : {"optimizer", "loss", "nodes", "units", "macs", "trained_tensors"})
    EXPECT_EQ(second["training"][field], first["training"][field]) << field;
  EXPECT_EQ(second["memory"]["activations"], first["memory"]["activations"]);
  EXPECT_EQ(second["memory"]["peak"], first["memory"]["peak"]);
  EXPECT_EQ(second["memory"]["inference_peak"], first["memory"]["inference_peak"]);
}

// ---- operators that ONNX does not define
// ------------------------------------------------------------------------------

test::Builder foreign(const std::vector<test::Dim>& declared, bool with_declaration = true) {
  test::Builder b;
  b.input("x", {"batch", 4}).output("y").import("com.example", 3).import("com.microsoft", 1);
  b.weight("v", {4, 4}).op("MatMul", {"x", "v"}, {"h"});
  b.weight("w", {5, 3}).op("Fancy", {"h"}, {"f"}, {test::attr("mode", 2)}, "fancy", "com.example");
  b.op("MatMul", {"f", "w"}, {"y"});
  if (with_declaration) b.value("f", declared);
  return b;
}

TEST(ForeignOperators, AreKeptWithTheShapesThatTheFileDeclares) {  // case 18
  BindOptions options;
  options.dims["batch"] = 7;
  BoundModel bound = test::bind(foreign({"batch", 5}), options);
  EXPECT_EQ(test::operators(bound.graph), "MatMul Fancy MatMul");
  EXPECT_EQ(bound.graph.nodes[1].domain, "com.example");
  EXPECT_EQ(test::tensor(bound.graph, "f").shape, (Shape{7, 5}));
  EXPECT_EQ(test::tensor(bound.graph, "y").shape, (Shape{7, 3}));
  EXPECT_EQ(test::codes(bound.warnings), "foreign-operator");
  // Without a declaration, and where it leaves a dimension open, nobody knows the shape.
  EXPECT_EQ(test::codes(test::refusal(foreign({}, false))), "unknown-operator");
  EXPECT_EQ(test::codes(test::refusal(foreign({"batch", "other"}, true))), "unknown-shape");
}

TEST(ForeignOperators, GiveAForwardReportUnlessToldToTrainAroundThem) {
  std::string bytes = foreign({"batch", 5}).bytes();
  MemorySource source(bytes);
  Session session(source, "foreign.onnx");
  auto count = [](const nlohmann::ordered_json& report, const std::string& code) {
    int found = 0;
    for (const auto& w : report["warnings"]) found += w["code"] == code;
    return found;
  };
  auto forward = session.analyze(parse_settings("{}"));
  EXPECT_TRUE(forward["training"].is_null());
  EXPECT_EQ(count(forward, "forward-only"), 1);
  EXPECT_EQ(forward["model"]["parameters"], 4 * 4 + 5 * 3);
  EXPECT_EQ(test::codes(test::refusal([&] { session.training_graph(parse_settings("{}")); })), "no-gradient");
  auto stopped = session.analyze(parse_settings(R"({"unsupported":"stop"})"));
  EXPECT_EQ(stopped["training"]["trained_tensors"], 1);
  EXPECT_EQ(stopped["training"]["trained_parameters"], 5 * 3);
  EXPECT_EQ(count(stopped, "gradient-stopped"), 1);
  // The shapes of input and output differ: nothing passes.
  EXPECT_EQ(session.analyze(parse_settings(R"({"unsupported":"pass"})"))["training"]["trained_tensors"], 1);
}

TEST(ForeignOperators, AreInTheStructureAndTheExport) {
  Model model = test::open(foreign({"batch", 5}));
  for (bool short_names : {false, true}) {
    Graph again = test::open(model.structure(short_names)).bind({}).graph;
    EXPECT_EQ(test::operators(again), "MatMul Fancy MatMul");
    EXPECT_EQ(again.tensors[static_cast<size_t>(again.nodes[1].outputs[0])].shape, (Shape{1, 5}));
  }
  Graph exported = test::open(export_model(model.bind({}).graph)).bind({}).graph;
  EXPECT_EQ(test::operators(exported), "MatMul Fancy MatMul");
}

TEST(ForeignOperators, ABatchInADeclaredShapeIsBakedIn) {
  BindOptions options;
  options.batch = 3;
  EXPECT_EQ(test::codes(test::refusal(foreign({2, 5}), options)), "baked-batch");
  EXPECT_EQ(test::tensor(test::bind(foreign({"batch", 5}), options).graph, "y").shape, (Shape{3, 3}));
}

TEST(ForeignOperators, ShapeRulesOfOnnxRuntimesOperators) {
  test::Builder b;
  b.input("a", {2, 3, 4}).input("b", {5, 4}).input("g", {2, 3, 5}).output("y").output("r").import("com.microsoft", 1);
  b.op("FusedMatMul", {"a", "b"}, {"y"}, {test::attr("transB", 1)}, "", "com.microsoft");
  b.op("ReluGrad", {"g", "y"}, {"r"}, {}, "", "com.microsoft");
  Graph graph = test::bind(b).graph;
  EXPECT_EQ(test::tensor(graph, "y").shape, (Shape{2, 3, 5}));
  EXPECT_EQ(test::tensor(graph, "r").shape, (Shape{2, 3, 5}));
}

}  // namespace
}  // namespace monet
