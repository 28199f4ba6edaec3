// The vector rule by hand; what units of graphs cost, against ZigZag's results and the cost model's own; energies by
// size.
#include "engine/cost/unit_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/analysis/session.h"
#include "engine/cost/vector_cost.h"
#include "engine/hardware/access_energy.h"
#include "tests/engine/slow_build.h"

namespace monet {
namespace {

using Json = nlohmann::ordered_json;

// 4 PEs with an output register each, a buffer of 64 bit/cycle (one port to read, one to write), DRAM of 16 bit/cycle
// (one port for all).
Core small_core() {
  Core core;
  core.name = "small";
  core.dimensions = {"D1"};
  core.sizes = {4};
  core.unit_energy = 0.5;
  using Type = Port::Type;
  Memory registers{"rf", 16, 0.25, 0.125, 0, {"O"}, {}, {}};
  registers.ports = {Port{"r", Type::read, 8, 16, {{"O", "tl"}, {"O", "th"}}},
                     Port{"w", Type::write, 8, 16, {{"O", "fl"}, {"O", "fh"}}}};
  Memory buffer{"sram", 1 << 20, 10, 20, 0, {"I1", "I2", "O"}, {"D1"}, {}};
  buffer.ports = {Port{"r", Type::read, 64, 64, {{"I1", "tl"}, {"I2", "tl"}, {"O", "tl"}, {"O", "th"}}},
                  Port{"w", Type::write, 64, 64, {{"I1", "fh"}, {"I2", "fh"}, {"O", "fh"}, {"O", "fl"}}}};
  Memory dram{"dram", int64_t{1} << 40, 100, 200, 0, {"I1", "I2", "O"}, {"D1"}, {}};
  dram.ports = {Port{
      "rw",
      Type::read_write,
      16,
      16,
      {{"I1", "fh"}, {"I1", "tl"}, {"I2", "fh"}, {"I2", "tl"}, {"O", "fh"}, {"O", "tl"}, {"O", "fl"}, {"O", "th"}}}};
  core.memories = {registers, buffer, dram};
  return core;
}

double level(const Core& core, const VectorCost& cost, const std::string& name) {
  for (const VectorCost::Passed& passed : cost.passed)
    if (core.memories[passed.memory].name == name) return passed.energy;
  return 0;
}

TEST(VectorRule, StreamsFromTheHighestMemory) {
  Core core = small_core();
  VectorCost cost = vector_cost(core, 1000, 3200, 1600);
  EXPECT_EQ(cost.compute_cycles, 250);                 // 4 lanes
  EXPECT_EQ(cost.traffic_cycles, (3200 + 1600) / 16);  // one port for both
  EXPECT_EQ(cost.cycles(), 300);
  EXPECT_EQ(cost.stream->name, "dram");
  EXPECT_EQ(cost.compute_energy, 500);
  EXPECT_EQ(level(core, cost, "dram"), 200 * 100 + 100 * 200);
  // In: written to the buffer and read from it, 50 words each; out: likewise, 25.
  EXPECT_EQ(level(core, cost, "sram"), 50 * (20 + 10) + 25 * (20 + 10));
  EXPECT_EQ(level(core, cost, "rf"), 100 * (0.125 + 0.25));
  EXPECT_EQ(cost.energy(), 500 + 40000 + 2250 + 37.5);
}

TEST(VectorRule, LanesAndLevelAreTheHardwareFiles) {
  Core core = small_core();
  core.vector_lanes = 2;
  core.vector_memory = "sram";
  VectorCost cost = vector_cost(core, 1000, 3200, 6400);
  EXPECT_EQ(cost.compute_cycles, 500);
  EXPECT_EQ(cost.traffic_cycles, 100);  // 50 cycles of reading beside 100 of writing
  EXPECT_EQ(cost.stream->name, "sram");
  EXPECT_EQ(level(core, cost, "dram"), 0);
  EXPECT_EQ(level(core, cost, "sram"), 50 * 10 + 100 * 20);
}

TEST(VectorRule, CountsPartialWordsByTheirGranules) {
  Core core = small_core();
  core.vector_memory = "sram";
  core.memories[1].ports[0].bandwidth_min = 16;
  VectorCost cost = vector_cost(core, 0, 72, 0);  // 5 granules of 16 bits = 1.25 words
  EXPECT_EQ(level(core, cost, "sram"), 12.5);
  EXPECT_EQ(cost.compute_cycles, 0);
}

TEST(VectorRule, ACoreWithoutMemoriesCostsItsOperations) {
  Core core = small_core();
  core.memories.clear();
  EXPECT_EQ(vector_cost(core, 8, 100, 100).cycles(), 2);
  EXPECT_EQ(vector_cost(core, 8, 100, 100).energy(), 4);
}

// --- units of the bundled models

Json analyzed(const char* model, const std::string& settings) {
  std::unique_ptr<ByteSource> source = open_file(std::string(MONET_SOURCE_DIR "/examples/models/") + model + ".onnx");
  Session session(*source, model);
  return session.analyze(parse_settings(settings));
}

// ZigZag 3.8.5 (oracles/zigzag, edge_tpu_like, resnet18.onnx): the same layers, whatever runs beside them.
TEST(UnitCost, ForwardContractionsOfResNet18CostWhatZigZagSays) {
  Json report = analyzed("resnet18", R"({"hardware":"edge_tpu_like","batch":1})");
  EXPECT_FALSE(report["step"]["bound"]);
  double cycles = 0, energy = 0;
  int layers = 0;
  for (const Json& layer : report["layers"]) {
    if (layer["phase"] != "forward" || layer["rule"] != "mapping") continue;
    cycles += layer["latency_cycles"].get<double>();
    energy += layer["energy_pj"].get<double>();
    ++layers;
  }
  EXPECT_EQ(layers, 21);
  EXPECT_EQ(cycles, 2887804.5);
  EXPECT_NEAR(energy / 1903229377.55, 1, 1e-9);
}

TEST(UnitCost, EverythingAddsUp) {
  for (const char* model : {"lenet5", "resnet18_cifar"})
    for (const char* settings :
         {R"({"hardware":"edge_tpu_like","batch":4,"optimizer":"adam"})",
          R"({"hardware":"fusemax","batch":4,"optimizer":"momentum","corrections":["leave_room_above"]})",
          R"({"hardware":"tpu_like","batch":2,"micro_batches":3,"objective":"energy"})"}) {
      Json report = analyzed(model, settings);
      double cycles = 0, energy = 0, levels = 0;
      int64_t runs = report["training"]["micro_batches"];
      std::map<std::string, double> phases;
      for (const Json& layer : report["layers"]) {
        double times = layer["phase"] == "optimizer" ? 1 : static_cast<double>(runs);
        cycles += times * layer["latency_cycles"].get<double>();
        energy += times * layer["energy_pj"].get<double>();
        phases[layer["phase"]] += times * layer["latency_cycles"].get<double>();
        double sum = 0;
        for (const Json& l : layer["levels"]) sum += l["energy_pj"].get<double>();
        EXPECT_NEAR(sum, layer["energy_pj"].get<double>(), 1e-9 * sum) << layer;
        levels += times * sum;
        EXPECT_NE(layer["rule"], "bound") << layer;
        EXPECT_EQ(layer["rule"] == "mapping", layer["macs"] != 0);
        if (layer["rule"] != "mapping") continue;
        const Json& mapping = report["mappings"][layer["mapping"].get<size_t>()];
        EXPECT_EQ(mapping["macs"], layer["macs"]);
        EXPECT_EQ(mapping["cycles"], layer["latency_cycles"]);
        EXPECT_LE(layer["utilisation"], 1);
      }
      EXPECT_NEAR(report["step"]["latency_cycles"].get<double>() / cycles, 1, 1e-12) << model << settings;
      EXPECT_NEAR(report["step"]["energy_pj"].get<double>() / energy, 1, 1e-12);
      EXPECT_NEAR(levels / energy, 1, 1e-9);
      for (const auto& [phase, sum] : phases)
        EXPECT_NEAR(report["step"]["phases"][phase]["latency_cycles"].get<double>(), sum, 1e-9 * sum);
    }
}

// A bound is below every cost of the corrected model; where ZigZag's is below its bound, the layer is listed.
TEST(UnitCost, NoLayerOfTheCorrectedModelIsBelowItsBound) {
  std::vector<const char*> models = {"lenet5"};
  if (kSlowBuild == 1) models.insert(models.end(), {"resnet18", "mobilenet_v2"});
  for (const char* model : models)
    for (const char* hardware : {"edge_tpu_like", "tpu_like", "fusemax"})
      for (const char* corrections : {"[]", R"(["all"])"}) {
        Json report = analyzed(
            model, std::string(R"({"batch":2,"hardware":")") + hardware + R"(","corrections":)" + corrections + "}");
        bool corrected = std::string(corrections) != "[]";
        std::set<size_t> listed;
        for (const Json& id : report["bounds"]["below_roof"]) listed.insert(id.get<size_t>());
        for (const Json& layer : report["layers"]) {
          bool below = layer["latency_cycles"].get<double>() < layer["bound_cycles"].get<double>() * (1 - 1e-9);
          EXPECT_EQ(below, listed.count(layer["id"].get<size_t>()) > 0) << layer;
          if (corrected)
            EXPECT_GE(layer["energy_pj"].get<double>(), layer["bound_energy_pj"].get<double>() * (1 - 1e-9)) << layer;
        }
        if (corrected) EXPECT_TRUE(listed.empty()) << model << " on " << hardware;
        EXPECT_GE(report["step"]["latency_cycles"],
                  std::max(report["bounds"]["compute_cycles"], report["bounds"]["traffic_cycles"]));
        std::printf("%s on %s %s: %zu layers below the roof\n", model, hardware, corrections, listed.size());
      }
}

// A fixed dataflow that suits the forward pass wastes the array in the weight gradient (DESIGN decision 3).
TEST(UnitCost, UtilisationByRoleShowsTheDataflowConflict) {
  Json use = analyzed("resnet18", R"({"hardware":"edge_tpu_like","batch":1})")["step"]["utilisation"];
  EXPECT_GT(use["forward"], 0.5);
  EXPECT_GT(use["input_gradient"], 0.3);
  EXPECT_LT(use["weight_gradient"], 0.2);
}

TEST(UnitCost, SeveralComputeCoresHaveBounds) {
  Json report = analyzed("lenet5", R"({"hardware":"edge_tpu"})");
  EXPECT_TRUE(report["step"]["bound"]);
  EXPECT_TRUE(report["mappings"].empty());
  for (const Json& layer : report["layers"]) EXPECT_EQ(layer["rule"], "bound");
}

TEST(UnitCost, SettingsOfTheSearchReachIt) {
  auto total = [](const std::string& more) {
    Json report = analyzed("lenet5", R"({"hardware":"edge_tpu_like","batch":8)" + more + "}");
    return std::make_pair(report["step"]["latency_cycles"].get<double>(), report["step"]["energy_pj"].get<double>());
  };
  auto [cycles, energy] = total("");
  EXPECT_LT(total(R"(,"objective":"energy")").second, energy);
  EXPECT_NE(total(R"(,"factor_limit":2)").first, cycles);
  EXPECT_GE(total(R"(,"corrections":["hold_floors"])").first, cycles);
  EXPECT_NE(total(R"(,"access_energy":"hp_22nm")").second, energy);
  EXPECT_EQ(total(R"(,"access_energy":"hp_22nm")").first, cycles);
  EXPECT_NE(total(R"(,"mapping":[{"name":"default","spatial_mapping":{"D1":["C, 8"],"D2":["K, 8"]}}])").first, cycles);
  EXPECT_THROW(total(R"(,"mapping":[{"name":"default","spatial_mapping":{"D1":["C"]}}])"), Refusal);
}

// fp32 operands do not fit registers of 8 bits: those layers are counted with bounds, and the report says so.
TEST(UnitCost, WhatFitsNoMappingIsCountedWithItsBound) {
  Json report = analyzed("lenet5", R"({"hardware":"edge_tpu_like","widths":"tensors"})");
  int bounds = 0, warned = 0;
  for (const Json& layer : report["layers"]) bounds += layer["rule"] == "bound";
  for (const Json& warning : report["warnings"])
    warned +=
        warning["code"] == "no-mapping" && warning["message"].get<std::string>().find("rf_1B") != std::string::npos;
  EXPECT_GT(bounds, 0);
  EXPECT_EQ(warned, 1) << report["warnings"];
  Json half = analyzed("lenet5", R"({"hardware":"fusemax","widths":"tensors","precision":"bf16"})");
  EXPECT_TRUE(half["mappings"][0]["operands"][0]["bits"] == 16) << half["mappings"][0]["operands"];
}

// --- energy by size

TEST(AccessEnergy, FollowsTheLaw) {
  auto memory = [](const std::string& law) {
    Accelerator accelerator;
    for (const Preset& preset : hardware_presets())
      if (preset.name == "edge_tpu") accelerator = parse_accelerator(preset.json);
    apply_access_energy(accelerator, law);
    return accelerator;
  };
  Accelerator before = memory("file"), after = memory("hp_22nm");
  const Memory *was = &before.cores[0].memories.back(), *is = &after.cores[0].memories.back();
  EXPECT_EQ(was->read_cost, 416.16);
  // 2 MB, 2048-bit ports: .012 x 2048^.48 x 32^-.25 pJ a bit.
  EXPECT_NEAR(is->read_cost / 2048, 0.19605, 1e-4);
  EXPECT_NEAR(is->write_cost / is->read_cost, 378.4 / 416.16, 1e-6);
  // Registers of 2 bytes and off-chip memory keep the file's; the weights' 32 KB do not.
  EXPECT_EQ(after.cores[0].memories[1].read_cost, before.cores[0].memories[1].read_cost);
  EXPECT_NE(after.cores[0].memories[0].read_cost, before.cores[0].memories[0].read_cost);
  EXPECT_EQ(after.cores.back().memories[0].read_cost, before.cores.back().memories[0].read_cost);
  EXPECT_GT(memory("hp_65nm").cores[0].memories.back().read_cost, is->read_cost);
  EXPECT_EQ(access_energy_laws().size(), 8u);
}

}  // namespace
}  // namespace monet
