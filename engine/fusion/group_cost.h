// What a fused group costs by itself: its tiles are scheduled alone on the accelerator, by schedule/, with what it
// reads from others off the chip before and what others read of it off the chip after. In a whole schedule groups that
// follow one another overlap a little, and without ScheduleOptions::write_back tensors stay on the chip between them,
// so sums of these are an estimate; docs/results.md says how good a one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/schedule/program.h"
#include "engine/schedule/scheduler.h"

namespace monet {

// One way of running a group: cut into so many tiles along an axis.
struct GroupCost {
  int64_t tiles = 1;
  SliceAxis::Kind axis = SliceAxis::Kind::batch;
  int64_t cycles = 0;
  double energy = 0;         // pJ
  int64_t offchip_bits = 0;  // read and written
};

// Whether a group may be cut in a way.
enum class TilingLimit : uint8_t {
  none,
  tiles,   // the units' tile counts do not divide one another
  memory,  // its tiles, weights and intermediates together are more than a core's memory holds
};

class GroupCosts {
 public:
  explicit GroupCosts(Planner& planner);  // kept by reference

  // MONET's rules. `held`: if given, bits in the memory that is fullest for its size; `capacity`: of that memory. Held
  // is of every tensor that its units read or make the largest tile's share, all at once.
  TilingLimit limit(const FusedGroup& group, int64_t* held = nullptr, int64_t* capacity = nullptr);

  // Ways of running units as one group of which none is better than another in cycles, energy and traffic at once;
  // fewest cycles first. Empty where every way breaks a rule. Tried are one tile, the ways of `parts` (smaller groups
  // that the set contains), and for two units, or where none of those may be, 2, 4, 8, ... tiles along each axis as
  // long as that takes fewer cycles. Groups of equal content (shapes, operators, what passes between them and out) are
  // scheduled once.
  const std::vector<GroupCost>& ways(std::span<const UnitId> set, const std::vector<const GroupCost*>& parts = {});

  size_t scheduled() const { return scheduled_; }  // how many have been

 private:
  std::string key(std::span<const UnitId> set) const;
  bool schedule(const FusedGroup& group, std::vector<GroupCost>& ways);

  Planner& planner_;
  Scheduler scheduler_;
  std::vector<int32_t> class_;  // units of one class are equal but for where they are in the graph
  std::unordered_map<std::string, std::vector<GroupCost>> known_;
  size_t scheduled_ = 0;
  std::vector<std::vector<std::pair<TensorId, double>>> held_;  // by store, while the rule of memory is tried
};

}  // namespace monet
