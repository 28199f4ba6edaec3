#include "engine/hardware/accelerator.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/ir/embedded.h"
#include "engine/ir/saturating.h"

namespace monet {

const char* name(MemoryRegion::Holds holds) {
  constexpr const char* kNames[kMemoryRegions] = {"parameters", "gradients", "checkpoints"};
  return kNames[static_cast<size_t>(holds)];
}

namespace {

template <typename Selected>
double cheapest(const std::vector<Core>& cores, Selected selected) {
  double least = std::numeric_limits<double>::infinity();
  for (const Core& core : cores)
    if (selected(core)) least = std::min(least, core.unit_energy);
  return least == std::numeric_limits<double>::infinity() ? 0 : least;
}

bool computes(const Core& core) { return core.type != "memory" && core.pes() > 0; }

// Whether the memory is the highest of one of its operands.
bool is_top(const Core& core, size_t level) {
  for (const std::string& operand : core.memories[level].operands) {
    bool higher = false;
    for (size_t above = level + 1; above < core.memories.size(); ++above) {
      const std::vector<std::string>& operands = core.memories[above].operands;
      higher = higher || std::find(operands.begin(), operands.end(), operand) != operands.end();
    }
    if (!higher) return true;
  }
  return false;
}

int64_t top_bits(const Core& core) {
  int64_t bits = 0;
  for (size_t level = 0; level < core.memories.size(); ++level)
    if (is_top(core, level))
      bits = saturating_add(bits, saturating_multiply(core.memories[level].size, core.instances(core.memories[level])));
  return bits;
}

}  // namespace

int64_t Core::pes() const {
  int64_t product = sizes.empty() ? 0 : 1;
  for (int64_t size : sizes) product = saturating_multiply(product, size);
  return product;
}

int64_t Core::instances(const Memory& memory) const {
  int64_t product = 1;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    const std::vector<std::string>& served = memory.served_dimensions;
    if (std::find(served.begin(), served.end(), dimensions[i]) == served.end())
      product = saturating_multiply(product, std::max<int64_t>(sizes[i], 1));  // memory cores write 0 PEs
  }
  return product;
}

double Accelerator::mac_units() const {
  double units = 0;
  for (const Core& core : cores)
    if (core.runs_contractions) units += static_cast<double>(core.pes());
  return units;
}

double Accelerator::mac_energy() const {
  return cheapest(cores, [](const Core& core) { return core.runs_contractions; });
}

double Accelerator::vector_units() const {
  double units = 0;
  for (const Core& core : cores)
    if (computes(core)) units += static_cast<double>(core.pes());
  return units;
}

double Accelerator::vector_energy() const { return cheapest(cores, computes); }

double Accelerator::offchip_bandwidth() const {
  if (offchip_core < 0) return 0;
  const Core& core = cores[offchip_core];
  double ports = 0, edge = 0;
  for (const Memory& memory : core.memories)
    for (const Port& port : memory.ports) ports += static_cast<double>(port.bandwidth_max);
  for (const Connection& connection : connections) {
    if (std::find(connection.cores.begin(), connection.cores.end(), core.id) == connection.cores.end()) continue;
    // Every link has a wire for each direction; a bus carries one transfer at a time.
    double directions = connection.type == Connection::Type::link ? 2 : 1;
    edge += directions * static_cast<double>(connection.bandwidth);
  }
  return edge > 0 ? std::min(ports, edge) : ports;
}

double Accelerator::offchip_energy() const {
  if (offchip_core < 0) return 0;
  double least = std::numeric_limits<double>::infinity();
  for (const Memory& memory : cores[offchip_core].memories) {
    for (const Port& port : memory.ports) {
      double width = static_cast<double>(port.bandwidth_max);
      if (port.type != Port::Type::write) least = std::min(least, memory.read_cost / width);
      if (port.type != Port::Type::read) least = std::min(least, memory.write_cost / width);
    }
  }
  return least == std::numeric_limits<double>::infinity() ? 0 : least;
}

int64_t Accelerator::offchip_bytes() const { return offchip_core < 0 ? 0 : top_bits(cores[offchip_core]) / 8; }

int64_t Accelerator::onchip_bytes() const {
  // Cores joined by memory sharing, directly or through others, count once, by the largest description.
  std::vector<size_t> group(cores.size());
  for (size_t i = 0; i < group.size(); ++i) group[i] = i;
  for (const std::vector<int>& shared : memory_sharing) {
    size_t first = cores.size();
    for (size_t i = 0; i < cores.size(); ++i) {
      if (std::find(shared.begin(), shared.end(), cores[i].id) == shared.end()) continue;
      if (first == cores.size()) first = group[i];
      std::replace(group.begin(), group.end(), group[i], first);
    }
  }
  std::vector<int64_t> bits(cores.size(), 0);
  for (size_t i = 0; i < cores.size(); ++i)
    if (static_cast<int>(i) != offchip_core) bits[group[i]] = std::max(bits[group[i]], top_bits(cores[i]));
  int64_t total = 0;
  for (int64_t each : bits) total = saturating_add(total, each / 8);
  return total;
}

const std::vector<Preset>& hardware_presets() {
  static const std::vector<Preset> presets = [] {
    std::vector<Preset> list;
    for (const auto& [file, contents] : embedded_presets()) {
      Preset preset;
      preset.name = std::string(file.substr(0, file.rfind('.')));
      preset.json = std::string(contents);
      preset.title = nlohmann::json::parse(preset.json).value("description", preset.name);
      list.push_back(std::move(preset));
    }
    std::sort(list.begin(), list.end(), [](const Preset& a, const Preset& b) { return a.name < b.name; });
    return list;
  }();
  return presets;
}

}  // namespace monet
