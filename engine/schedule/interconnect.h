// How data gets from core to core and to the memory off the chip (Stream, arXiv 2212.10612; COST_MODEL section 3):
// links of one direction, buses shared by all their cores, and the ports of the off-chip memory. A transfer takes the
// shortest way (fewest hops, then the widest, then the first described) and holds every link on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/hardware/accelerator.h"

namespace monet {

struct Link {
  std::string name;             // "core 0 -> core 1", "bus 0", "off-chip"
  int64_t bandwidth = 0;        // bit/cycle
  double unit_energy_cost = 0;  // pJ per cycle that it is active with all its bandwidth
  bool offchip = false;         // a port of the off-chip memory
};

class Interconnect {
 public:
  explicit Interconnect(const Accelerator& accelerator);

  const std::vector<Link>& links() const { return links_; }
  // Indexes into links(), in order, between two cores given by their index in Accelerator::cores. Empty from a core to
  // itself, and where no way leads that does not pass the off-chip memory.
  const std::vector<int>& path(size_t from, size_t to) const { return ways_[way(from, to)]; }
  // Pairs of cores with the same way have the same number.
  size_t way(size_t from, size_t to) const { return way_of_[from * cores_ + to]; }
  const std::vector<int>& links_of(size_t way) const { return ways_[way]; }
  // The narrowest link of the way; 0 without one.
  int64_t bandwidth(size_t from, size_t to) const;

 private:
  size_t cores_ = 0;
  std::vector<Link> links_;
  std::vector<std::vector<int>> ways_;  // distinct; 0 is the empty one
  std::vector<size_t> way_of_;          // by pair of cores
};

// When a link is free: how much of its bandwidth is taken, from time to time (cycles).
class LinkTimeline {
 public:
  explicit LinkTimeline(int64_t bandwidth) : bandwidth_(bandwidth) {}
  int64_t bandwidth() const { return bandwidth_; }
  void clear() { steps_.assign(1, {0, 0}); }
  // The first time at or after `from` at which `need` (at most bandwidth()) is free for so long.
  int64_t earliest(int64_t from, int64_t duration, int64_t need) const;
  void take(int64_t start, int64_t duration, int64_t need);

 private:
  struct Step {
    int64_t time, used;
  };
  int64_t bandwidth_;
  std::vector<Step> steps_ = {{0, 0}};  // by time; the last one holds for ever and is free
};

// The first time at or after `from` at which `need` (capped at each link's bandwidth) is free on all links for so long.
int64_t earliest(const std::vector<LinkTimeline>& timelines, const std::vector<int>& path, int64_t from,
                 int64_t duration, int64_t need);

}  // namespace monet
