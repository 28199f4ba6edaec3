// How long the engine takes natively: opening (the file to its structure) and analysing (shapes, training graph,
// memory, bounds, report), cold and with everything but the changed setting cached. Printed, never asserted.
#include <benchmark/benchmark.h>

#include <filesystem>

#include "engine/analysis/session.h"
#include "engine/report/report.h"

namespace {

std::string model(const char* name) { return std::string(MONET_SOURCE_DIR "/examples/models/") + name + ".onnx"; }

void BM_Open(benchmark::State& state, const char* name) {
  for (auto _ : state) {
    auto source = monet::open_file(model(name));
    monet::Session session(*source, name);
    benchmark::DoNotOptimize(session.file().node_count());
  }
}

// Another batch each time: shapes, training graph and everything after are new.
void BM_AnalyzeNewBatch(benchmark::State& state, const char* name) {
  auto source = monet::open_file(model(name));
  monet::Session session(*source, name);
  monet::Settings settings = monet::parse_settings(R"({"hardware": "edge_tpu"})");
  int64_t batch = 1;
  for (auto _ : state) {
    settings.batch = batch += 16;  // the largest-batch search binds 2 x batch: no batch is met twice
    benchmark::DoNotOptimize(monet::to_bytes(session.analyze(settings)).size());
  }
}

// Another capacity each time: shapes and training graph stay.
void BM_AnalyzeNewCapacity(benchmark::State& state, const char* name) {
  auto source = monet::open_file(model(name));
  monet::Session session(*source, name);
  monet::Settings settings = monet::parse_settings(R"({"hardware": "edge_tpu"})");
  int64_t capacity = 1'000'000'000;
  for (auto _ : state) {
    settings.capacity_bytes = ++capacity;
    benchmark::DoNotOptimize(monet::to_bytes(session.analyze(settings)).size());
  }
}

// The training graph of a chain of MatMul and Relu, without import: time must grow with the nodes, not faster.
void BM_TrainingGraphOfChain(benchmark::State& state) {
  monet::Graph graph;
  auto tensor = [&](const std::string& name, monet::TensorKind kind) {
    return graph.add(monet::Tensor{.name = name, .dtype = monet::DType::float32, .shape = {8, 8}, .kind = kind});
  };
  monet::TensorId x = tensor("x", monet::TensorKind::input);
  graph.inputs.push_back(x);
  for (int64_t i = 0; i < state.range(0) / 2; ++i) {
    std::string name = std::to_string(i);
    monet::TensorId weight = tensor("w" + name, monet::TensorKind::parameter);
    graph.inputs.push_back(weight);
    monet::TensorId product = tensor("m" + name, monet::TensorKind::computed);
    graph.add(monet::Node{.op = "MatMul", .inputs = {x, weight}, .outputs = {product}});
    x = tensor("r" + name, monet::TensorKind::computed);
    graph.add(monet::Node{.op = "Relu", .inputs = {product}, .outputs = {x}});
  }
  graph.outputs = {x};
  for (auto _ : state)
    benchmark::DoNotOptimize(
        monet::build_training_graph(graph, {.optimizer = monet::Optimizer::adam}).graph.nodes.size());
  state.SetComplexityN(state.range(0));
}
BENCHMARK(BM_TrainingGraphOfChain)->Arg(1'000)->Arg(10'000)->Arg(100'000)->Complexity()->Unit(benchmark::kMillisecond);

}  // namespace

#define MONET_BENCH(name)                                                            \
  BENCHMARK_CAPTURE(BM_Open, name, #name)->Unit(benchmark::kMillisecond);            \
  BENCHMARK_CAPTURE(BM_AnalyzeNewBatch, name, #name)->Unit(benchmark::kMillisecond); \
  BENCHMARK_CAPTURE(BM_AnalyzeNewCapacity, name, #name)->Unit(benchmark::kMillisecond)

MONET_BENCH(lenet5);
MONET_BENCH(resnet18);
MONET_BENCH(resnet50);
MONET_BENCH(mobilenet_v2);
MONET_BENCH(vit_b_16);
MONET_BENCH(gpt2_small);

BENCHMARK_MAIN();
