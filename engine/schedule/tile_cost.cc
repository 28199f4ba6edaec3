#include "engine/schedule/tile_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/cost/vector_cost.h"

namespace monet {

namespace {

bool equal(const Core& a, const Core& b) {
  return a.memories == b.memories && a.dimensions == b.dimensions && a.sizes == b.sizes &&
         a.unit_energy == b.unit_energy && a.dataflows == b.dataflows && a.vector_lanes == b.vector_lanes &&
         a.vector_memory == b.vector_memory;
}

bool lacks_mapping(const Refusal& refusal) {
  return std::any_of(refusal.problems().begin(), refusal.problems().end(),
                     [](const Diagnostic& d) { return d.code == "no-mapping"; });
}

// Widest port of the off-chip memory that reads, or writes: bit/cycle.
int64_t port_bandwidth(const Memory& memory, Port::Type other) {
  int64_t most = 1;
  for (const Port& port : memory.ports)
    if (port.type != other) most = std::max(most, port.bandwidth_max);
  return most;
}

}  // namespace

TileCosts::TileCosts(const Accelerator& accelerator, const MappingFile& mapping, const CostOptions& options,
                     CostCache& cache)
    : accelerator_(accelerator), mapping_(mapping), options_(options), cache_(cache) {
  for (size_t i = 0; i < accelerator.cores.size(); ++i) {
    size_t first = 0;
    while (first < i && !equal(accelerator.cores[first], accelerator.cores[i])) ++first;
    class_of_.push_back(static_cast<int>(first));
  }
}

const Core& TileCosts::whole(size_t core, const std::vector<std::string>& streamed) {
  if (streamed.empty()) return accelerator_.cores[core];
  std::string key = std::to_string(class_of_[core]);
  for (const std::string& operand : streamed) key += " " + operand;
  for (const auto& [known, made] : whole_)
    if (known == key) return made;
  whole_.reserve(8 * accelerator_.cores.size());  // references stay valid: seven sets of operands a core
  whole_.emplace_back(key, with_offchip(accelerator_, core, streamed));
  whole_.back().second.vector_memory.clear();  // the vector rule, too, streams from the top
  return whole_.back().second;
}

// The operands (I1, I2, O) that stream: all of them, or those that are too large.
std::vector<std::string> TileCosts::streamed(const Layer& tile, size_t at, bool all) const {
  std::map<std::string, std::string> links = default_links(tile);
  for (const auto& [operand, memory_operand] : mapping_.of(tile).links) links[operand] = memory_operand;
  if (accelerator_.offchip_core < 0) return {};
  if (!all) return operands_offchip(tile, accelerator_.cores[at], links);
  std::vector<std::string> operands;
  for (const LayerOperand& operand : tile.operands) operands.push_back(links.at(operand.name));
  return operands;
}

Diagnostic TileCosts::unmapped(const Layer& tile, size_t at, bool stream) {
  Core core = whole(at, streamed(tile, at, stream));
  LayerMapping fixed = mapping_.of(tile);
  CostOptions options = options_;
  options.leave_room_above = true;
  auto fits = [&](size_t memory, int64_t size) {
    int64_t before = std::exchange(core.memories[memory].size, size);
    bool found = true;
    try {
      cost_layer(tile, core, fixed, options);
    } catch (const Refusal&) {
      found = false;
    }
    core.memories[memory].size = before;
    return found;
  };
  std::string change;
  for (size_t m = 0; m < accelerator_.cores[at].memories.size() && change.empty(); ++m) {
    int64_t small = core.memories[m].size, large = small;
    for (int i = 0; i < 6 && large == small; ++i)
      if (int64_t size = core.memories[m].size << (i + 1); fits(m, size)) large = size;
    if (large == small) continue;
    while (large - small > 1) {
      int64_t middle = small + (large - small) / 2;
      (fits(m, middle) ? large : small) = middle;
    }
    change = "memory " + core.memories[m].name + " of " + std::to_string(large) + " bits instead of " +
             std::to_string(core.memories[m].size) + " would do";
  }
  std::string bits;
  for (const LayerOperand& operand : tile.operands)
    bits += (bits.empty() ? "" : ", ") + operand.name + " " + std::to_string(operand.bits);
  return {
      "no-mapping",
      tile.name + " fits core " + core.name + " in no order of its loops (bits per element: " + bits +
          ", partial sums " + std::to_string(tile.partial_bits) + ")",
      tile.name, "",
      change.empty() ? "no single memory that is larger would do: use narrower operands (the setting widths)" : change};
}

TileCost TileCosts::layer(const Layer& tile, size_t at, bool stream, int parallel) {
  const Core& bare = accelerator_.cores[at];
  LayerMapping fixed = mapping_.of(tile);
  std::vector<std::string> streamed = this->streamed(tile, at, stream);
  const Core& core = whole(at, streamed);
  CostOptions options = options_;
  options.parallel_tiles = parallel;
  auto find = [&]() -> const LayerCost& {
    try {
      return cache_.cost(tile, core, fixed, options);
    } catch (const Refusal& refusal) {
      if (!lacks_mapping(refusal) || options.leave_room_above) throw;
    }
    options.leave_room_above = true;
    return cache_.cost(tile, core, fixed, options);
  };
  const LayerCost& found = find();
  TileCost cost;
  cost.rule = UnitCost::Rule::mapping;
  cost.mapping = &found;
  cost.cycles = static_cast<int64_t>(std::ceil(found.cycles()));
  cost.compute_cycles = found.temporal_cycles;
  cost.utilisation = found.utilisation();
  cost.mac_energy = found.mac_energy;
  double waited = found.stall + found.onload + found.offload;
  const PortStall* longest = nullptr;
  for (const PortStall& stall : found.stalls)
    if (!longest || stall.cycles > longest->cycles) longest = &stall;
  bool at_offchip = longest && static_cast<size_t>(longest->memory) >= bare.memories.size();
  if (longest) cost.memory = core.memories[longest->memory].name;
  (at_offchip ? cost.stream_cycles : cost.memory_cycles) = waited;
  for (size_t i = 0; i < found.operands.size(); ++i) {
    const OperandCost& operand = found.operands[i];
    bool output = i + 1 == found.operands.size();
    for (size_t l = 0; l < operand.levels.size(); ++l) {
      const LevelCost& level = operand.levels[l];
      const Memory& memory = core.memories[level.memory];
      if (static_cast<size_t>(level.memory) < bare.memories.size()) {
        (bare.instances(memory) > 1 ? cost.register_energy : cost.sram_energy) += level.energy;
        continue;
      }
      TileCost::Stream& own = cost.streams[output ? 2 : i];
      own.streams = true;
      own.energy += level.energy;
      own.read_bits += level.reads_to_low * static_cast<double>(port_bandwidth(memory, Port::Type::write));
      own.written_bits += level.writes_by_low * static_cast<double>(port_bandwidth(memory, Port::Type::read));
      // As long as the tile waits, nothing streams (Stream).
      own.bandwidth += static_cast<int64_t>(
          std::ceil(static_cast<double>(operand.top_bandwidth) * (found.temporal_cycles / found.cycles())));
      if (l > 0) cost.scratch_bits += static_cast<int64_t>(std::ceil(operand.levels[l - 1].bits));
    }
  }
  return cost;
}

TileCost TileCosts::vector(size_t at, double operations, Moved held, Moved streamed) {
  const Core& bare = accelerator_.cores[at];
  if (accelerator_.offchip_core < 0) {
    held.read_bits += streamed.read_bits;
    held.written_bits += streamed.written_bits;
    streamed = {};
  }
  TileCost cost;
  cost.rule = UnitCost::Rule::vector;
  double offchip_energy = 0;
  auto add = [&](const VectorCost& part) {
    cost.mac_energy += part.compute_energy;
    for (const VectorCost::Passed& passed : part.passed) {
      if (passed.memory >= bare.memories.size()) {
        offchip_energy += passed.energy;
      } else {
        (bare.instances(bare.memories[passed.memory]) > 1 ? cost.register_energy : cost.sram_energy) += passed.energy;
      }
    }
  };
  // All of it passes the core's highest memory.
  double read = held.read_bits + streamed.read_bits, written = held.written_bits + streamed.written_bits;
  VectorCost inside = vector_cost(bare, operations, read, written);
  cost.compute_cycles = inside.compute_cycles;
  cost.memory_cycles = std::max(0.0, inside.traffic_cycles - inside.compute_cycles);
  if (inside.stream) cost.memory = inside.stream->name;
  double cycles = inside.cycles();
  if (streamed.read_bits + streamed.written_bits == 0) {
    add(inside);
  } else {
    add(vector_cost(bare, operations, held.read_bits, held.written_bits));
    const Core& core = whole(at, {"I1", "I2", "O"});
    VectorCost outside = vector_cost(core, 0, streamed.read_bits, streamed.written_bits);
    add(outside);
    cost.stream_cycles = std::max(0.0, outside.cycles() - cycles);
    cycles += cost.stream_cycles;
    if (cost.stream_cycles > 0) cost.memory = outside.stream->name;
    double long_as = std::max(std::ceil(cycles), 1.0), all = streamed.read_bits + streamed.written_bits;
    auto stream = [&](double in, double out) {
      return TileCost::Stream{in + out > 0, static_cast<int64_t>(std::ceil((in + out) / long_as)), in, out,
                              offchip_energy * ((in + out) / all)};
    };
    cost.streams[0] = stream(streamed.read_bits, 0);
    cost.streams[2] = stream(0, streamed.written_bits);
  }
  cost.cycles = static_cast<int64_t>(std::ceil(cycles));
  return cost;
}

}  // namespace monet
