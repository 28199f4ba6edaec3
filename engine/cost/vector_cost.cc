#include "engine/cost/vector_cost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

namespace monet {

namespace {

bool holds(const Memory& memory, std::string_view operand) {
  return std::find(memory.operands.begin(), memory.operands.end(), operand) != memory.operands.end();
}

// The port of a direction; a memory whose file gives none for it uses its first.
size_t port_of(const Memory& memory, std::string_view operand, const char* direction) {
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
  double sum = compute_energy;
  for (const Passed& memory : passed) sum += memory.energy;
  return sum;
}

VectorCost vector_cost(const Core& core, double operations, double read_bits, double written_bits) {
  VectorCost cost;
  double lanes = static_cast<double>(core.vector_lanes.value_or(core.pes()));
  if (lanes > 0) cost.compute_cycles = operations / lanes;
  cost.compute_energy = operations * core.unit_energy;

  // Searches ask this of every tile: everything is in the order of the core's memories, nothing is looked up.
  size_t streams = core.memories.size();  // those above it are not passed
  for (size_t m = 0; m < core.memories.size(); ++m)
    if (core.memories[m].name == core.vector_memory) streams = std::min(streams, m);
  struct Pass {
    const char* operand;
    double bits;
    std::array<const char*, 2> below;  // directions in which it passes lower memories
    const char* at_top;
    size_t top = 0;
    size_t port = 0;  // of the top
    double cycles = 0;
  };
  bool first = std::any_of(core.memories.begin(), core.memories.end(), [](const Memory& m) { return holds(m, "I1"); });
  std::array<Pass, 2> passes = {Pass{first ? "I1" : "I2", read_bits, {"fh", "tl"}, "tl"},
                                Pass{"O", written_bits, {"fl", "th"}, "fl"}};
  for (Pass& pass : passes) {
    pass.top = core.memories.size();
    for (size_t m = 0; m < core.memories.size() && m <= streams; ++m)
      if (holds(core.memories[m], pass.operand)) pass.top = m;
  }
  for (size_t m = 0; m < core.memories.size(); ++m) {
    const Memory& memory = core.memories[m];
    double energy = 0;
    bool passed = false;
    for (Pass& pass : passes) {
      if (pass.bits <= 0 || pass.top == core.memories.size() || m > pass.top || memory.ports.empty() ||
          !holds(memory, pass.operand))
        continue;
      passed = true;
      auto access = [&](const char* direction) {
        size_t at = port_of(memory, pass.operand, direction);
        bool writes = direction[0] == 'f';  // fh, fl: written from the higher, the lower level
        energy += words(memory.ports[at], pass.bits) * (writes ? memory.write_cost : memory.read_cost);
        return at;
      };
      if (m < pass.top) {
        for (const char* direction : pass.below) access(direction);
        continue;
      }
      pass.port = access(pass.at_top);
      pass.cycles = pass.bits / static_cast<double>(std::max<int64_t>(memory.ports[pass.port].bandwidth_max, 1));
      cost.stream = &memory;
    }
    if (passed) cost.passed.push_back({m, energy});
  }
  // One port serves one of them at a time.
  bool same = passes[0].top == passes[1].top && passes[0].port == passes[1].port;
  cost.traffic_cycles = same ? passes[0].cycles + passes[1].cycles : std::max(passes[0].cycles, passes[1].cycles);
  return cost;
}

}  // namespace monet
