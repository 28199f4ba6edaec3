// The memories that the scheduler places tensors in: the highest on-chip memory of each core for each of I1, I2, O,
// shared ones once, their regions apart, and the memory off the chip.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/hardware/accelerator.h"

namespace monet {

struct StoreInfo {
  std::string name;      // "core 0: sram_2MB"
  int64_t capacity = 0;  // bits
  bool region = false;   // part of a memory, with a bandwidth of its own
  // Of one access of a full word: bit and pJ.
  int64_t read_bandwidth = 1, write_bandwidth = 1;
  double read_cost = 0, write_cost = 0;
};

class Stores {
 public:
  explicit Stores(const Accelerator& accelerator);

  const std::vector<StoreInfo>& all() const { return stores_; }
  int offchip() const { return static_cast<int>(stores_.size()) - 1; }  // the last one
  // Where a core has an operand (0: I1, 1: I2, 2: O); the store of another operand where it has no memory for this one.
  // `region`: the kind of region that the tensor belongs into, if there is one; kNoRegion for other tensors.
  int of(size_t core, int operand, int region = kNoRegion) const {
    return of_[core][static_cast<size_t>(operand)][static_cast<size_t>(region)];
  }
  static constexpr int kNoRegion = kMemoryRegions;
  // The distinct stores of a core.
  const std::vector<int>& of_core(size_t core) const { return of_core_[core]; }
  // The core that a store belongs to, of a shared one the first: where transfers to and from it begin and end.
  size_t core_of(int store) const { return core_of_[static_cast<size_t>(store)]; }

 private:
  std::vector<StoreInfo> stores_;
  std::vector<std::array<std::array<int, kMemoryRegions + 1>, 3>> of_;
  std::vector<std::vector<int>> of_core_;
  std::vector<size_t> core_of_;
};

}  // namespace monet
