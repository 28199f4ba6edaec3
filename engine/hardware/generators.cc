#include "engine/hardware/generators.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "engine/ir/diagnostic.h"

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

class Check {
 public:
  void range(const char* parameter, int64_t value, int64_t most) {
    if (value >= 1 && value <= most) return;
    problems_.push_back(
        {"bad-parameter",
         std::string(parameter) + " must be from 1 to " + std::to_string(most) + ", is " + std::to_string(value),
         parameter, "", ""});
  }
  void finish() {
    if (!problems_.empty()) throw Refusal(std::move(problems_));
  }

 private:
  std::vector<Diagnostic> problems_;
};

constexpr int64_t kMost = int64_t{1} << 40;

Json port(const char* name, const char* type, int64_t least, int64_t most, std::vector<std::string> allocation) {
  return {{"name", name},
          {"type", type},
          {"bandwidth_min", least},
          {"bandwidth_max", most},
          {"allocation", std::move(allocation)}};
}

Json memory(int64_t bits, double read, double write, std::vector<std::string> operands, std::vector<std::string> served,
            std::vector<Json> ports) {
  return {{"size", bits},
          {"r_cost", read},
          {"w_cost", write},
          {"operands", std::move(operands)},
          {"served_dimensions", std::move(served)},
          {"ports", std::move(ports)}};
}

// Registers of one input, and of the outputs, with a port for each way.
Json input_registers(int64_t bits, double cost, const std::string& operand, int64_t least, int64_t most) {
  return memory(bits, cost, cost, {operand}, Json::array(),
                {port("r_port_1", "read", least, most, {operand + ", tl"}),
                 port("w_port_1", "write", least, most, {operand + ", fh"})});
}

Json output_registers(double cost, std::vector<std::string> served) {
  return memory(16, cost, cost, {"O"}, std::move(served),
                {port("r_port_1", "read", 16, 16, {"O, tl"}), port("r_port_2", "read", 16, 16, {"O, th"}),
                 port("w_port_1", "write", 16, 16, {"O, fh"}), port("w_port_2", "write", 16, 16, {"O, fl"})});
}

const std::vector<std::string> kReads = {"I1, tl", "I2, tl", "O, tl", "O, th"};
const std::vector<std::string> kWrites = {"I1, fh", "I2, fh", "O, fh", "O, fl"};

Json buffer(int64_t bits, double read, double write, std::vector<std::string> served, int64_t least_read,
            int64_t most_read, int64_t least_write, int64_t most_write) {
  return memory(bits, read, write, {"I1", "I2", "O"}, std::move(served),
                {port("r_port_1", "read", least_read, most_read, kReads),
                 port("w_port_1", "write", least_write, most_write, kWrites)});
}

Json array(double energy, double area, std::vector<int64_t> sizes) {
  std::vector<std::string> dimensions;
  for (size_t i = 0; i < sizes.size(); ++i) dimensions.push_back("D" + std::to_string(i + 1));
  return {{"unit_energy", energy}, {"unit_area", area}, {"dimensions", dimensions}, {"sizes", sizes}};
}

Json dram(int64_t bits, double cost, int64_t least, int64_t most) {
  std::vector<std::string> all = {"I1, fh", "I1, tl", "I2, fh", "I2, tl", "O, fh", "O, tl", "O, fl", "O, th"};
  return {{"name", "offchip"},
          {"type", "memory"},
          {"memories",
           {{"dram", memory(bits, cost, cost, {"I1", "I2", "O"}, {"D1", "D2"},
                            {port("rw_port_1", "read_write", least, most, all)})}}},
          {"operational_array", array(0, 0, {0, 0})}};
}

std::string unrolled(const char* loop, int64_t by) { return std::string(loop) + ", " + std::to_string(by); }

}  // namespace

std::string hardware_json(const EdgeTpu& p) {
  Check check;
  check.range("rows", p.rows, 120);
  check.range("columns", p.columns, 120);
  if (p.rows >= 1 && p.rows <= 120 && p.columns >= 1 && p.columns <= 120)
    check.range("rows x columns", p.rows * p.columns, 120);
  check.range("simd_units", p.simd_units, 1 << 12);
  check.range("lanes", p.lanes, 1 << 12);
  check.range("memory_bytes", p.memory_bytes, kMost);
  check.range("register_bytes", p.register_bytes, kMost);
  check.range("offchip_bits_per_cycle", p.offchip_bits_per_cycle, kMost);
  check.finish();

  Json types;
  types["pe"] = {{"name", "pe"},
                 {"type", "compute"},
                 {"memories",
                  {{"rf_weights", input_registers(8 * p.register_bytes, 0.095, "I2", 8, 8)},
                   {"rf_outputs", output_registers(0.021, {"D2"})},
                   {"sram_2MB", buffer(8 * p.memory_bytes, 416.16, 378.4, {"D1", "D2"}, 64, 2048, 64, 2048)}}},
                 {"operational_array", array(0.04, 1, {p.simd_units, p.lanes})},
                 {"dataflows", {{"D1", {unrolled("K", p.simd_units)}}, {"D2", {unrolled("C", p.lanes)}}}}};
  types["pooling"] = {{"name", "pooling"},
                      {"type", "pooling"},
                      {"memories", {{"sram_128KB", buffer(1 << 20, 60, 75, {"D1", "D2", "D3"}, 576, 576, 512, 512)}}},
                      {"operational_array", array(0.1, 0.01, {3, 3, 8})},
                      {"dataflows", {{"D1", {"FX, 3"}}, {"D2", {"FY, 3"}}, {"D3", {"K, 8"}}}}};
  types["simd"] = {{"name", "simd"},
                   {"type", "simd"},
                   {"memories",
                    {{"sram_128KB", memory(1 << 20, 60, 75, {"I1", "I2", "O"}, {"D1"},
                                           {port("rw_port_1", "read_write", 512, 512, kWrites),
                                            port("rw_port_2", "read_write", 512, 512, kReads)})}}},
                   {"operational_array", array(0.1, 0.01, {64})},
                   {"dataflows", {{"D1", {"K, 64"}}}}};
  types["offchip"] = dram(10'000'000'000, 1000, p.offchip_bits_per_cycle, p.offchip_bits_per_cycle);

  // A mesh of PEs, each also beside the pooling and the SIMD core; a bus joins all with the memory off the chip.
  Json cores, links = Json::array(), places;
  int64_t pes = p.rows * p.columns;
  auto link = [&](int64_t a, int64_t b) { links.push_back({{"type", "link"}, {"cores", {a, b}}, {"bandwidth", 32}}); };
  for (int64_t i = 0; i < pes; ++i) {
    cores[std::to_string(i)] = "pe";
    places[std::to_string(i)] = {i % p.columns, i / p.columns};
    if ((i + 1) % p.columns != 0) link(i, i + 1);
    if (i + p.columns < pes) link(i, i + p.columns);
  }
  auto beside = [&](int64_t id, const char* type, int64_t x, int64_t y) {
    cores[std::to_string(id)] = type;
    places[std::to_string(id)] = {x, y};
  };
  beside(pes, "pooling", p.columns, 1);
  beside(pes + 1, "simd", p.columns, 2);
  beside(pes + 2, "offchip", p.columns + 1, 1);
  for (int64_t other : {pes, pes + 1})
    for (int64_t i = 0; i < pes; ++i) link(i, other);
  std::vector<int64_t> all;
  for (int64_t i = 0; i < pes + 3; ++i) all.push_back(i);
  links.push_back({{"type", "bus"}, {"cores", all}, {"bandwidth", 128}});
  return Json{{"name", "edge_tpu"},         {"core_types", types},        {"cores", cores},
              {"offchip_core_id", pes + 2}, {"core_connectivity", links}, {"unit_energy_cost", 0},
              {"core_coordinates", places}}
      .dump();
}

std::string hardware_json(const FuseMax& p) {
  Check check;
  check.range("rows", p.rows, 1 << 12);
  check.range("columns", p.columns, 1 << 12);
  check.range("vector_lanes", p.vector_lanes, 1 << 16);
  check.range("buffer_bytes", p.buffer_bytes, kMost);
  check.range("buffer_bits_per_cycle", p.buffer_bits_per_cycle, kMost);
  check.range("offchip_bits_per_cycle", p.offchip_bits_per_cycle, kMost);
  check.finish();

  int64_t granule = std::min<int64_t>(256, p.buffer_bits_per_cycle);
  Json memories = {{"rf_inputs", input_registers(16, 0.4, "I1", 8, 16)},
                   {"rf_weights", input_registers(16, 0.4, "I2", 4, 16)},
                   {"rf_outputs", output_registers(0.4, {})},
                   {"sram_2MB", buffer(8 * p.buffer_bytes, 8192, 8192, {"D1", "D2"}, granule, p.buffer_bits_per_cycle,
                                       granule, p.buffer_bits_per_cycle)}};
  Json types;
  types["array"] = {{"name", "array"},
                    {"type", "compute"},
                    {"memories", memories},
                    {"operational_array", array(1.5, 1, {p.rows, p.columns})},
                    {"dataflows", {{"D1", {unrolled("D", p.rows)}}, {"D2", {unrolled("K", p.columns)}}}}};
  types["vector"] = {{"name", "vector"},
                     {"type", "simd"},
                     {"memories", memories},
                     {"operational_array", array(0.1, 0.01, {p.vector_lanes, 1})}};
  types["offchip"] =
      dram(10'000'000'000'000'000, 32000, std::min<int64_t>(64, p.offchip_bits_per_cycle), p.offchip_bits_per_cycle);
  return Json{{"name", "fusemax"},
              {"core_types", types},
              {"cores", {{"0", "array"}, {"1", "vector"}, {"2", "offchip"}}},
              {"offchip_core_id", 2},
              {"core_memory_sharing", {{0, 1}}},
              {"core_connectivity", {{{"type", "link"}, {"cores", {0, 1}}, {"bandwidth", 512}}}},
              {"unit_energy_cost", 512},
              {"core_coordinates", {{"0", {0, 0}}, {"1", {0, 1}}, {"2", {1, 0}}}}}
      .dump();
}

}  // namespace monet
