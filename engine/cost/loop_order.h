// Temporal loops and their orders (ZigZag's loop-order-based search, LOMA: arXiv 2101.05234; COST_MODEL section 2,
// "Temporal mapping"): what the array leaves of each loop is split into factors, and every order of the factors is a
// candidate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/workload/layer.h"

namespace monet {

struct TemporalLoop {
  int loop = 0;  // index into Layer::loops
  int64_t size = 1;
  bool operator==(const TemporalLoop& other) const { return loop == other.loop && size == other.size; }
};

// One loop of a mapping file's `temporal_ordering`.
struct FixedLoop {
  std::string loop;
  int64_t size = 0;  // 0: "*", any one of the loop's factors
};

// Temporal loops of a layer whose orders are tried: 10! are 3,628,800.
constexpr size_t kMaxTemporalLoops = 10;
// Throws Refusal "too-many-loops" beyond that.
void check_loop_count(const Layer& layer, size_t loops);

// Prime factors of each loop's iterations, merged until there are at most `limit` (or one per loop, if that is more):
// each time the two smallest factors of the loop that has most, of equals the first. By loop, ascending sizes.
std::vector<TemporalLoop> temporal_factors(const std::vector<int64_t>& iterations, int limit);

// All distinct orders, innermost loop first, each as indexes into `loops`.
//
// Free loops go through all permutations of their multiset by prefix shifts, starting from descending (name, size)
// (Williams, SODA 2009): the order of ZigZag's search, which decides between mappings of equal cost.
// Fixed loops come first: those with a size as they are (their sizes divide the loops' iterations: the quotient is
// factored), each "*" as every factor of its loop in turn. Loops that the layer lacks, or of which nothing remains, are
// passed over. Throws Refusal: "bad-mapping" for a size that does not divide, "too-many-loops".
class LoopOrders {
 public:
  LoopOrders(const Layer& layer, const std::vector<int64_t>& iterations, const std::vector<FixedLoop>& fixed,
             int limit);

  const std::vector<TemporalLoop>& loops() const { return loops_; }
  const std::vector<int>& order() const { return order_; }
  bool next();  // moves to the next order; false when there is none. Before the first call `order` is the first.

 private:
  void choose_fixed(const std::vector<FixedLoop>& fixed, size_t from, std::vector<int> head, const Layer& layer);
  void start();
  void list();

  std::vector<TemporalLoop> loops_;
  std::vector<int> rank_;                // equal loops have equal rank: place in descending (name, size), from the end
  std::vector<std::vector<int>> heads_;  // each choice of the fixed loops
  size_t head_ = 0;
  std::vector<int> order_;
  std::vector<int> free_;  // loops without a fixed size, in descending (name, size)
  // Those that the present head leaves, as a linked list of positions in `tail_` (-1: end), and the cursors of the
  // prefix-shift algorithm.
  std::vector<int> tail_, next_;
  int first_ = -1, before_end_ = -1, end_ = -1;
};

}  // namespace monet
