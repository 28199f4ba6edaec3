#include "engine/schedule/stores.h"

#include <algorithm>
#include <limits>

namespace monet {

namespace {

StoreInfo describe(const Memory& memory, std::string name) {
  StoreInfo info;
  info.name = std::move(name);
  info.capacity = memory.size;
  for (const MemoryRegion& region : memory.regions) info.capacity -= region.size;
  for (const Port& port : memory.ports) {
    if (port.type != Port::Type::write) info.read_bandwidth = std::max(info.read_bandwidth, port.bandwidth_max);
    if (port.type != Port::Type::read) info.write_bandwidth = std::max(info.write_bandwidth, port.bandwidth_max);
  }
  info.read_cost = memory.read_cost;
  info.write_cost = memory.write_cost;
  return info;
}

// Index of the highest memory that holds the operand; -1 without one.
int highest(const Core& core, const char* operand) {
  for (size_t m = core.memories.size(); m-- > 0;) {
    const std::vector<std::string>& held = core.memories[m].operands;
    if (std::find(held.begin(), held.end(), operand) != held.end()) return static_cast<int>(m);
  }
  return -1;
}

}  // namespace

Stores::Stores(const Accelerator& accelerator) : of_(accelerator.cores.size()), of_core_(accelerator.cores.size()) {
  std::vector<std::vector<int>> made(accelerator.cores.size());  // store by core and memory
  for (size_t c = 0; c < accelerator.cores.size(); ++c) {
    const Core& core = accelerator.cores[c];
    made[c].assign(core.memories.size(), -1);
    if (static_cast<int>(c) == accelerator.offchip_core) continue;
    // A shared memory is that of the first core of its group.
    size_t owner = c;
    for (const std::vector<int>& group : accelerator.memory_sharing)
      if (std::find(group.begin(), group.end(), core.id) != group.end())
        for (size_t first = 0; first < c; ++first)
          if (std::find(group.begin(), group.end(), accelerator.cores[first].id) != group.end())
            owner = std::min(owner, first);
    std::array<int, 3> at{};
    const char* const operands[] = {"I1", "I2", "O"};
    for (int o = 0; o < 3; ++o) at[o] = highest(core, operands[o]);
    int fallback = std::max({at[0], at[1], at[2]});
    for (int o = 0; o < 3; ++o) {
      int m = at[o] < 0 ? fallback : at[o];
      if (m < 0) {
        of_[c][o].fill(-1);
        continue;
      }
      int store = made[c][m];
      if (owner != c) {
        int shared = highest(accelerator.cores[owner], operands[o]);
        if (shared >= 0) store = made[owner][shared];
      }
      if (store < 0) {
        store = static_cast<int>(stores_.size());
        stores_.push_back(describe(core.memories[m], "core " + std::to_string(core.id) + ": " + core.memories[m].name));
        core_of_.push_back(c);
      }
      made[c][m] = store;
      of_[c][o].fill(store);
      std::vector<int>& own = of_core_[c];
      auto add = [&](int one) {
        if (std::find(own.begin(), own.end(), one) == own.end()) own.push_back(one);
      };
      add(store);
      const Memory& memory = core.memories[m];
      for (size_t r = 0; r < memory.regions.size(); ++r) {
        const MemoryRegion& region = memory.regions[r];
        std::string called = stores_[store].name + ", " + name(region.holds);
        size_t at = 0;
        while (at < stores_.size() && stores_[at].name != called) ++at;
        if (at == stores_.size()) {
          StoreInfo info = stores_[store];
          info.name = called;
          info.capacity = region.size;
          info.region = true;
          info.read_bandwidth = info.write_bandwidth = region.bandwidth;
          stores_.push_back(info);
          core_of_.push_back(core_of_[store]);
        }
        of_[c][o][static_cast<size_t>(region.holds)] = static_cast<int>(at);
        add(static_cast<int>(at));
      }
    }
  }
  if (accelerator.offchip_core >= 0 && !accelerator.cores[accelerator.offchip_core].memories.empty()) {
    stores_.push_back(describe(accelerator.cores[accelerator.offchip_core].memories.back(), "off-chip"));
    core_of_.push_back(static_cast<size_t>(accelerator.offchip_core));
  } else {  // none described: it costs nothing and holds everything
    StoreInfo info;
    info.name = "off-chip";
    info.capacity = std::numeric_limits<int64_t>::max() / 4;
    stores_.push_back(info);
    core_of_.push_back(accelerator.cores.size());
  }
}

}  // namespace monet
