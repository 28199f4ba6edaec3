#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "engine/hardware/accelerator.h"

namespace monet {
namespace {

using Json = nlohmann::ordered_json;

std::optional<std::string> read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return {};
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

// A v2 core whose figures the tests below change one at a time.
Json small_core() {
  return Json::parse(R"({
    "name": "tiny", "type": "compute",
    "memories": {
      "rf": {"size": 16, "r_cost": 0.02, "w_cost": 0.03, "operands": ["O"], "served_dimensions": ["D2"],
             "ports": [{"name": "r", "type": "read", "bandwidth_min": 16, "bandwidth_max": 16, "allocation": ["O, tl", "O, th"]},
                       {"name": "w", "type": "write", "bandwidth_min": 16, "bandwidth_max": 16, "allocation": ["O, fh", "O, fl"]}]},
      "sram": {"size": 8000, "r_cost": 4, "w_cost": 5, "operands": ["I1", "I2", "O"], "served_dimensions": ["D1", "D2"],
               "ports": [{"name": "rw", "type": "read_write", "bandwidth_min": 8, "bandwidth_max": 64,
                          "allocation": ["I1, tl", "I1, fh", "I2, tl", "I2, fh", "O, tl", "O, th", "O, fl", "O, fh"]}]}},
    "operational_array": {"unit_energy": 0.5, "unit_area": 1, "dimensions": ["D1", "D2"], "sizes": [4, 8]},
    "dataflows": {"D1": ["K, 4"], "D2": ["C, 8"]}})");
}

Json small_system() {
  Json dram = Json::parse(R"({
    "name": "offchip",
    "memories": {"dram": {"size": 80000, "r_cost": 640, "w_cost": 320, "operands": ["I1", "I2", "O"], "served_dimensions": [],
      "ports": [{"name": "r", "type": "read", "bandwidth_min": 32, "bandwidth_max": 32, "allocation": ["I1, tl", "I2, tl", "O, tl"]},
                {"name": "w", "type": "write", "bandwidth_min": 8, "bandwidth_max": 8, "allocation": ["O, fl"]}]}},
    "operational_array": {"unit_energy": 0, "dimensions": ["D1"], "sizes": [0]}})");
  return Json{{"name", "pair"},
              {"core_types", {{"pe", small_core()}, {"dram", dram}}},
              {"cores", {{"0", "pe"}, {"1", "pe"}, {"2", "dram"}}},
              {"offchip_core_id", 2},
              {"core_connectivity", Json::parse(R"([{"type": "link", "cores": [0, 1], "bandwidth": 32}])")},
              {"unit_energy_cost", 0}};
}

std::vector<Diagnostic> problems_of(const std::string& text, const FileResolver& resolve = {}) {
  try {
    parse_accelerator(text, resolve);
  } catch (const Refusal& refusal) {
    return refusal.problems();
  }
  return {};
}

std::string messages(const std::vector<Diagnostic>& list) {
  std::string text;
  for (const Diagnostic& d : list) text += d.message + (d.hint.empty() ? "" : " [" + d.hint + "]") + "\n";
  return text;
}

TEST(Hardware, CoreAndSystemFieldsAreKept) {
  Accelerator a = parse_accelerator(small_system().dump());
  EXPECT_TRUE(a.warnings.empty()) << messages(a.warnings);
  ASSERT_EQ(a.cores.size(), 3u);
  EXPECT_EQ(a.offchip_core, 2);
  const Core& core = a.cores[1];
  EXPECT_EQ(core.id, 1);
  EXPECT_EQ(core.name, "tiny");
  EXPECT_EQ(core.pes(), 32);
  ASSERT_EQ(core.memories.size(), 2u);
  EXPECT_EQ(core.memories[0].name, "rf");          // order of the file, not of the alphabet
  EXPECT_EQ(core.instances(core.memories[0]), 4);  // serves D2 of D1 x D2 = 4 x 8
  EXPECT_EQ(core.instances(core.memories[1]), 1);
  EXPECT_EQ(core.memories[1].ports[0].allocation[0], std::make_pair(std::string("I1"), std::string("tl")));
  EXPECT_EQ(core.dataflows.at("D2")[0], std::make_pair(std::string("C"), int64_t{8}));
  ASSERT_EQ(a.connections.size(), 1u);
  EXPECT_EQ(a.connections[0].bandwidth, 32);
}

TEST(Hardware, VectorWorkHasLanesAndALevel) {
  Json system = small_system();
  system["core_types"]["pe"]["vector"] = {{"lanes", 16}, {"memory", "sram"}};
  const Core core = parse_accelerator(system.dump()).cores[0];
  EXPECT_EQ(core.vector_lanes, 16);
  EXPECT_EQ(core.vector_memory, "sram");
  system["core_types"]["pe"]["vector"]["memory"] = "dram";  // of the off-chip core
  EXPECT_EQ(parse_accelerator(system.dump()).cores[1].vector_memory, "dram");
  system["core_types"]["pe"]["vector"] = {{"lanes", 0}, {"memory", "srm"}};
  EXPECT_EQ(messages(problems_of(system.dump())),
            "core_types.pe.vector.lanes: must be a whole number >= 1, is 0\n"
            "core tiny: vector.memory: no memory is called \"srm\" [did you mean \"sram\"?]\n");
  system["core_types"]["pe"]["vector"]["lanes"] = 1;
  system["core_types"]["pe"]["vector"]["memory"] = "rf";
  EXPECT_NE(messages(problems_of(system.dump())).find("must hold an input (I1 or I2) and the output (O)"),
            std::string::npos);
}

TEST(Hardware, FiguresForBounds) {
  Accelerator a = parse_accelerator(small_system().dump());
  EXPECT_EQ(a.mac_units(), 64);
  EXPECT_EQ(a.vector_units(), 64);
  EXPECT_EQ(a.mac_energy(), 0.5);
  EXPECT_EQ(a.offchip_bandwidth(), 40);  // a read port of 32 and a write port of 8
  EXPECT_EQ(a.offchip_energy(), 20);     // read 640 / 32 = 20, write 320 / 8 = 40
  EXPECT_EQ(a.offchip_bytes(), 10000);
  EXPECT_EQ(a.onchip_bytes(), 2000);  // two cores with 8000 bits at the top
}

TEST(Hardware, DescribedEdgeConnectionsCapTheBandwidth) {
  Json system = small_system();
  system["core_connectivity"].push_back(Json::parse(R"({"type": "link", "cores": [1, 2], "bandwidth": 3})"));
  EXPECT_EQ(parse_accelerator(system.dump()).offchip_bandwidth(), 6);  // both directions of the link
  system["core_connectivity"].push_back(Json::parse(R"({"type": "bus", "cores": [0, 1, 2], "bandwidth": 10})"));
  EXPECT_EQ(parse_accelerator(system.dump()).offchip_bandwidth(), 16);
  system["core_connectivity"].push_back(Json::parse(R"({"type": "bus", "cores": [0, 2], "bandwidth": 1000})"));
  EXPECT_EQ(parse_accelerator(system.dump()).offchip_bandwidth(), 40);
}

TEST(Hardware, SharedMemoryCountsOnce) {
  Json system = small_system();
  system["core_memory_sharing"] = Json::array({"0, 1"});
  EXPECT_EQ(parse_accelerator(system.dump()).onchip_bytes(), 1000);
}

TEST(Hardware, EveryProblemIsReportedUnderItsPath) {
  Json system = small_system();
  Json& memory = system["core_types"]["pe"]["memories"]["sram"];
  memory["r_cost"] = "abc";
  memory["size"] = -1;
  memory["ports"][0]["bandwidth_max"] = 0;
  memory["ports"][0]["allocation"][0] = "I1, up";
  system["core_types"]["pe"]["memories"]["rf"]["served_dimensions"] = Json::array({"D7"});
  system["core_types"]["pe"]["operational_array"].erase("sizes");
  system["core_connectivity"][0]["cores"] = Json::array({0, 9});
  system["offchip_core_id"] = 4;
  system["cores"]["3"] = "pee";
  std::vector<Diagnostic> found = problems_of(system.dump());
  std::vector<std::string> paths;
  for (const Diagnostic& d : found) {
    EXPECT_EQ(d.message.find('\n'), std::string::npos);
    paths.push_back(d.node);
  }
  std::vector<std::string> expected = {"core_types.pe.memories.sram.r_cost",
                                       "core_types.pe.memories.sram.size",
                                       "core_types.pe.memories.sram.ports.0.bandwidth_max",
                                       "core_types.pe.memories.sram.ports.0.allocation.0",
                                       "core_types.pe.memories.rf.served_dimensions",
                                       "core_types.pe.operational_array.sizes",
                                       "core_connectivity.0.cores",
                                       "offchip_core_id",
                                       "cores.3"};
  for (const std::string& path : expected)
    EXPECT_EQ(std::count(paths.begin(), paths.end(), path), 1) << path << " in\n" << messages(found);
  EXPECT_EQ(found.size(), expected.size()) << messages(found);
  EXPECT_NE(messages(found).find("memories.sram.r_cost: must be a number >= 0, is \"abc\""), std::string::npos);
  EXPECT_NE(messages(found).find("did you mean \"pe\"?"), std::string::npos);
}

TEST(Hardware, UnknownFieldsWarnWithAGuess) {
  Json core = small_core();
  core["memories"]["sram"]["r_csot"] = 1;
  core["memories"]["sram"]["latency"] = 1;
  core["memories"]["sram"]["force_double_buffering"] = true;
  core["memories"]["sram"]["auto_cost_extraction"] = false;
  core["memories"]["sram"]["area"] = 3;
  core["colour"] = "red";
  Accelerator a = parse_accelerator(core.dump());
  ASSERT_EQ(a.warnings.size(), 3u) << messages(a.warnings);
  EXPECT_EQ(a.warnings[0].node, "memories.sram.r_csot");
  EXPECT_EQ(a.warnings[0].hint, "did you mean \"r_cost\"?");
  EXPECT_EQ(a.warnings[1].node, "colour");
  EXPECT_EQ(a.warnings[1].hint, "");
  EXPECT_EQ(a.warnings[2].code, "no-offchip");
}

TEST(Hardware, NumbersAsYamlStrings) {
  Json core = small_core();
  core["memories"]["sram"]["size"] = "16_777_216";
  core["memories"]["sram"]["r_cost"] = "32_000";
  core["memories"]["rf"]["size"] = 1e3;
  Accelerator a = parse_accelerator(core.dump());
  EXPECT_EQ(a.cores[0].memories[1].size, 16777216);
  EXPECT_EQ(a.cores[0].memories[1].read_cost, 32000);
  EXPECT_EQ(a.cores[0].memories[0].size, 1000);
}

TEST(Hardware, WrongNumbersAreRefused) {
  for (const char* value : {"\"NaN\"", "\"Infinity\"", "\"\"", "\"0x10\"", "\"1 2\"", "\"-\"", "\"_\"", "-5", "1.5",
                            "0", "1e30", "99999999999999999999", "true", "[]", "{}", "\"1e999\""}) {
    Json core = small_core();
    core["memories"]["sram"]["size"] = Json::parse(value);
    std::vector<Diagnostic> found = problems_of(core.dump());
    ASSERT_EQ(found.size(), 1u) << value;
    EXPECT_EQ(found[0].code, "bad-field") << value;
    EXPECT_EQ(found[0].node, "memories.sram.size") << value;
  }
}

TEST(Hardware, MissingFieldsAreNamed) {
  Json core = small_core();
  core["memories"]["sram"].erase("served_dimensions");
  core["memories"]["sram"].erase("r_cost");
  core.erase("operational_array");
  std::string found = messages(problems_of(core.dump()));
  EXPECT_NE(found.find("memories.sram.served_dimensions: is missing"), std::string::npos) << found;
  EXPECT_NE(found.find("memories.sram.r_cost: is missing"), std::string::npos) << found;
  EXPECT_NE(found.find("operational_array: is missing"), std::string::npos) << found;
}

TEST(Hardware, OlderFieldsMakeTheSamePorts) {
  Accelerator a = parse_accelerator(R"({"name": "old", "memories": {"sram": {
      "size": 64, "r_bw": 32, "w_bw": 16, "r_cost": 1, "w_cost": 2, "r_port": 1, "w_port": 2, "rw_port": 0,
      "min_r_granularity": 8, "operands": ["I1", "O"], "served_dimensions": ["D1", "D2"],
      "ports": [{"fh": "w_port_1", "tl": "r_port_1"},
                {"fh": "w_port_2", "tl": "r_port_1", "fl": "w_port_2", "th": "r_port_1"}]}},
      "multipliers": {"unit_energy": 0.04, "unit_area": 1, "dimensions": ["D1", "D2"], "sizes": [2, 2]}})");
  const std::vector<Port>& ports = a.cores[0].memories[0].ports;
  ASSERT_EQ(ports.size(), 3u);
  EXPECT_EQ(ports[0].name, "r_port_1");
  EXPECT_EQ(ports[0].bandwidth_min, 8);
  EXPECT_EQ(ports[0].bandwidth_max, 32);
  EXPECT_EQ(ports[0].allocation.size(), 3u);
  EXPECT_EQ(ports[1].bandwidth_min, 16);  // no granularity given: the whole word
  EXPECT_EQ(ports[2].allocation.size(), 2u);
}

TEST(Hardware, OlderPortsThatDoNotFitAreRefused) {
  std::vector<Diagnostic> found = problems_of(R"({"name": "old", "memories": {"sram": {
      "size": 64, "r_bw": 32, "w_bw": 32, "r_cost": 1, "w_cost": 2, "r_port": 1, "w_port": 1,
      "operands": ["I1"], "served_dimensions": [], "ports": [{"fh": "w_port_2", "tl": "w_port_1"}]}},
      "operational_array": {"unit_energy": 0, "dimensions": ["D1"], "sizes": [2]}})");
  ASSERT_EQ(found.size(), 2u) << messages(found);
  EXPECT_EQ(found[0].node, "memories.sram.ports.0.fh");
  EXPECT_EQ(found[1].node, "memories.sram.ports.0.tl");
}

TEST(Hardware, OldConnectivity) {
  Json system = small_system();
  system["core_connectivity"] = Json::parse(R"(["0, 1", [1, 2], "0, 1, 2"])");
  std::vector<Diagnostic> found = problems_of(system.dump());
  ASSERT_EQ(found.size(), 1u) << messages(found);
  EXPECT_EQ(found[0].node, "bandwidth");
  system["bandwidth"] = 24;
  system["unit_energy_cost"] = 7;
  Accelerator a = parse_accelerator(system.dump());
  ASSERT_EQ(a.connections.size(), 3u);
  EXPECT_EQ(a.connections[1].cores, (std::vector<int>{1, 2}));
  EXPECT_EQ(a.connections[1].type, Connection::Type::link);
  EXPECT_EQ(a.connections[2].type, Connection::Type::bus);
  for (const Connection& c : a.connections) {
    EXPECT_EQ(c.bandwidth, 24);
    EXPECT_EQ(c.unit_energy_cost, 7);
  }
}

TEST(Hardware, CoreFilesAreFoundByPathThenByName) {
  std::vector<std::string> asked;
  FileResolver resolve = [&](const std::string& path) -> std::optional<std::string> {
    asked.push_back(path);
    if (path == "tiny.json") return small_core().dump();
    return {};
  };
  Accelerator a =
      parse_accelerator(R"({"cores": {"0": "inputs/cores/tiny.yaml", "1": "inputs/cores/tiny.yaml"}})", resolve);
  EXPECT_EQ(a.cores.size(), 2u);
  EXPECT_EQ(asked,
            (std::vector<std::string>{"inputs/cores/tiny.yaml", "tiny.yaml", "inputs/cores/tiny.json", "tiny.json"}));

  std::vector<Diagnostic> found =
      problems_of(R"({"cores": {"0": "tiny.json", "1": "lost.yaml", "2": "lost.yaml"}})", resolve);
  ASSERT_EQ(found.size(), 1u) << messages(found);  // once, however many cores use it
  EXPECT_EQ(found[0].code, "file-not-found");
  EXPECT_EQ(found[0].node, "cores.1");
}

TEST(Hardware, ProblemsInACoreFileNameTheFile) {
  FileResolver resolve = [](const std::string&) -> std::optional<std::string> {
    Json core = small_core();
    core["memories"]["sram"]["w_cost"] = nullptr;
    return core.dump();
  };
  std::vector<Diagnostic> found = problems_of(R"({"cores": {"0": "a/pe.json"}})", resolve);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].message, "pe.json:memories.sram.w_cost: is missing");
}

TEST(Hardware, SystemsDoNotNest) {
  FileResolver self = [](const std::string&) -> std::optional<std::string> { return R"({"cores": {"0": "me.json"}})"; };
  std::vector<Diagnostic> found = problems_of(R"({"cores": {"0": "me.json"}})", self);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].message.find("describes a system"), std::string::npos) << found[0].message;
  Json cyclic = small_system();
  cyclic["core_types"]["pe"] = "pe";
  EXPECT_EQ(problems_of(cyclic.dump()).size(), 1u);
}

TEST(Hardware, SyntaxErrorsGiveLineAndColumn) {
  std::vector<Diagnostic> found = problems_of("{\"cores\": {\n  \"0\": }\n}");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].code, "bad-json");
  EXPECT_NE(found[0].message.find("line 2, column 8"), std::string::npos) << found[0].message;
}

TEST(Hardware, HostileTextIsRefused) {
  std::string deep(100000, '[');
  std::string nested;
  for (int i = 0; i < 50000; ++i) nested += "{\"cores\":";
  std::string keys = "{";
  for (int i = 0; i < 100000; ++i) keys += "\"k" + std::to_string(i) + "\":1,";
  std::string bad_list = R"({"cores": {"0": 1}, "core_connectivity": [)";
  for (int i = 0; i < 300000; ++i) bad_list += "1,";
  bad_list += "1]}";
  for (const std::string& text :
       {std::string(), std::string("  \n"), std::string("null"), std::string("[]"), std::string("{}"),
        std::string("\x89PNG\r\n\x1a\n"), std::string("\xff\xfe\x00", 3),
        std::string("{\"cores\": {\"0\": \"\xc3\x28\"}}"), deep, nested, keys, bad_list,
        std::string("{\"cores\": 1e999}"), std::string("{\"cores\": {}}"), std::string("{\"cores\": {\"x\": {}}}"),
        std::string(R"({"cores": {"0": {}}, "cores": {"0": {}}})"),
        std::string(R"({"memories": [], "operational_array": 3})"),
        std::string(R"({"memories": {"a": {"operands": "I1", "ports": {}, "served_dimensions": 3}}})")}) {
    std::vector<Diagnostic> found = problems_of(text);
    ASSERT_FALSE(found.empty()) << text.substr(0, 60);
    EXPECT_LE(found.size(), 100u);
    for (const Diagnostic& d : found) {
      EXPECT_FALSE(d.message.empty());
      EXPECT_NO_THROW(Json(d.message).dump()) << "not UTF-8: " << d.message;
    }
  }
}

TEST(Hardware, EveryTruncationAndByteChangeIsRefusedOrRead) {
  std::string text = small_system().dump();
  size_t refused = 0;
  for (size_t length = 0; length < text.size(); ++length) refused += !problems_of(text.substr(0, length)).empty();
  EXPECT_EQ(refused, text.size());
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 0x15);
    problems_of(changed);  // anything but Refusal would escape and fail the test
  }
}

TEST(Hardware, NoComputingCoreIsRefused) {
  Json core = small_core();
  core["operational_array"]["sizes"] = Json::array({0, 0});
  ASSERT_EQ(problems_of(core.dump()).size(), 1u);
  EXPECT_EQ(problems_of(core.dump())[0].code, "no-compute");
}

TEST(Hardware, VectorCoresRunContractionsOnlyWhereNothingElseDoes) {
  Json system = small_system();
  system["core_types"]["pe"].erase("type");
  system["core_types"]["pe"]["name"] = "my_simd_unit";
  Accelerator alone = parse_accelerator(system.dump());
  EXPECT_EQ(alone.cores[0].type, "simd");
  EXPECT_EQ(alone.mac_units(), 64);
  system["cores"]["7"] = small_core();
  Accelerator beside = parse_accelerator(system.dump());
  EXPECT_EQ(beside.mac_units(), 32);
  EXPECT_EQ(beside.vector_units(), 96);
  EXPECT_EQ(beside.cores[beside.offchip_core].id, 2);  // moved behind core 7
}

TEST(Hardware, TopOfASingleCoreIsOffchipByNameOrSize) {
  Json core = small_core();
  EXPECT_EQ(parse_accelerator(core.dump()).offchip_core, -1);
  core["memories"]["sram"]["size"] = int64_t{1} << 30;
  EXPECT_EQ(parse_accelerator(core.dump()).offchip_core, 1);
  core["memories"]["sram"]["served_dimensions"] = Json::array({"D1"});  // eight instances are not one DRAM
  EXPECT_EQ(parse_accelerator(core.dump()).offchip_core, -1);
  core = small_core();
  Json sram = core["memories"]["sram"];
  core["memories"].erase("sram");
  core["memories"]["LPDDR4"] = sram;
  Accelerator a = parse_accelerator(core.dump());
  ASSERT_EQ(a.offchip_core, 1);
  EXPECT_EQ(a.offchip_bytes(), 1000);
  EXPECT_EQ(a.cores[0].memories.size(), 1u);
  EXPECT_EQ(a.offchip_bandwidth(), 64);
}

TEST(Hardware, PresetsParseWithoutWarnings) {
  const std::vector<Preset>& presets = hardware_presets();
  std::vector<std::string> names;
  for (const Preset& preset : presets) {
    names.push_back(preset.name);
    EXPECT_NE(preset.title, preset.name);
    Accelerator a = parse_accelerator(preset.json);
    EXPECT_TRUE(a.warnings.empty()) << preset.name << "\n" << messages(a.warnings);
    EXPECT_EQ(a.name, preset.name);
    EXPECT_EQ(a.description, preset.title);
    EXPECT_FALSE(a.source.empty());
    EXPECT_GE(a.offchip_core, 0);
  }
  EXPECT_TRUE(std::count(names.begin(), names.end(), "edge_tpu"));
  EXPECT_TRUE(std::count(names.begin(), names.end(), "fusemax"));
}

Accelerator preset(const std::string& name) {
  for (const Preset& p : hardware_presets())
    if (p.name == name) return parse_accelerator(p.json);
  throw std::runtime_error("no preset " + name);
}

TEST(Hardware, EdgeTpuPreset) {
  Accelerator a = preset("edge_tpu");
  ASSERT_EQ(a.cores.size(), 19u);
  EXPECT_EQ(a.mac_units(), 4096);               // 16 PEs x 64 SIMD units x 4 lanes
  EXPECT_EQ(a.vector_units(), 4096 + 72 + 64);  // and 3 x 3 x 8 pooling, 64 SIMD
  EXPECT_EQ(a.mac_energy(), 0.04);
  EXPECT_EQ(a.vector_energy(), 0.04);
  EXPECT_EQ(a.offchip_bandwidth(), 64);  // the port; the bus would carry 128
  EXPECT_EQ(a.offchip_energy(), 1000.0 / 64);
  EXPECT_EQ(a.offchip_bytes(), 1250000000);
  EXPECT_EQ(a.onchip_bytes(), 16 * 2097152 + 2 * 131072);
  EXPECT_EQ(a.cores[16].type, "pooling");
  EXPECT_EQ(a.cores[17].type, "simd");
  const Core& pe = a.cores[5];
  EXPECT_EQ(pe.memories[0].size, 32 * 1024 * 8);
  EXPECT_EQ(pe.instances(pe.memories[0]), 256);
  EXPECT_EQ(pe.instances(pe.memories[1]), 64);  // one output register per row of lanes
  // 24 links of the mesh, 16 to either of pooling and SIMD, one bus of all 19.
  int links = 0, buses = 0;
  for (const Connection& c : a.connections) {
    EXPECT_EQ(c.unit_energy_cost, 0);
    (c.type == Connection::Type::bus ? buses : links)++;
    EXPECT_EQ(c.bandwidth, c.type == Connection::Type::bus ? 128 : 32);
  }
  EXPECT_EQ(links, 24 + 32);
  EXPECT_EQ(buses, 1);
  EXPECT_EQ(a.connections.back().cores.size(), 19u);
}

TEST(Hardware, FuseMaxPreset) {
  Accelerator a = preset("fusemax");
  EXPECT_EQ(a.mac_units(), 65536);
  EXPECT_EQ(a.vector_units(), 65536 + 256);
  EXPECT_EQ(a.mac_energy(), 1.5);
  EXPECT_EQ(a.vector_energy(), 0.1);
  EXPECT_EQ(a.offchip_bandwidth(), 3200);
  EXPECT_EQ(a.offchip_energy(), 10);
  EXPECT_EQ(a.onchip_bytes(), 2097152);  // one buffer, shared
  EXPECT_EQ(a.connections[0].unit_energy_cost, 512);
}

class Oracle : public ::testing::Test {
 protected:
  std::filesystem::path shared = MONET_SHARED_DIR;
  void SetUp() override {
    if (!std::filesystem::exists(shared / "oracles")) GTEST_SKIP() << "no oracles at " << shared;
  }
  Accelerator parse(const std::filesystem::path& path) {
    FileResolver resolve = [&](const std::string& name) -> std::optional<std::string> {
      return std::filesystem::path(name).extension() == ".json" ? read_file(path.parent_path() / name) : std::nullopt;
    };
    return parse_accelerator(read_file(path).value(), resolve);
  }
};

// Every hardware description among the oracles is read, and nothing in it is unknown.
TEST_F(Oracle, EveryHardwareFileParses) {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(shared / "oracles")) {
    std::string name = entry.path().filename().string();
    bool hardware = name.rfind("hardware_", 0) == 0 ||
                    (entry.path().parent_path().filename() == "stream2506_hw" && name.rfind("mapping", 0) != 0);
    if (!hardware || entry.path().extension() != ".json") continue;
    ++count;
    // A memory by itself computes nothing and is no accelerator; it is read as part of a system below.
    if (name.find("offchip") != std::string::npos || name.find("dram.json") == name.size() - 9) {
      if (name.find("hardware_") == std::string::npos) {
        EXPECT_EQ(problems_of(read_file(entry.path()).value())[0].code, "no-compute") << name;
        continue;
      }
    }
    try {
      Accelerator a = parse(entry.path());
      for (const Diagnostic& d : a.warnings) EXPECT_EQ(d.code, "no-offchip") << name << ": " << d.message;
    } catch (const Refusal& refusal) {
      ADD_FAILURE() << name << "\n" << messages(refusal.problems());
    }
  }
  EXPECT_EQ(count, 19);
}

TEST_F(Oracle, StreamQuadCore) {
  Accelerator a = parse(shared / "oracles/stream/stream2506_hw/tpu_like_quad_core.json");
  ASSERT_EQ(a.cores.size(), 7u);
  EXPECT_EQ(a.cores[6].id, 6);
  EXPECT_EQ(a.mac_units(), 4 * 1024);
  EXPECT_EQ(a.cores[4].type, "pooling");
  EXPECT_EQ(a.cores[5].type, "simd");  // by its file's name; it calls itself pooling
  EXPECT_EQ(a.offchip_bandwidth(), 64);
  EXPECT_EQ(a.connections.size(), 12u);
  EXPECT_EQ(a.connections[3].cores, (std::vector<int>{3, 0}));
}

TEST_F(Oracle, StreamFuseMax) {
  Accelerator a = parse(shared / "oracles/stream/stream2506_hw/fusemax.json");
  EXPECT_EQ(a.mac_units(), 65536);
  EXPECT_EQ(a.cores[1].type, "simd");
  EXPECT_EQ(a.unit_energy_cost, 512);
  EXPECT_EQ(a.onchip_bytes(), 2097152);
  EXPECT_EQ(a.offchip_bandwidth(), 9600);  // three ports of 3200
}

TEST_F(Oracle, ZigzagHierarchiesEndOffChip) {
  Accelerator edge = parse(shared / "oracles/zigzag/hardware_edge_tpu_like.json");
  ASSERT_EQ(edge.offchip_core, 1);
  EXPECT_EQ(edge.cores[0].memories.size(), 4u);
  EXPECT_EQ(edge.mac_units(), 1024);
  EXPECT_EQ(edge.offchip_energy(), 700.0 / 64);
  EXPECT_EQ(edge.onchip_bytes(), 2 * 1048576 + 32768);  // I1 and O in 2 MB, I2 in 32 KB
  EXPECT_EQ(parse(shared / "oracles/zigzag/hardware_gemm_l1_l3.json").offchip_core, 1);
  EXPECT_EQ(parse(shared / "oracles/zigzag/hardware_gemm_l1.json").offchip_core, -1);
  EXPECT_EQ(parse(shared / "oracles/stream/stream2506_hw/tpu_like.json").offchip_core, -1);
}

}  // namespace
}  // namespace monet
