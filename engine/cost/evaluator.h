// Cycles and energy of one mapping after another: a layer on a core under one spatial mapping, for many orders of its
// temporal loops (COST_MODEL section 2). The inner loop of the search, hence flat: what an operand's memory holds
// depends on the order only through the set of loops below it, so everything about sizes is tabulated by set.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/cost/layer_cost.h"

namespace monet {

class MappingEvaluator {
 public:
  // `loops`: the temporal loops, of which orders are permutations. All are kept by reference.
  // Throws Refusal as cost_layer does, except "no-mapping".
  MappingEvaluator(const Layer& layer, const Core& core, const std::map<std::string, std::string>& links,
                   const SpatialMapping& spatial, const std::vector<TemporalLoop>& loops, const CostOptions& options);

  // False when not even single tiles fit the memories, whatever the order.
  bool may_fit();
  // Allocates the loops of this order (indexes into `loops`, innermost first) to the memories and counts cycles; false
  // when they do not fit.
  bool evaluate(const std::vector<int>& order);
  // The memory that did not hold its operands when one of these was last false: index into Core::memories.
  int overflowing() const { return overflowing_; }

  // Of the order evaluated last.
  double cycles() const { return iterations_ + stall_ + onload_ + offload_; }
  double energy() const;  // pJ
  // How many times over the bandwidth of the highest memory is asked for by so many tiles side by side, rounded up
  // (CostOptions::parallel_tiles); 1 where operands have only one level.
  double top_load(int tiles) const;
  LayerCost explain() const;  // everything but `orders`

 private:
  enum Direction { tl, fl, fh, th };  // as the hardware file's ports: COST_MODEL section 1

  struct Level {
    int memory = 0;
    std::vector<double> held, held_whole;  // by set of loops below: elements of one instance, on average and in cycles
    // While loops are handed out, at the element's complete and partial width (inputs: the first only): bits of one
    // instance, not rounded, and these times the iterations that remain above.
    std::array<std::vector<double>, 2> bits, weighed_bits;
    double instances = 1;  // rounded
    // Of the link below this level: instances below with different data per instance here.
    double fan_out = 1, fan_out_whole = 1;
    bool spatial_reduction_above = false;  // summands of an output element come from several instances
    std::array<int, 4> port{};             // by direction: index into ports_; of directions that the operand needs
  };
  struct Operand {
    bool output = false;
    uint32_t relevant = 0, partial = 0;  // sets of temporal loops
    double bits = 8;
    std::vector<Level> levels;
  };
  struct Share {
    int operand = 0, level = 0;
    bool top = false;
  };
  struct MemoryState {
    double size = 0;
    std::vector<Share> shares;  // in the order of the memory's operands
  };
  struct PortState {
    const Port* port = nullptr;
    int memory = 0;  // index into Core::memories
    double bandwidth = 0;
    bool both_inputs = false;
    int first = 0, end = 0;  // flows_
  };
  // A transfer through a port. Constant per evaluator: where; per order: how much and how often.
  struct Flow {
    int operand = 0, link = 0, port = 0;
    int place = 0;  // in the port's allocation
    Direction direction = tl;
    double bits = 0, cycles = 0, window = 0, period = 0, count = 0;
    bool active = false;
  };
  // A link of an operand: link l joins level l to the one below, link 0 joins the lowest level to the array.
  struct Link {
    double period = 1, count = 1, bits = 0, window = 1;  // bits per element
    uint32_t below = 0;                                  // set of loops below the link
    bool partial = false;
  };

  int operand_count() const { return static_cast<int>(operands_.size()); }
  int level_count(int operand) const { return static_cast<int>(operands_[operand].levels.size()); }
  void tabulate(int operand, int level);
  void add_ports();
  bool allocate();
  bool room_above(size_t memory) const;
  void merge_down();
  void set_links();
  double top_run(int operand, int link) const;
  int64_t top_bandwidth(int operand) const;
  void set_windows();
  void set_stall();
  double stall_of(const PortState& port) const;
  void set_loads();
  double covered(const PortState& port) const;
  void reduce_single_transfers(const PortState& port);
  double words(int operand, int link, Direction direction) const;
  const Flow& flow(int operand, int link, Direction direction) const {
    return flows_[flow_at_[operand][link][direction]];
  }

  const Layer& layer_;
  const Core& core_;
  const SpatialMapping& spatial_;
  const std::vector<TemporalLoop>& loops_;
  const CostOptions& options_;
  std::map<std::string, std::string> links_;

  std::vector<Operand> operands_;
  std::vector<MemoryState> memories_;
  std::vector<PortState> ports_;
  std::vector<Flow> flows_;                               // by port
  std::vector<std::vector<std::array<int, 4>>> flow_at_;  // [operand][link][direction]
  std::vector<double> product_;                           // by set of loops
  uint32_t reducing_ = 0;                                 // loops that the output is summed over
  double iterations_ = 1, mac_energy_ = 0;

  // Of the order evaluated last.
  std::vector<int> order_;
  std::array<uint32_t, kMaxTemporalLoops + 1> prefix_{};  // set of the first i loops
  std::array<int, 3> allocated_{};                        // by operand: the loops handed out so far
  std::vector<std::vector<int>> ends_;                    // [operand][level]: end of the level's loops in the order
  std::vector<std::vector<Link>> link_;  // [operand][link]; one more than levels: what lies above the top
  std::vector<std::vector<char>> buffered_;
  std::vector<Flow*> once_;
  double stall_ = 0, onload_ = 0, offload_ = 0;
  int overflowing_ = 0;
};

}  // namespace monet
