#include "engine/cost/vector_cost.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace monet {

namespace {

bool holds(const Memory& memory, const std::string& operand) {
  return std::find(memory.operands.begin(), memory.operands.end(), operand) != memory.operands.end();
}

// The port of a direction; a memory whose file gives none for it uses its first.
size_t port_of(const Memory& memory, const std::string& operand, const char* direction) {
  for (size_t i = 0; i < memory.ports.size(); ++i)
    for (const auto& [name, way] : memory.ports[i].allocation)
      if (name == operand && way == direction) return i;
  return 0;
}

// Full words that so many bits make, a partial word counted by the granules it touches (as ZigZag).
double words(const Port& port, double bits) {
  double least = static_cast<double>(port.bandwidth_min), most = static_cast<double>(port.bandwidth_max);
  return least > 0 && most > 0 ? std::ceil(bits / least) * least / most : 0;
}

}  // namespace

double VectorCost::energy() const {
  double sum = 0;
  for (const LevelEnergy& level : levels) sum += level.energy;
  return sum;
}

VectorCost vector_cost(const Core& core, double operations, double read_bits, double written_bits) {
  VectorCost cost;
  double lanes = static_cast<double>(core.vector_lanes.value_or(core.pes()));
  if (lanes > 0) cost.compute_cycles = operations / lanes;
  cost.levels.push_back({"compute", operations * core.unit_energy});

  std::map<size_t, double> energy;                       // by memory
  std::map<std::pair<size_t, size_t>, double> occupied;  // cycles by memory and port
  // The memories of one operand's way, lowest first, up to the one it streams from.
  auto way = [&](const std::string& operand) {
    std::vector<size_t> levels;
    for (size_t m = 0; m < core.memories.size(); ++m) {
      if (holds(core.memories[m], operand)) levels.push_back(m);
      if (core.memories[m].name == core.vector_memory) break;
    }
    return levels;
  };
  auto pass = [&](const std::string& operand, double bits, const char* at_top, std::vector<const char*> below) {
    std::vector<size_t> levels = way(operand);
    for (size_t i = 0; i < levels.size() && bits > 0; ++i) {
      const Memory& memory = core.memories[levels[i]];
      if (memory.ports.empty()) continue;
      bool top = i + 1 == levels.size();
      for (const char* direction : top ? std::vector<const char*>{at_top} : below) {
        size_t at = port_of(memory, operand, direction);
        const Port& port = memory.ports[at];
        bool writes = direction[0] == 'f';  // fh, fl: written from the higher, the lower level
        energy[levels[i]] += words(port, bits) * (writes ? memory.write_cost : memory.read_cost);
        if (top) occupied[{levels[i], at}] += bits / static_cast<double>(std::max<int64_t>(port.bandwidth_max, 1));
      }
      if (top) cost.memory = memory.name;
    }
  };
  bool first = std::any_of(core.memories.begin(), core.memories.end(), [](const Memory& m) { return holds(m, "I1"); });
  pass(first ? "I1" : "I2", read_bits, "tl", {"fh", "tl"});
  pass("O", written_bits, "fl", {"fl", "th"});
  for (const auto& [port, cycles] : occupied) cost.traffic_cycles = std::max(cost.traffic_cycles, cycles);
  for (const auto& [memory, pj] : energy) cost.levels.push_back({core.memories[memory].name, pj});
  return cost;
}

}  // namespace monet
