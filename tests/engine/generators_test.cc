// Hardware files made from a few numbers, against the presets; and presets against the files that they were taken from.
#include "engine/hardware/generators.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "engine/hardware/accelerator.h"

namespace monet {
namespace {

namespace fs = std::filesystem;

Accelerator preset(const std::string& name) {
  for (const Preset& p : hardware_presets())
    if (p.name == name) return parse_accelerator(p.json);
  throw std::runtime_error("no preset " + name);
}

// `names`: of cores and memories, too. Ports are compared by what they do, not by what they are called.
void expect_equal(const Core& a, const Core& b, bool names) {
  if (names) {
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.type, b.type);
  }
  EXPECT_EQ(a.dimensions, b.dimensions);
  EXPECT_EQ(a.sizes, b.sizes);
  EXPECT_EQ(a.unit_energy, b.unit_energy);
  EXPECT_EQ(a.unit_area, b.unit_area);
  EXPECT_EQ(a.dataflows, b.dataflows);
  ASSERT_EQ(a.memories.size(), b.memories.size());
  for (size_t m = 0; m < a.memories.size(); ++m) {
    const Memory &x = a.memories[m], &y = b.memories[m];
    SCOPED_TRACE(x.name);
    EXPECT_TRUE(!names || x.name == y.name);
    EXPECT_EQ(x.size, y.size);
    EXPECT_EQ(x.read_cost, y.read_cost);
    EXPECT_EQ(x.write_cost, y.write_cost);
    EXPECT_EQ(x.operands, y.operands);
    EXPECT_EQ(x.served_dimensions, y.served_dimensions);
    auto uses = [](const Memory& memory) {
      std::map<std::pair<std::string, std::string>, std::array<int64_t, 3>> found;
      for (const Port& port : memory.ports)
        for (const auto& use : port.allocation)
          found[use] = {static_cast<int64_t>(port.type), port.bandwidth_min, port.bandwidth_max};
      return found;
    };
    EXPECT_EQ(uses(x), uses(y));
    EXPECT_EQ(x.ports.size(), y.ports.size());
  }
}

void expect_equal(const Accelerator& a, const Accelerator& b) {
  ASSERT_EQ(a.cores.size(), b.cores.size());
  for (size_t c = 0; c < a.cores.size(); ++c) {
    SCOPED_TRACE(c);
    expect_equal(a.cores[c], b.cores[c], true);
    EXPECT_EQ(a.cores[c].id, b.cores[c].id);
    EXPECT_EQ(a.cores[c].coordinates, b.cores[c].coordinates);
  }
  EXPECT_EQ(a.offchip_core, b.offchip_core);
  EXPECT_EQ(a.unit_energy_cost, b.unit_energy_cost);
  EXPECT_EQ(a.memory_sharing, b.memory_sharing);
  ASSERT_EQ(a.connections.size(), b.connections.size());
  for (size_t i = 0; i < a.connections.size(); ++i) {
    EXPECT_EQ(a.connections[i].type, b.connections[i].type);
    EXPECT_EQ(a.connections[i].cores, b.connections[i].cores);
    EXPECT_EQ(a.connections[i].bandwidth, b.connections[i].bandwidth);
  }
}

TEST(Generators, DefaultsAreThePresets) {
  expect_equal(parse_accelerator(hardware_json(EdgeTpu{})), preset("edge_tpu"));
  expect_equal(parse_accelerator(hardware_json(FuseMax{})), preset("fusemax"));
}

// The corners of the published ranges.
TEST(Generators, EdgeTpuRanges) {
  for (int64_t rows : {1, 2, 4, 6, 8})
    for (int64_t columns : {1, 2, 4, 6, 8})
      for (int64_t units : {16, 128})
        for (int64_t lanes : {1, 8})
          for (int64_t memory : {1 << 19, 4 << 20}) {
            EdgeTpu p{rows, columns, units, lanes, memory, 8 << 10};
            Accelerator a = parse_accelerator(hardware_json(p));
            EXPECT_TRUE(a.warnings.empty());
            ASSERT_EQ(a.cores.size(), static_cast<size_t>(rows * columns + 3));
            EXPECT_EQ(a.mac_units(), static_cast<double>(rows * columns * units * lanes));
            EXPECT_EQ(a.cores[0].memories.back().size, 8 * memory);
            EXPECT_EQ(a.cores[0].memories.front().size, 8 * (8 << 10));
            // Neighbours, two more per PE, one bus.
            auto mesh = static_cast<size_t>(rows * (columns - 1) + columns * (rows - 1));
            EXPECT_EQ(a.connections.size(), mesh + static_cast<size_t>(2 * rows * columns) + 1);
            EXPECT_EQ(a.connections.back().cores.size(), a.cores.size());
          }
}

TEST(Generators, FuseMaxRanges) {
  for (int64_t side : {64, 512})
    for (int64_t lanes : {32, 256})
      for (int64_t bandwidth : {2048, 16384})
        for (int64_t offchip : {512, 8192}) {
          FuseMax p{side, side, lanes, 32 << 20, bandwidth, offchip};
          Accelerator a = parse_accelerator(hardware_json(p));
          EXPECT_TRUE(a.warnings.empty());
          EXPECT_EQ(a.mac_units(), static_cast<double>(side * side));
          EXPECT_EQ(a.offchip_bandwidth(), static_cast<double>(offchip));
          EXPECT_EQ(a.onchip_bytes(), 32 << 20);
          EXPECT_EQ(a.cores[1].pes(), lanes);
        }
}

TEST(Generators, EveryParameterOutOfRangeIsNamed) {
  try {
    hardware_json(EdgeTpu{0, 4, -1, 4, int64_t{1} << 50, 1});
    FAIL();
  } catch (const Refusal& refusal) {
    ASSERT_EQ(refusal.problems().size(), 3u);
    EXPECT_EQ(refusal.problems()[0].message, "rows must be from 1 to 120, is 0");
    EXPECT_EQ(refusal.problems()[1].node, "simd_units");
    EXPECT_EQ(refusal.problems()[2].node, "memory_bytes");
  }
  EXPECT_THROW(hardware_json(EdgeTpu{16, 16}), Refusal);
  EXPECT_THROW(hardware_json(FuseMax{.vector_lanes = 0}), Refusal);
}

std::optional<std::string> read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Presets, EqualTheFilesTheyWereTakenFrom) {
  const fs::path stream = MONET_SHARED_DIR "/oracles/stream/stream2506_hw", zigzag = MONET_SHARED_DIR "/oracles/zigzag";
  if (!fs::exists(stream)) GTEST_SKIP() << "no oracles at " << stream;
  auto core_of = [&](const std::string& file) {
    return parse_accelerator(*read_file(stream / (file + ".json"))).cores.front();
  };
  auto in_preset = [](const Accelerator& a, const std::string& name) {
    for (const Core& core : a.cores)
      if (core.name == name) return core;
    throw std::runtime_error(name);
  };
  Accelerator quad = preset("tpu_like_quad_core"), eyeriss = preset("eyeriss_like"), simba = preset("simba");
  expect_equal(in_preset(quad, "tpu_like"), core_of("tpu_like"), false);
  expect_equal(in_preset(eyeriss, "eyeriss_like"), core_of("eyeriss_like"), false);
  expect_equal(in_preset(simba, "chiplet"), core_of("simba_chiplet"), false);
  for (const Accelerator* a : {&quad, &eyeriss})
    for (const char* file : {"pooling", "simd"}) expect_equal(in_preset(*a, file), core_of(file), false);
  // The whole quad core, links and all.
  Accelerator theirs = parse_accelerator(*read_file(stream / "tpu_like_quad_core.json"), [&](const std::string& file) {
    fs::path path = stream / fs::path(file).filename();
    return path.extension() == ".json" ? read_file(path) : std::nullopt;
  });
  ASSERT_EQ(theirs.cores.size(), quad.cores.size());
  for (size_t c = 0; c < quad.cores.size(); ++c) expect_equal(quad.cores[c], theirs.cores[c], false);
  ASSERT_EQ(theirs.connections.size(), quad.connections.size());
  for (size_t i = 0; i < quad.connections.size(); ++i) {
    EXPECT_EQ(quad.connections[i].cores, theirs.connections[i].cores);
    EXPECT_EQ(quad.connections[i].bandwidth, theirs.connections[i].bandwidth);
  }
  Accelerator meta = parse_accelerator(*read_file(zigzag / "hardware_meta_prototype.json")),
              ours = preset("meta_prototype");
  ASSERT_EQ(meta.cores.size(), ours.cores.size());
  for (size_t c = 0; c < meta.cores.size(); ++c) expect_equal(ours.cores[c], meta.cores[c], false);
}

// COST_MODEL section 4.
TEST(Presets, TpuV7) {
  Accelerator a = preset("tpu_v7_ironwood");
  EXPECT_EQ(a.mac_units(), 32 * 256 * 256);
  EXPECT_EQ(a.mac_energy(), 0.02);
  int vectors = 0, scratch = 0;
  for (const Core& core : a.cores) {
    vectors += core.type == "vector" && core.pes() == 8 * 128 && core.unit_energy == 0.06;
    scratch += core.name == "vmem" && core.memories.front().size == int64_t{64} << 23 &&
               core.memories.front().read_cost == 200 && core.memories.front().write_cost == 220;
  }
  EXPECT_EQ(vectors, 4);
  EXPECT_EQ(scratch, 4);
  EXPECT_EQ(a.offchip_bytes(), int64_t{384} << 30);
  EXPECT_EQ(a.cores[a.offchip_core].memories.front().ports.front().bandwidth_max, 107345);
}

}  // namespace
}  // namespace monet
