// The cost of layers against ZigZag 3.8.5 (oracles/zigzag): every layer of its results, and every mapping that it
// enumerated for four cases. The engine and the plain evaluator (plain_mapping.h) are both held to them.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/cost/layer_cost.h"
#include "engine/onnx/model.h"
#include "engine/training/training_graph.h"
#include "tests/engine/plain_mapping.h"
#include "tests/engine/slow_build.h"

namespace monet {
namespace {

using Json = nlohmann::ordered_json;

const std::filesystem::path kOracles = MONET_SHARED_DIR "/oracles/zigzag";

const std::filesystem::path kStream = MONET_SHARED_DIR "/oracles/stream";

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// Layers of a workload file, or the contractions of an ONNX file.
std::vector<Layer> layers_of(const std::string& workload) {
  if (workload.find(".onnx") == std::string::npos) {
    Workload parsed = parse_workload(read_file(kOracles / workload));
    EXPECT_TRUE(parsed.warnings.empty());
    return parsed.layers;
  }
  std::string path = (kOracles / workload).string();
  auto source = open_file(path);
  BindOptions options;
  options.has_rule = has_gradient_rule;
  BoundModel bound = Model::open(*source, path).bind(options);
  std::vector<Layer> layers;
  for (const Unit& unit : bound.graph.units)
    if (std::optional<Layer> layer = layer_of(bound.graph, unit)) layers.push_back(*layer);
  return layers;
}

Core core_of(const std::string& hardware) {
  Accelerator accelerator = parse_accelerator(read_file(kOracles / ("hardware_" + hardware + ".json")));
  return with_offchip(accelerator, 0);
}

Accelerator stream_hardware(const std::string& name) {
  std::filesystem::path folder = kStream / "stream2506_hw";
  return parse_accelerator(read_file(folder / (name + ".json")),
                           [&](const std::string& file) -> std::optional<std::string> {
                             std::filesystem::path path = folder / std::filesystem::path(file).filename();
                             if (path.extension() != ".json" || !std::filesystem::exists(path)) return {};
                             return read_file(path);
                           });
}

struct Case {
  const char* result;
  const char* hardware;
  const char* mapping;
  const char* workload;
  int factor_limit;
  int layers;
};

const std::vector<Case> kCases = {
    {"edge_tpu_like__resnet18_onnx__latency", "edge_tpu_like", "edge_tpu_like", "resnet18.onnx", 6, 21},
    {"edge_tpu_like__resnet18_yaml__latency", "edge_tpu_like", "edge_tpu_like", "resnet18.json", 6, 31},
    {"edge_tpu_like__alexnet_onnx__latency", "edge_tpu_like", "edge_tpu_like", "alexnet.onnx", 6, 8},
    {"edge_tpu_like__gemm_dx_yaml__latency", "edge_tpu_like", "edge_tpu_like", "gemm_dx.json", 6, 1},
    {"edge_tpu_like__gemm_gkc_yaml__latency", "edge_tpu_like", "edge_tpu_like", "gemm_gkc.json", 6, 1},
    {"tpu_like__resnet18_onnx__latency", "tpu_like", "tpu_like", "resnet18.onnx", 6, 21},
    {"fusemax_array_dram__gemm_gkc_yaml__latency", "fusemax_array_dram", "fusemax_array_dram", "gemm_gkc.json", 6, 1},
    {"fusemax_array_dram__gemm_gkc_yaml__latency__map_fusemax_dk", "fusemax_array_dram", "fusemax_dk", "gemm_gkc.json",
     6, 1},
    {"lpf3__gemm_l1__gemm_layer_yaml__latency", "gemm_l1", "gemm_l1", "gemm_layer.json", 3, 1},
    {"lpf3__gemm_l1_l3__gemm_layer_yaml__latency", "gemm_l1_l3", "gemm_l1_l3", "gemm_layer.json", 3, 1},
};

// "[[(C, 8), (FX, 3)], [], []]", as the results write an operand's levels.
template <typename Levels>
std::string shown(const Layer& layer, const Levels& levels) {
  std::string text = "[";
  for (const auto& level : levels) {
    text += text.size() > 1 ? ", [" : "[";
    for (const TemporalLoop& loop : level)
      text += (text.back() == '[' ? "(" : ", (") + layer.loops[loop.loop].dim + ", " + std::to_string(loop.size) + ")";
    text += "]";
  }
  return text + "]";
}

std::vector<std::vector<TemporalLoop>> temporal(const OperandCost& operand) {
  std::vector<std::vector<TemporalLoop>> levels;
  for (const LevelCost& level : operand.levels) levels.push_back(level.temporal);
  return levels;
}

// Of the result's text "{O: [[...]], W: ...}", the part of one operand.
std::string part(const std::string& text, const std::string& operand) {
  size_t at = text.find(operand + ": [["), end = text.find("]]", at);
  return at == std::string::npos ? "" : text.substr(at + operand.size() + 2, end - at - operand.size());
}

double relative(double a, double b) { return std::abs(a - b) / std::max(std::abs(a), 1e-30); }

class ZigZag : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(kOracles)) GTEST_SKIP() << "no oracles at " << kOracles;
  }
};

TEST_P(ZigZag, EveryLayer) {
  const Case& c = GetParam();
  Json expected = Json::parse(read_file(kOracles / (std::string(c.result) + ".json")));
  std::vector<Layer> layers = layers_of(c.workload);
  MappingFile file = parse_mapping(read_file(kOracles / ("mapping_" + std::string(c.mapping) + ".json")));
  Core core = core_of(c.hardware);
  ASSERT_EQ(layers.size(), static_cast<size_t>(c.layers));
  CostOptions options;
  options.factor_limit = c.factor_limit;
  CostCache cache;
  int equal = 0, same_mapping = 0;
  double cycles = 0, energy = 0;
  for (const Json& e : expected["layers"]) {
    // By name where names are the file's; alexnet.onnx has none, and ZigZag numbers its layers.
    const Layer* layer = nullptr;
    for (const Layer& l : layers)
      if (l.name == e["name"]) layer = &l;
    if (!layer) layer = &layers[static_cast<size_t>(&e - &expected["layers"][0])];
    SCOPED_TRACE(std::string(c.result) + " " + layer->name);
    Json dims;
    for (const Loop& loop : layer->loops)
      if (e["dims"].contains(loop.dim) || loop.size > 1) dims[loop.dim] = loop.size;
    EXPECT_EQ(dims.dump(), e["dims"].dump());
    const LayerCost& cost = cache.cost(*layer, core, file.of(*layer), options);
    bool same = cost.cycles() == e["latency_total2"] && cost.temporal_cycles + cost.stall == e["latency_total0"] &&
                cost.temporal_cycles + cost.stall + cost.onload == e["latency_total1"] && cost.stall == e["stall"] &&
                cost.onload == e["onload"] && cost.offload == e["offload"] &&
                relative(e["energy_total"], cost.energy) < 1e-9;
    EXPECT_TRUE(same) << "cycles " << cost.cycles() << " stall " << cost.stall << " onload " << cost.onload
                      << " offload " << cost.offload << " energy " << cost.energy << " for " << e["latency_total2"]
                      << " " << e["stall"] << " " << e["onload"] << " " << e["offload"] << " " << e["energy_total"];
    equal += same;
    cycles += cost.cycles();
    energy += cost.energy;
    EXPECT_EQ(cost.ideal_cycles, e["ideal_cycle"]);
    EXPECT_EQ(cost.temporal_cycles, e["ideal_temporal_cycle"]);
    EXPECT_NEAR(cost.spatial_utilisation(), e["mac_spatial_utilization"].get<double>(), 1e-12);
    EXPECT_NEAR(cost.utilisation(), e["mac_utilization2"].get<double>(), 1e-12);
    EXPECT_LT(relative(e["mac_energy"], cost.mac_energy), 1e-12);
    bool mapping = true;
    for (const OperandCost& operand : cost.operands) {
      mapping = mapping && shown(*layer, temporal(operand)) == part(e["temporal"], operand.name);
      const Json& words = e["word_access"][operand.name];
      for (size_t l = 0; l < operand.levels.size(); ++l) {
        const LevelCost& level = operand.levels[l];
        EXPECT_EQ(core.memories[level.memory].name, e["mem_levels"][operand.name][l]);
        EXPECT_EQ(level.reads_to_low, words[l]["rd_out_to_low"]) << operand.name << l;
        EXPECT_EQ(level.writes_by_low, words[l]["wr_in_by_low"]) << operand.name << l;
        EXPECT_EQ(level.reads_to_high, words[l]["rd_out_to_high"]) << operand.name << l;
        EXPECT_EQ(level.writes_by_high, words[l]["wr_in_by_high"]) << operand.name << l;
        EXPECT_NEAR(level.energy, e["mem_energy_breakdown"][operand.name][l].get<double>(), 1e-9 * (1 + level.energy));
      }
    }
    same_mapping += mapping;
  }
  EXPECT_EQ(equal, c.layers);
  EXPECT_EQ(cycles, expected["total_latency_cycles"]);
  EXPECT_LT(relative(expected["total_energy_pJ"], energy), 1e-9);
  std::printf("%-60s %2d of %2d layers equal, %2d with ZigZag's own mapping\n", c.result, equal, c.layers,
              same_mapping);
}

INSTANTIATE_TEST_SUITE_P(Cases, ZigZag, ::testing::ValuesIn(kCases));

// The gradients of a product of 512 x 768 and 768 x 1024, from a graph: ZigZag's gemm_dx is the input's.
TEST(ZigZagGradients, OfAProductAreItsOwnGemms) {
  if (!std::filesystem::exists(kOracles)) GTEST_SKIP() << "no oracles at " << kOracles;
  Graph graph;
  auto tensor = [&](const char* name, Shape shape) {
    Tensor t;
    t.name = name;
    t.dtype = DType::float32;
    t.shape = std::move(shape);
    return graph.add(std::move(t));
  };
  Node node;
  node.op = "Gemm";
  node.inputs = {tensor("a", {512, 768}), tensor("b", {768, 1024})};
  node.outputs = {tensor("y", {512, 1024})};
  Unit unit;
  unit.origin = unit.contraction = graph.add(node);
  for (const char* file : {"gemm_gkc.json", "gemm_dx.json", "gemm_dw.json"}) {
    Layer expected = parse_workload(read_file(kOracles / file)).layers[0];
    Layer layer = layer_of(graph, unit).value();
    for (const Loop& loop : expected.loops)
      for (const Loop& own : layer.loops)
        if (own.dim == loop.dim) {
          EXPECT_EQ(own.size, loop.size) << file << loop.dim;
        }
    LayerMapping mapping = parse_mapping(read_file(kOracles / "mapping_edge_tpu_like.json")).of(layer);
    LayerCost a = cost_layer(layer, core_of("edge_tpu_like"), mapping);
    LayerCost b = cost_layer(expected, core_of("edge_tpu_like"), mapping);
    EXPECT_EQ(a.cycles(), b.cycles()) << file;
    EXPECT_EQ(a.energy, b.energy) << file;
    unit.role = unit.role == Role::forward ? Role::input_gradient : Role::weight_gradient;
  }
}

// MobileNetV2's features.10 conv.0 (COST_MODEL section 2): 9,986 cycles for 14,048 DRAM words of one a cycle. Cycles
// are counted with 12 x 12 of the 14 x 14 outputs (3 of 3.5 units an axis), and both inputs load at once through one
// port.
TEST(ZigZagQuirks, CyclesCanUndercutTheRoof) {
  if (!std::filesystem::exists(kOracles)) GTEST_SKIP() << "no oracles at " << kOracles;
  Layer layer = parse_workload(R"([{"id": 0, "operator_type": "Conv",
      "equation": "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]", "dimension_relations": ["ix=ox+fx", "iy=oy+fy"],
      "loop_dims": ["B", "K", "OX", "OY", "C", "FX", "FY"], "loop_sizes": [1, 384, 14, 14, 64, 1, 1]}])")
                    .layers[0];
  LayerMapping mapping = parse_mapping(read_file(kOracles / "mapping_edge_tpu_like.json")).of(layer);
  LayerCost cost = cost_layer(layer, core_of("edge_tpu_like"), mapping);
  EXPECT_EQ(cost.cycles(), 9986);
  double words = 0;
  for (const OperandCost& operand : cost.operands)
    words += operand.levels.back().reads_to_low + operand.levels.back().writes_by_low;
  EXPECT_EQ(words, 14048);
}

// The layer with the loops of `dims`, in their order and with their sizes.
Layer with_dims(const Layer& layer, const Json& dims) {
  Layer result = layer;
  result.loops.clear();
  std::vector<int> place(layer.loops.size(), 0);
  for (auto it = dims.begin(); it != dims.end(); ++it)
    for (size_t i = 0; i < layer.loops.size(); ++i) {
      if (layer.loops[i].dim != it.key()) continue;
      place[i] = static_cast<int>(result.loops.size());
      result.loops.push_back({it.key(), it.value()});
    }
  for (LayerOperand& operand : result.operands) {
    std::vector<int> loops;
    for (int loop : operand.loops)
      if (dims.contains(layer.loops[loop].dim)) loops.push_back(place[loop]);
    operand.loops = loops;
    for (WindowedAxis& axis : operand.windows) {
      axis.point = place[axis.point];
      axis.tap = place[axis.tap];
    }
  }
  return result;
}

// Stream's nodes are layers on its cores, here with every operand in off-chip memory. Stream does not keep the best
// order, but what a node costs is what one of its orders costs here, in cycles and in energy.
TEST(Stream, EveryContractionOfResNet18IsOneOfItsOrders) {
  if (!std::filesystem::exists(kStream)) GTEST_SKIP() << "no oracles at " << kStream;
  Core core = with_offchip(stream_hardware("tpu_like_quad_core"), 0);
  std::vector<Layer> layers = layers_of("resnet18.onnx");
  Json expected = Json::parse(read_file(kStream / "stream2506_ga__tpu_like_quad_core__resnet18_onnx__lbl.json"));
  std::map<std::string, bool> known;
  int nodes = 0, among = 0, best = 0;
  CostCache cache;
  for (const Json& node : expected["nodes"]) {
    const Layer* whole = nullptr;
    for (const Layer& layer : layers)
      if (layer.name == node["name"]) whole = &layer;
    if (!whole) continue;
    ++nodes;
    Layer tile = with_dims(*whole, node["dims"]);  // a part of K, and loops in Stream's order
    double energy = node["onchip_energy"].get<double>() + node["offchip_energy"].get<double>();
    auto same = [&](const LayerCost& cost) {
      return cost.cycles() == node["runtime"] && relative(energy, cost.energy) < 1e-9;
    };
    best += same(cache.cost(tile, core, {}));
    std::string key = node["name"].get<std::string>() + node["dims"].dump();
    if (!known.count(key)) {
      bool found = false;
      LoopOrders orders(tile, resolve(core.dataflows, tile, core).temporal, {}, CostOptions{}.factor_limit);
      do {
        std::vector<TemporalLoop> order;
        for (int loop : orders.order()) order.push_back(orders.loops()[loop]);
        found = same(cost_order(tile, core, {}, order));
      } while (!found && orders.next());
      EXPECT_TRUE(found) << key;
      known[key] = found;
    }
    among += known[key];
  }
  EXPECT_EQ(nodes, 81);
  EXPECT_EQ(among, nodes);
  std::printf("Stream: %d of %d nodes cost what one of our orders does, %d of them the best\n", among, nodes, best);
}

// COST_MODEL section 3's small exact case: both layers of an MLP on FuseMax, whole with off-chip memory, and a tile of
// 64 rows that fits the core.
TEST(Stream, MlpOnFuseMax) {
  if (!std::filesystem::exists(kStream)) GTEST_SKIP() << "no oracles at " << kStream;
  Accelerator accelerator = stream_hardware("fusemax");
  Layer layer = parse_workload(read_file(kOracles / "gemm_gkc.json")).layers[0];
  LayerCost whole = cost_layer(layer, with_offchip(accelerator, 0), {});
  EXPECT_EQ(whole.cycles(), 12352);
  EXPECT_NEAR(whole.energy, 1291426201.6 + 136288000, 1);
  layer.loops[0].size = 64;  // D
  LayerCost tile = cost_layer(layer, accelerator.cores[0], {});
  EXPECT_EQ(tile.cycles(), 6159);
  EXPECT_NEAR(tile.energy, 164442931.2, 1);
}

#ifndef __EMSCRIPTEN__
std::string inflated(const std::filesystem::path& path) {
  std::string text;
  FILE* pipe = popen(("gzip -dc '" + path.string() + "'").c_str(), "r");
  if (!pipe) return text;
  std::vector<char> block(1 << 16);
  for (size_t n; (n = fread(block.data(), 1, block.size(), pipe)) > 0;) text.append(block.data(), n);
  pclose(pipe);
  return text;
}
#endif

struct Enumeration {
  const char* file;
  const char* hardware;
  const char* mapping;
  const char* workload;
  size_t mappings;
};

class ZigZagMappings : public ::testing::TestWithParam<Enumeration> {};

TEST_P(ZigZagMappings, EveryMapping) {
#ifdef __EMSCRIPTEN__
  GTEST_SKIP() << "mappings are gzipped, and no process can be run here";
#else
  const Enumeration& c = GetParam();
  std::filesystem::path path = kOracles / "mappings" / c.file;
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no mappings at " << path;
  std::string text = inflated(path);
  if (text.empty()) GTEST_SKIP() << "gzip cannot be run";
  Json expected = Json::parse(text);
  std::vector<Layer> layers = layers_of(c.workload);
  MappingFile file = parse_mapping(read_file(kOracles / ("mapping_" + std::string(c.mapping) + ".json")));
  Core core = core_of(c.hardware);
  CostOptions options;
  ASSERT_EQ(expected.size(), c.mappings);
  int tried = 0, equal = 0, plainly_equal = 0, shown_failures = 0;
  for (size_t i = 0; i < expected.size(); i += kSlowBuild, ++tried) {
    const Json& e = expected[i];
    const Layer* layer = nullptr;
    for (const Layer& l : layers)
      if (l.name == e["layer"]) layer = &l;
    ASSERT_TRUE(layer) << e["layer"];
    std::vector<TemporalLoop> order;
    std::string loops = part(e["temporal"], "O");
    for (size_t at = loops.find('('); at != std::string::npos; at = loops.find('(', at + 1)) {
      size_t comma = loops.find(',', at);
      std::string dim = loops.substr(at + 1, comma - at - 1);
      for (size_t l = 0; l < layer->loops.size(); ++l)
        if (layer->loops[l].dim == dim) order.push_back({static_cast<int>(l), std::stoll(loops.substr(comma + 1))});
    }
    LayerMapping mapping = file.of(*layer);
    mapping.temporal_ordering.clear();
    LayerCost cost = cost_order(*layer, core, mapping, order, options);
    bool same = cost.cycles() == e["latency_total2"] && cost.stall == e["stall"] && cost.onload == e["onload"] &&
                cost.offload == e["offload"] && relative(e["energy_total"], cost.energy) < 1e-9;
    for (const OperandCost& operand : cost.operands)
      same = same && shown(*layer, temporal(operand)) == part(e["temporal"], operand.name);
    plain::Cost plain = plain::Mapping(*layer, core, mapping.spatial, mapping.links, options).cost(order);
    bool plainly = plain.fits && plain.total2 == e["latency_total2"] && plain.stall == e["stall"] &&
                   plain.onload == e["onload"] && plain.offload == e["offload"] &&
                   relative(e["energy_total"], plain.energy) < 1e-9;
    for (size_t o = 0; plainly && o < layer->operands.size(); ++o)
      plainly = shown(*layer, plain.levels[o]) == part(e["temporal"], layer->operands[o].name);
    equal += same;
    plainly_equal += plainly;
    if ((!same || !plainly) && ++shown_failures <= 3)
      ADD_FAILURE() << layer->name << " " << e["temporal"] << "\nengine " << cost.cycles() << " stall " << cost.stall
                    << " onload " << cost.onload << " offload " << cost.offload << " energy " << cost.energy
                    << "\nplain " << plain.total2 << " stall " << plain.stall << " onload " << plain.onload
                    << " offload " << plain.offload << " energy " << plain.energy << "\nZigZag " << e["latency_total2"]
                    << " stall " << e["stall"] << " onload " << e["onload"] << " offload " << e["offload"] << " energy "
                    << e["energy_total"];
  }
  EXPECT_EQ(equal, tried);
  EXPECT_EQ(plainly_equal, tried);
  std::printf("%-45s %5d of %5d mappings equal, %5d plainly\n", c.file, equal, tried, plainly_equal);
#endif
}

INSTANTIATE_TEST_SUITE_P(Cases, ZigZagMappings,
                         ::testing::Values(Enumeration{"edge_tpu_like_resnet18.onnx.json.gz", "edge_tpu_like",
                                                       "edge_tpu_like", "resnet18.onnx", 11960},
                                           Enumeration{"edge_tpu_like_gemm_dx.yaml.json.gz", "edge_tpu_like",
                                                       "edge_tpu_like", "gemm_dx.json", 720},
                                           Enumeration{"fusemax_array_dram_gemm_gkc.yaml.json.gz", "fusemax_array_dram",
                                                       "fusemax_array_dram", "gemm_gkc.json", 360},
                                           Enumeration{"gemm_l1_l3_gemm_layer.yaml.json.gz", "gemm_l1_l3", "gemm_l1_l3",
                                                       "gemm_layer.json", 6}));

}  // namespace
}  // namespace monet
