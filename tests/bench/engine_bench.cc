// How long the engine takes natively: opening (the file to its structure), the training graph alone, and analysing
// (shapes, training graph, memory, bounds, report), cold and with everything but the changed setting cached; and
// costing layers on a core. Over the models of examples/models, and of build/models where scripts/results.sh exports
// larger ones. Printed, never asserted.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "engine/analysis/session.h"
#include "engine/cost/layer_cost.h"
#include "engine/report/report.h"
#include "engine/schedule/scheduler.h"
#include "engine/training/gradient_rules.h"

namespace {

void BM_Open(benchmark::State& state, const std::string& path) {
  for (auto _ : state) {
    auto source = monet::open_file(path);
    monet::Session session(*source, path);
    benchmark::DoNotOptimize(session.file().node_count());
  }
}

// Shapes and training graph of an open file.
void BM_TrainingGraph(benchmark::State& state, const std::string& path) {
  auto source = monet::open_file(path);
  monet::Model model = monet::Model::open(*source, path);
  size_t nodes = 0;
  for (auto _ : state) {
    monet::Graph forward = model.bind({.has_rule = monet::has_gradient_rule}).graph;
    nodes = monet::build_training_graph(forward, {}).graph.nodes.size();
  }
  state.counters["file_nodes"] = static_cast<double>(model.node_count());
  state.counters["training_nodes"] = static_cast<double>(nodes);
}

// Another batch each time: shapes, training graph and everything after are new.
void BM_AnalyzeNewBatch(benchmark::State& state, const std::string& path) {
  auto source = monet::open_file(path);
  monet::Session session(*source, path);
  monet::Settings settings = monet::parse_settings(R"({"hardware": "edge_tpu"})");
  int64_t batch = 1;
  for (auto _ : state) {
    settings.batch = batch += 16;  // the largest-batch search binds 2 x batch: no batch is met twice
    benchmark::DoNotOptimize(monet::to_bytes(session.analyze(settings)).size());
  }
}

// Another capacity each time: shapes and training graph stay.
void BM_AnalyzeNewCapacity(benchmark::State& state, const std::string& path) {
  auto source = monet::open_file(path);
  monet::Session session(*source, path);
  monet::Settings settings = monet::parse_settings(R"({"hardware": "edge_tpu"})");
  int64_t capacity = 1'000'000'000;
  for (auto _ : state) {
    settings.capacity_bytes = ++capacity;
    benchmark::DoNotOptimize(monet::to_bytes(session.analyze(settings)).size());
  }
}

// A whole training step on an accelerator, tile by tile. 0: planned and scheduled from scratch, mappings cached;
// 1: scheduled again with another pair of units fused, as searches do; 2: the simulation of one program alone.
// A partition in which two units that follow one another run in four tiles; each number is another pair.
std::string fused_pair(int64_t number) {
  std::string first = std::to_string(2 * (number % 16)), second = std::to_string(2 * (number % 16) + 1);
  return R"({"groups": [{"units": [)" + first + ", " + second + R"(], "tiles": 4, "axis": "rows"}]})";
}

void BM_Schedule(benchmark::State& state, const std::string& path, const std::string& settings_text) {
  auto source = monet::open_file(path);
  monet::Session session(*source, path);
  monet::Settings settings = monet::parse_settings(settings_text);
  std::shared_ptr<const monet::Graph> graph = session.graph(settings, true);
  std::vector<monet::Work> works = monet::works(*graph);
  monet::Accelerator accelerator = *monet::accelerator_of(settings, {});
  monet::MappingFile mapping;
  monet::CostCache cache;
  monet::Partition alone = monet::layer_by_layer(*graph);
  std::vector<monet::Partition> fused;
  for (int64_t i = 0; i < 16; ++i) fused.push_back(monet::parse_partition(fused_pair(i), *graph));
  auto planner = [&] {
    return std::make_unique<monet::Planner>(*graph, works, accelerator, settings.widths(), mapping, settings.cost,
                                            settings.schedule, cache);
  };
  std::unique_ptr<monet::Planner> kept = planner();
  auto scheduler = std::make_unique<monet::Scheduler>(*kept);
  monet::Program program = kept->program(alone);
  size_t next = 0;
  for (auto _ : state) {
    if (state.range(0) == 0) {
      kept = planner();
      scheduler = std::make_unique<monet::Scheduler>(*kept);
      program = kept->program(alone);
    }
    if (state.range(0) == 1) program = kept->program(fused[next++ % fused.size()]);
    benchmark::DoNotOptimize(scheduler->schedule(program, false).latency);
  }
  state.counters["units"] = static_cast<double>(graph->units.size());
  state.counters["tiles"] = static_cast<double>(program.tiles.size());
  state.counters["pieces"] = static_cast<double>(program.pieces.size());
  state.counters["needs"] = static_cast<double>(program.needs.size());
  int64_t pairs = 0;
  for (const monet::Need& need : program.needs)
    for (uint64_t bits : need.tiles.bits) pairs += __builtin_popcountll(bits);
  state.counters["reads"] = static_cast<double>(pairs);
}
BENCHMARK_CAPTURE(BM_Schedule, resnet18_cifar, "examples/models/resnet18_cifar.onnx",
                  R"({"hardware": "edge_tpu", "batch": 4, "optimizer": "adam"})")
    ->DenseRange(0, 2)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(BM_Schedule, gpt2_small, "examples/models/gpt2_small.onnx",
                  R"({"hardware": "fusemax", "optimizer": "adam"})")
    ->DenseRange(0, 2)
    ->Unit(benchmark::kMillisecond);

// What the page waits for when two units are fused: inference and step, planned, run and written.
void BM_Reschedule(benchmark::State& state, const std::string& path, const std::string& settings_text) {
  auto source = monet::open_file(path);
  monet::Session session(*source, path);
  monet::Settings settings = monet::parse_settings(settings_text);
  size_t bytes = 0;
  int64_t next = 0;
  for (auto _ : state) {
    settings.partition = nlohmann::ordered_json::parse(fused_pair(next++));
    bytes = monet::to_bytes(session.schedule(settings)).size();
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}
BENCHMARK_CAPTURE(BM_Reschedule, resnet18_cifar, "examples/models/resnet18_cifar.onnx",
                  R"({"hardware": "edge_tpu", "batch": 4, "optimizer": "adam"})")
    ->Unit(benchmark::kMillisecond);

// A chain of MatMul and Relu with that many nodes, [size, size] each.
monet::Graph chain(int64_t nodes, int64_t size) {
  monet::Graph graph;
  auto tensor = [&](const std::string& name, monet::TensorKind kind) {
    return graph.add(monet::Tensor{.name = name, .dtype = monet::DType::float32, .shape = {size, size}, .kind = kind});
  };
  monet::TensorId x = tensor("x", monet::TensorKind::input);
  graph.inputs.push_back(x);
  for (int64_t i = 0; i < nodes / 2; ++i) {
    std::string name = std::to_string(i);
    monet::TensorId weight = tensor("w" + name, monet::TensorKind::parameter);
    graph.inputs.push_back(weight);
    monet::TensorId product = tensor("m" + name, monet::TensorKind::computed);
    graph.add(monet::Node{.op = "MatMul", .inputs = {x, weight}, .outputs = {product}});
    x = tensor("r" + name, monet::TensorKind::computed);
    graph.add(monet::Node{.op = "Relu", .inputs = {product}, .outputs = {x}});
  }
  graph.outputs = {x};
  return graph;
}

// The training graph, without import: time must grow with the nodes, not faster.
void BM_TrainingGraphOfChain(benchmark::State& state) {
  monet::Graph graph = chain(state.range(0), 8);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        monet::build_training_graph(graph, {.optimizer = monet::Optimizer::adam}).graph.nodes.size());
  state.SetComplexityN(state.range(0));
}
BENCHMARK(BM_TrainingGraphOfChain)->Arg(1'000)->Arg(10'000)->Arg(100'000)->Complexity()->Unit(benchmark::kMillisecond);

// How planning and scheduling a step grow with the nodes (first number, layer by layer) and with the tiles (second
// number, every MatMul fused with its Relu forward), mappings cached.
void BM_ScheduleOfChain(benchmark::State& state) {
  monet::Graph forward = chain(state.range(0), 256);
  monet::assign_single_units(forward);
  monet::Graph graph = monet::build_training_graph(forward, {.optimizer = monet::Optimizer::adam}).graph;
  std::vector<monet::Work> works = monet::works(graph);
  monet::Accelerator accelerator = *monet::accelerator_of(monet::parse_settings(R"({"hardware": "fusemax"})"), {});
  monet::MappingFile mapping;
  monet::CostCache cache;
  nlohmann::json groups = nlohmann::json::array();
  for (int64_t i = 0; i < state.range(0); i += 2)
    groups.push_back({{"units", {i, i + 1}}, {"tiles", state.range(1)}, {"axis", "batch"}});
  monet::Partition partition = state.range(1) == 1
                                   ? monet::layer_by_layer(graph)
                                   : monet::parse_partition(nlohmann::json{{"groups", groups}}.dump(), graph);
  int64_t tiles = 0;
  for (auto _ : state) {
    monet::Planner planner(graph, works, accelerator, monet::datapath_precision(), mapping, {}, {}, cache);
    monet::Program program = planner.program(partition);
    tiles = static_cast<int64_t>(program.tiles.size());
    benchmark::DoNotOptimize(monet::Scheduler(planner).schedule(program, false).latency);
  }
  state.counters["units"] = static_cast<double>(graph.units.size());
  state.counters["tiles"] = static_cast<double>(tiles);
}
BENCHMARK(BM_ScheduleOfChain)
    ->ArgsProduct({{100, 400, 1600, 6400}, {1}})
    ->ArgsProduct({{100}, {2, 8, 32, 128}})
    ->Unit(benchmark::kMillisecond);

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

monet::Accelerator preset(const std::string& name) {
  for (const monet::Preset& preset : monet::hardware_presets())
    if (preset.name == name) return monet::parse_accelerator(preset.json);
  return {};
}

// A convolution of ResNet-18 (layer2.0.conv2), searched on edge_tpu_like: how time grows with the limit on temporal
// loops.
monet::Layer convolution() {
  monet::Layer layer;
  layer.name = "conv";
  layer.loops = {{"B", 1}, {"K", 128}, {"G", 1}, {"OX", 28}, {"OY", 28}, {"C", 128}, {"FX", 3}, {"FY", 3}};
  monet::LayerOperand input, weight, output;
  input.name = "I";
  input.loops = {0, 2, 5};
  for (int axis : {0, 1}) {
    monet::WindowedAxis window;
    window.point = 3 + axis;
    window.tap = 6 + axis;
    window.size = 28;
    input.windows.push_back(window);
  }
  weight.name = "W";
  weight.loops = {1, 2, 5, 6, 7};
  output.name = "O";
  output.loops = {0, 1, 2, 3, 4};
  layer.operands = {input, weight, output};
  return layer;
}

void search(benchmark::State& state, const monet::Core& core, const monet::CostOptions& options) {
  monet::Layer layer = convolution();
  int64_t orders = 0;
  for (auto _ : state) orders += monet::cost_layer(layer, core, {}, options).orders;
  state.counters["orders"] = static_cast<double>(orders) / static_cast<double>(state.iterations());
  state.counters["orders/s"] = benchmark::Counter(static_cast<double>(orders), benchmark::Counter::kIsRate);
}

void BM_SearchByFactorLimit(benchmark::State& state) {
  monet::CostOptions options;
  options.factor_limit = static_cast<int>(state.range(0));
  search(state, monet::with_offchip(preset("edge_tpu_like"), 0), options);
}
BENCHMARK(BM_SearchByFactorLimit)->DenseRange(3, 9)->Unit(benchmark::kMillisecond);

// Likewise with so many memories more between the buffer and off-chip, each twice the size of the one below.
void BM_SearchByDepth(benchmark::State& state) {
  monet::Core core = monet::with_offchip(preset("edge_tpu_like"), 0);
  monet::Memory buffer = core.memories[core.memories.size() - 2];
  buffer.operands = {"I1", "I2", "O"};
  for (monet::Port& port : buffer.ports)
    port.allocation.emplace_back("I2", port.type == monet::Port::Type::read ? "tl" : "fh");
  for (int64_t i = 0; i < state.range(0); ++i) {
    buffer.size *= 2;
    buffer.name = "level" + std::to_string(i);
    core.memories.insert(core.memories.end() - 1, buffer);
  }
  search(state, core, {});
  state.counters["levels"] = static_cast<double>(core.memories.size());
}
BENCHMARK(BM_SearchByDepth)->DenseRange(0, 4)->Unit(benchmark::kMillisecond);

// The 21 contractions of ZigZag's own resnet18.onnx on its edge_tpu_like, nothing remembered before, equal layers once:
// what takes ZigZag 3.8.5 76 s on two cores.
void BM_CostLayersAsZigZag(benchmark::State& state) {
  std::string oracles = MONET_SHARED_DIR "/oracles/zigzag/";
  if (!std::filesystem::exists(oracles)) return state.SkipWithError("no oracles/zigzag");
  monet::Accelerator accelerator = monet::parse_accelerator(read_file(oracles + "hardware_edge_tpu_like.json"));
  monet::MappingFile mapping = monet::parse_mapping(read_file(oracles + "mapping_edge_tpu_like.json"));
  auto source = monet::open_file(oracles + "resnet18.onnx");
  monet::BoundModel model = monet::Model::open(*source, "resnet18").bind({});
  std::vector<monet::Layer> layers;
  for (const monet::Unit& unit : model.graph.units)
    if (auto layer = monet::layer_of(model.graph, unit)) layers.push_back(*layer);
  int64_t orders = 0;
  for (auto _ : state) {
    monet::Core core = monet::with_offchip(accelerator, 0);
    monet::CostCache cache;
    double cycles = 0;
    for (const monet::Layer& layer : layers) {
      size_t before = cache.size();
      const monet::LayerCost& cost = cache.cost(layer, core, mapping.of(layer));
      cycles += cost.cycles();
      if (cache.size() > before) orders += cost.orders;
    }
    if (cycles != 2887804.5) state.SkipWithError("not ZigZag's cycles");
  }
  state.counters["layers"] = static_cast<double>(layers.size());
  state.counters["orders/s"] = benchmark::Counter(static_cast<double>(orders), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_CostLayersAsZigZag)->Unit(benchmark::kMillisecond);

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  for (const char* folder : {MONET_SOURCE_DIR "/examples/models", MONET_SOURCE_DIR "/build/models"})
    if (std::filesystem::exists(folder))
      for (const auto& entry : std::filesystem::directory_iterator(folder))
        if (entry.path().extension() == ".onnx") files.push_back(entry.path());
  std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.filename() < b.filename(); });
  using Measure = void (*)(benchmark::State&, const std::string&);
  for (const std::filesystem::path& file : files)
    for (const auto& [title, measure] : {std::pair<const char*, Measure>{"Open", BM_Open},
                                         {"TrainingGraph", BM_TrainingGraph},
                                         {"AnalyzeNewBatch", BM_AnalyzeNewBatch},
                                         {"AnalyzeNewCapacity", BM_AnalyzeNewCapacity}})
      benchmark::RegisterBenchmark((std::string(title) + "/" + file.stem().string()).c_str(), measure, file.string())
          ->Unit(benchmark::kMillisecond);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
