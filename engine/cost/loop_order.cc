#include "engine/cost/loop_order.h"

#include <algorithm>

namespace monet {

namespace {

std::vector<int64_t> prime_factors(int64_t n) {
  std::vector<int64_t> factors;
  for (int64_t p = 2; p <= n / p; ++p)
    for (; n % p == 0; n /= p) factors.push_back(p);
  if (n > 1) factors.push_back(n);
  return factors;
}

}  // namespace

std::vector<TemporalLoop> temporal_factors(const std::vector<int64_t>& iterations, int limit) {
  std::vector<std::vector<int64_t>> factors;
  size_t count = 0, loops = 0;
  for (int64_t n : iterations) {
    factors.push_back(prime_factors(n));
    count += factors.back().size();
    loops += !factors.back().empty();
  }
  size_t most = std::max(static_cast<size_t>(std::max(limit, 1)), loops);
  for (; count > most; --count) {
    std::vector<int64_t>& longest = *std::max_element(factors.begin(), factors.end(),
                                                      [](const auto& a, const auto& b) { return a.size() < b.size(); });
    longest[1] *= longest[0];
    longest.erase(longest.begin());
    std::sort(longest.begin(), longest.end());
  }
  std::vector<TemporalLoop> result;
  for (size_t loop = 0; loop < factors.size(); ++loop)
    for (int64_t size : factors[loop]) result.push_back({static_cast<int>(loop), size});
  return result;
}

void check_loop_count(const Layer& layer, size_t loops) {
  if (loops <= kMaxTemporalLoops) return;
  throw Refusal({"too-many-loops",
                 "layer " + layer.name + " has " + std::to_string(loops) + " temporal loops, more than the " +
                     std::to_string(kMaxTemporalLoops) + " whose orders can be tried",
                 layer.name, "", "lower the factor limit or unroll more loops spatially"});
}

LoopOrders::LoopOrders(const Layer& layer, const std::vector<int64_t>& iterations, const std::vector<FixedLoop>& fixed,
                       int limit) {
  auto loop_of = [&](const FixedLoop& f) {
    for (size_t i = 0; i < layer.loops.size(); ++i)
      if (layer.loops[i].dim == f.loop) return static_cast<int>(i);
    return -1;
  };
  std::vector<int64_t> left = iterations;
  std::vector<FixedLoop> kept;
  for (const FixedLoop& f : fixed) {
    int loop = loop_of(f);
    if (loop < 0 || f.size == 1) continue;
    if (f.size > 1) {
      if (left[loop] % f.size != 0)
        throw Refusal({"bad-mapping",
                       "temporal_ordering: \"" + f.loop + "\" has " + std::to_string(left[loop]) +
                           " iterations left in layer " + layer.name + ", which " + std::to_string(f.size) +
                           " does not divide",
                       "temporal_ordering", "", "give a divisor, or \"*\""});
      left[loop] /= f.size;
      loops_.push_back({loop, f.size});
    }
    kept.push_back(f);
  }
  size_t sized = loops_.size();
  for (const TemporalLoop& factor : temporal_factors(left, limit)) loops_.push_back(factor);
  check_loop_count(layer, loops_.size());

  std::vector<int> sorted(loops_.size());
  for (size_t i = 0; i < sorted.size(); ++i) sorted[i] = static_cast<int>(i);
  auto before = [&](int a, int b) {
    const std::string &x = layer.loops[loops_[a].loop].dim, &y = layer.loops[loops_[b].loop].dim;
    return x != y ? x > y : loops_[a].size > loops_[b].size;
  };
  std::stable_sort(sorted.begin(), sorted.end(), before);
  rank_.resize(loops_.size());
  for (size_t i = 0; i < sorted.size(); ++i)
    rank_[sorted[i]] = i > 0 && !before(sorted[i - 1], sorted[i]) ? rank_[sorted[i - 1]] : -static_cast<int>(i);
  for (int loop : sorted)
    if (static_cast<size_t>(loop) >= sized) free_.push_back(loop);

  // `kept` with sizes are loops_[0 .. sized) in their order; each "*" is chosen among the factors.
  choose_fixed(kept, 0, {}, layer);
  start();
}

void LoopOrders::choose_fixed(const std::vector<FixedLoop>& fixed, size_t from, std::vector<int> head,
                              const Layer& layer) {
  if (from == fixed.size()) {
    heads_.push_back(std::move(head));
    return;
  }
  if (fixed[from].size > 0) {
    int index = 0;
    for (size_t i = 0; i < from; ++i) index += fixed[i].size > 0;
    head.push_back(index);
    return choose_fixed(fixed, from + 1, std::move(head), layer);
  }
  bool any = false;
  int last_rank = 1;
  for (int loop : free_) {
    bool used = std::find(head.begin(), head.end(), loop) != head.end();
    if (used || layer.loops[loops_[loop].loop].dim != fixed[from].loop || rank_[loop] == last_rank) continue;
    last_rank = rank_[loop];
    any = true;
    std::vector<int> longer = head;
    longer.push_back(loop);
    choose_fixed(fixed, from + 1, std::move(longer), layer);
  }
  if (!any) choose_fixed(fixed, from + 1, std::move(head), layer);
}

void LoopOrders::start() {
  order_ = heads_[head_];
  tail_.clear();
  for (int loop : free_)
    if (std::find(order_.begin(), order_.end(), loop) == order_.end()) tail_.push_back(loop);
  next_.assign(tail_.size(), -1);
  for (size_t i = 0; i + 1 < tail_.size(); ++i) next_[i] = static_cast<int>(i) + 1;
  first_ = tail_.empty() ? -1 : 0;
  end_ = static_cast<int>(tail_.size()) - 1;
  before_end_ = end_ - 1;
  list();
}

void LoopOrders::list() {
  order_.resize(heads_[head_].size());
  for (int at = first_; at >= 0; at = next_[at]) order_.push_back(tail_[at]);
}

bool LoopOrders::next() {
  auto rank = [&](int at) { return rank_[tail_[at]]; };
  if (first_ < 0 || (next_[end_] < 0 && rank(end_) >= rank(first_))) {
    if (++head_ == heads_.size()) return false;
    start();
    return true;
  }
  // [first_, end_] is the longest non-increasing prefix: the element after it moves to the front, or the one after
  // that if the prefix would stay as long.
  int before = next_[end_] >= 0 && rank(before_end_) >= rank(next_[end_]) ? end_ : before_end_;
  int moved = next_[before];
  next_[before] = next_[moved];
  next_[moved] = first_;
  if (rank(moved) < rank(first_)) before_end_ = moved;
  end_ = next_[before_end_];
  first_ = moved;
  list();
  return true;
}

}  // namespace monet
