// The cost of one mapping, and of a layer by trying every order, written straight from COST_MODEL section 2 with no
// thought of speed: the oracle of the engine's search (engine/cost). It shares with it the layer's description
// (workload/layer.h), the core's (hardware/accelerator.h) and the options, and nothing that computes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/cost/layer_cost.h"

namespace monet::plain {

// A positive fraction; sizes in tests and oracles stay far below 2^63.
struct Fraction {
  int64_t over = 1, under = 1;
  Fraction times(int64_t n) const { return {over * n, under}; }
  double value() const { return static_cast<double>(over) / static_cast<double>(under); }
};

struct SpatialLoop {
  int loop, dimension;
  Fraction fractional;
  int64_t whole;
};

// The unrollings, and how many iterations remain of each loop.
inline std::vector<SpatialLoop> unroll(const Dataflow& dataflow, const Layer& layer, const Core& core,
                                       std::vector<int64_t>& remaining) {
  std::vector<SpatialLoop> result;
  remaining.clear();
  for (const Loop& loop : layer.loops) remaining.push_back(loop.size);
  for (size_t d = 0; d < core.dimensions.size(); ++d) {
    int64_t room = core.sizes[d];
    if (!dataflow.count(core.dimensions[d])) continue;
    for (const auto& [name, factor] : dataflow.at(core.dimensions[d]))
      for (int l = 0; l < static_cast<int>(layer.loops.size()); ++l) {
        if (layer.loops[l].dim != name) continue;
        int64_t u = std::max<int64_t>(1, std::min({factor, room, remaining[l]}));
        room /= u;
        remaining[l] = (remaining[l] + u - 1) / u;
        result.push_back({l, static_cast<int>(d), {u, 1}, u});
      }
  }
  // The last unrolling of each loop takes up what does not divide.
  for (int l = 0; l < static_cast<int>(layer.loops.size()); ++l) {
    int64_t product = 1, size = layer.loops[l].size;
    SpatialLoop* last = nullptr;
    for (SpatialLoop& s : result)
      if (s.loop == l) {
        product *= s.whole;
        if (s.whole > 1) last = &s;
      }
    remaining[l] = (size + product - 1) / product;
    if (last && size % product != 0) {
      int64_t others = product / last->whole;
      last->fractional = {size, remaining[l] * others};
      last->whole = std::max<int64_t>(1, size / (remaining[l] * others));
    }
  }
  return result;
}

inline std::vector<TemporalLoop> factors(const std::vector<int64_t>& remaining, int limit) {
  std::vector<std::multiset<int64_t>> primes(remaining.size());
  for (size_t l = 0; l < remaining.size(); ++l) {
    int64_t n = remaining[l];
    for (int64_t p = 2; n > 1; ++p)
      while (n % p == 0) {
        primes[l].insert(p);
        n /= p;
      }
  }
  for (;;) {
    size_t count = 0, loops = 0;
    for (const auto& p : primes) {
      count += p.size();
      loops += p.empty() ? 0 : 1;
    }
    if (count <= std::max<size_t>(static_cast<size_t>(limit), loops)) break;
    size_t longest = 0;
    for (size_t l = 1; l < primes.size(); ++l)
      if (primes[l].size() > primes[longest].size()) longest = l;
    int64_t a = *primes[longest].begin();
    primes[longest].erase(primes[longest].begin());
    int64_t b = *primes[longest].begin();
    primes[longest].erase(primes[longest].begin());
    primes[longest].insert(a * b);
  }
  std::vector<TemporalLoop> result;
  for (size_t l = 0; l < primes.size(); ++l)
    for (int64_t p : primes[l]) result.push_back({static_cast<int>(l), p});
  return result;
}

struct Words {
  double read_to_low = 0, written_by_low = 0, read_to_high = 0, written_by_high = 0;
};

struct Cost {
  bool fits = false;
  double stall = 0, onload = 0, offload = 0, total0 = 0, total1 = 0, total2 = 0;
  double energy = 0;                                           // pJ
  std::vector<std::vector<std::vector<TemporalLoop>>> levels;  // [operand][level]: loops, innermost first
  std::vector<std::vector<Words>> words;                       // [operand][level]
};

class Mapping {
 public:
  Mapping(const Layer& layer, const Core& core, const Dataflow& dataflow,
          const std::map<std::string, std::string>& links, const CostOptions& options)
      : layer_(layer), core_(core), options_(options) {
    spatial_ = unroll(dataflow, layer, core, remaining_);
    for (const LayerOperand& o : layer.operands) {
      memory_operand_.push_back(links.at(o.name));
      std::vector<int> memories;
      for (size_t m = 0; m < core.memories.size(); ++m)
        if (holds(core.memories[m], memory_operand_.back())) memories.push_back(static_cast<int>(m));
      memories_.push_back(memories);
    }
  }

  const std::vector<int64_t>& remaining() const { return remaining_; }

  Cost cost(const std::vector<TemporalLoop>& order) {
    Cost result;
    order_ = order;
    if (!allocate()) return result;
    merge_down();
    result.fits = true;
    for (size_t o = 0; o < layer_.operands.size(); ++o) {
      result.levels.emplace_back();
      for (size_t level = 0; level < memories_[o].size(); ++level)
        result.levels[o].emplace_back(order_.begin() + end_of(o, static_cast<int>(level) - 1),
                                      order_.begin() + end_of(o, static_cast<int>(level)));
    }
    energy(result);
    latency(result);
    return result;
  }

 private:
  static bool holds(const Memory& memory, const std::string& operand) {
    return std::count(memory.operands.begin(), memory.operands.end(), operand) > 0;
  }
  bool is_output(size_t o) const { return o + 1 == layer_.operands.size(); }
  bool serves(int memory, int dimension) const {
    const std::vector<std::string>& served = core_.memories[memory].served_dimensions;
    return std::count(served.begin(), served.end(), core_.dimensions[dimension]) > 0;
  }
  // Whether the unrolling lies below the operand's level: within what one instance of its memory serves. -1: the array.
  bool below(size_t o, int level, const SpatialLoop& s) const {
    for (int l = 0; l <= level; ++l)
      if (serves(memories_[o][l], s.dimension)) return true;
    return false;
  }
  bool relevant(size_t o, int loop) const {
    const std::vector<int>& loops = layer_.operands[o].loops;
    return std::count(loops.begin(), loops.end(), loop) > 0;
  }
  bool partially(size_t o, int loop) const {
    for (const WindowedAxis& w : layer_.operands[o].windows)
      if (w.point == loop || w.tap == loop) return true;
    return false;
  }
  bool irrelevant(size_t o, int loop) const { return !relevant(o, loop) && !partially(o, loop); }

  // Elements of the operand that these extents of the loops touch.
  Fraction elements(size_t o, const std::vector<Fraction>& extent) const {
    Fraction product;
    for (int loop : layer_.operands[o].loops)
      product = {product.over * extent[loop].over, product.under * extent[loop].under};
    for (const WindowedAxis& w : layer_.operands[o].windows) {
      if (options_.count_uneven_tiles) {
        Fraction a = extent[w.point], b = extent[w.tap];
        int64_t g = std::gcd(w.stride, w.dilation), parts = a.under * b.under;
        int64_t span = a.over * b.over -
                       std::max<int64_t>(0, b.over - w.stride / g * b.under) * (a.over - w.dilation / g * a.under);
        product = {product.over * std::min(span, w.size * parts), product.under * parts};
        continue;
      }
      int64_t a = extent[w.point].over / extent[w.point].under, b = extent[w.tap].over / extent[w.tap].under;
      int64_t g = std::gcd(w.stride, w.dilation);
      int64_t span = a * b - std::max<int64_t>(0, b - w.stride / g) * (a - w.dilation / g);
      product = product.times(std::min(span, w.size));
    }
    return product;
  }
  double rounded(double count) const { return options_.count_uneven_tiles ? count : std::nearbyint(count); }
  // What one instance of the operand's memory at `level` holds when the loops before `end` run below it.
  Fraction exactly_held(size_t o, int level, size_t end, bool whole) const {
    std::vector<Fraction> extent(layer_.loops.size());
    for (const SpatialLoop& s : spatial_)
      if (below(o, level, s)) {
        Fraction by = whole && !options_.count_uneven_tiles ? Fraction{s.whole, 1} : s.fractional;
        extent[s.loop] = {extent[s.loop].over * by.over, extent[s.loop].under * by.under};
      }
    for (size_t i = 0; i < end; ++i) extent[order_[i].loop] = extent[order_[i].loop].times(order_[i].size);
    return elements(o, extent);
  }
  double held(size_t o, int level, size_t end, bool whole) const {
    return rounded(exactly_held(o, level, end, whole).value());
  }
  // Elements that differ between the instances at `level`.
  double unique(size_t o, int level, bool whole) const {
    std::vector<Fraction> extent(layer_.loops.size());
    for (const SpatialLoop& s : spatial_)
      if (!below(o, level, s)) {
        Fraction by = whole && !options_.count_uneven_tiles ? Fraction{s.whole, 1} : s.fractional;
        extent[s.loop] = {extent[s.loop].over * by.over, extent[s.loop].under * by.under};
      }
    return elements(o, extent).value();
  }
  double instances(size_t o, int level) const {
    double product = 1;
    for (const SpatialLoop& s : spatial_)
      if (!below(o, level, s)) product *= s.fractional.value();
    return rounded(product);
  }
  double product(size_t from, size_t to) const {
    double p = 1;
    for (size_t i = from; i < to; ++i) p *= static_cast<double>(order_[i].size);
    return p;
  }
  bool reduces_from(size_t from) const {
    for (size_t i = from; i < order_.size(); ++i)
      if (layer_.reduces(order_[i].loop)) return true;
    return false;
  }

  // allocated_[o][level]: end of the level's loops in the order.
  size_t end_of(size_t o, int level) const { return level < 0 ? 0 : allocated_[o][level]; }

  bool allocate() {
    allocated_.assign(layer_.operands.size(), {});
    for (int m = 0; m < static_cast<int>(core_.memories.size()); ++m) {
      const Memory& memory = core_.memories[m];
      std::vector<size_t> sharing;  // layer operands in the order of the memory's
      for (const std::string& name : memory.operands)
        for (size_t o = 0; o < layer_.operands.size(); ++o)
          if (memory_operand_[o] == name) sharing.push_back(o);
      std::vector<std::vector<size_t>> ends;  // the choices of each
      for (size_t o : sharing) {
        size_t from = allocated_[o].empty() ? 0 : allocated_[o].back();
        ends.emplace_back();
        for (size_t end = from; end <= order_.size(); ++end)
          if (memories_[o].back() != m || end == order_.size()) ends.back().push_back(end);
      }
      std::vector<size_t> choice(sharing.size(), 0), best;
      double least = std::numeric_limits<double>::infinity();
      for (bool more = true; more;) {
        double bits = 0, cost = 0;
        for (size_t i = 0; i < sharing.size(); ++i) {
          size_t o = sharing[i], end = ends[i][choice[i]];
          int level = static_cast<int>(allocated_[o].size());
          Fraction stored = exactly_held(o, level, end, false).times(stored_bits(o, level, ends[i][0], m));
          bits += stored.value();
          double above = product(end, order_.size()) * static_cast<double>(stored.over);
          if (memories_[o].back() != m) cost += above / static_cast<double>(stored.under);
        }
        if (bits <= static_cast<double>(memory.size) && cost <= least && room_above(m, sharing, ends, choice)) {
          least = cost;
          best = choice;
        }
        more = false;
        for (size_t i = sharing.size(); i-- > 0 && !more;) {
          more = ++choice[i] < ends[i].size();
          if (!more) choice[i] = 0;
        }
      }
      if (best.size() != sharing.size()) return false;
      for (size_t i = 0; i < sharing.size(); ++i) allocated_[sharing[i]].push_back(ends[i][best[i]]);
    }
    return true;
  }
  // With leave_room_above: whether the memories above hold what this choice, and no more loops, makes of their
  // operands.
  bool room_above(int m, const std::vector<size_t>& sharing, const std::vector<std::vector<size_t>>& ends,
                  const std::vector<size_t>& choice) const {
    if (!options_.leave_room_above) return true;
    for (int above = m + 1; above < static_cast<int>(core_.memories.size()); ++above) {
      double bits = 0;
      for (size_t o = 0; o < layer_.operands.size(); ++o) {
        const std::vector<int>& memories = memories_[o];
        auto at = std::find(memories.begin(), memories.end(), above);
        if (at == memories.end()) continue;
        size_t end = allocated_[o].empty() ? 0 : allocated_[o].back();
        for (size_t i = 0; i < sharing.size(); ++i)
          if (sharing[i] == o) end = ends[i][choice[i]];
        int level = static_cast<int>(at - memories.begin());
        size_t held_end = memories.back() == above ? order_.size() : end;
        bits += exactly_held(o, level, held_end, false).times(stored_bits(o, level, end, above)).value();
      }
      if (bits > static_cast<double>(core_.memories[above].size)) return false;
    }
    return true;
  }
  // While loops are handed out: of O by what is unallocated before this memory, spatial loops above it included.
  int stored_bits(size_t o, int level, size_t from, int memory) const {
    if (!is_output(o)) return layer_.operands[o].bits;
    if (memories_[o].back() == memory) from = order_.size();
    bool partial = reduces_from(from);
    for (const SpatialLoop& s : spatial_) partial = partial || (!below(o, level, s) && layer_.reduces(s.loop));
    return partial ? layer_.partial_bits : layer_.output().bits;
  }

  // The innermost irrelevant loops of a level go to the level below it (those of the lowest to the array: `period`).
  void merge_down() {
    for (size_t o = 0; o < layer_.operands.size(); ++o) {
      std::vector<size_t> merged = allocated_[o];
      for (size_t level = 0; level + 1 < allocated_[o].size(); ++level)
        while (merged[level] < allocated_[o][level + 1] && irrelevant(o, order_[merged[level]].loop)) ++merged[level];
      allocated_[o] = merged;
    }
  }

  // --- links: link l joins level l to the one below it; link 0 joins level 0 to the array.
  double total() const { return product(0, order_.size()); }
  double period(size_t o, size_t link) const {
    if (link > 0) return product(0, end_of(o, static_cast<int>(link) - 1));
    double run = 1;
    if (!is_output(o))
      for (size_t i = 0; i < order_.size() && irrelevant(o, order_[i].loop); ++i)
        run *= static_cast<double>(order_[i].size);
    return run;
  }
  double count(size_t o, size_t link) const { return std::floor(total() / period(o, link)); }
  bool partial(size_t o, size_t link) const {
    return is_output(o) && reduces_from(link > 0 ? end_of(o, static_cast<int>(link) - 1) : 0);
  }
  double bits(size_t o, size_t link) const { return partial(o, link) ? layer_.partial_bits : layer_.operands[o].bits; }
  double amount(size_t o, size_t link, bool whole) const {
    return link == 0 ? 1 : held(o, static_cast<int>(link) - 1, end_of(o, static_cast<int>(link) - 1), whole);
  }
  double upper_amount(size_t o, size_t link, bool whole) const {
    double ratio = unique(o, static_cast<int>(link) - 1, whole) / unique(o, static_cast<int>(link), whole);
    return amount(o, link, whole) * rounded(ratio);
  }

  const Port& port(int memory, size_t o, const char* direction) const {
    for (const Port& p : core_.memories[memory].ports)
      for (const auto& a : p.allocation)
        if (a.first == memory_operand_[o] && a.second == direction) return p;
    throw std::runtime_error("no port");
  }

  double accesses(double amount, double bits, const Port& port, double count, double instances) const {
    double low = static_cast<double>(port.bandwidth_min), high = static_cast<double>(port.bandwidth_max);
    double words = std::ceil(amount * bits / low) * (low / high) * count * instances;
    return options_.count_partial_words ? words : std::floor(words);
  }

  void energy(Cost& result) const {
    result.energy = core_.unit_energy;
    double macs = 1;
    for (const Loop& loop : layer_.loops) macs *= static_cast<double>(loop.size);
    result.energy *= macs;
    for (size_t o = 0; o < layer_.operands.size(); ++o) {
      result.words.emplace_back(memories_[o].size());
      std::vector<Words>& words = result.words[o];
      for (size_t link = 0; link < memories_[o].size(); ++link) {
        double b = bits(o, link), n = count(o, link);
        int upper = memories_[o][link];
        double above = instances(o, static_cast<int>(link)), up = upper_amount(o, link, false);
        double down = amount(o, link, false);
        bool in = !is_output(o) || partial(o, link);
        if (in) words[link].read_to_low = accesses(up, b, port(upper, o, "tl"), n, above);
        if (is_output(o)) words[link].written_by_low = accesses(up, b, port(upper, o, "fl"), n, above);
        if (link == 0) continue;
        int lower = memories_[o][link - 1];
        double lows = instances(o, static_cast<int>(link) - 1);
        if (in) words[link - 1].written_by_high = accesses(down, b, port(lower, o, "fh"), n, lows);
        if (is_output(o)) words[link - 1].read_to_high = accesses(down, b, port(lower, o, "th"), n, lows);
      }
      for (size_t level = 0; level < words.size(); ++level) {
        const Memory& memory = core_.memories[memories_[o][level]];
        result.energy += (words[level].read_to_low + words[level].read_to_high) * memory.read_cost +
                         (words[level].written_by_low + words[level].written_by_high) * memory.write_cost;
      }
    }
  }

  // --- latency
  std::vector<std::vector<bool>> double_buffered() const {
    std::vector<std::vector<bool>> flags;
    for (const std::vector<int>& m : memories_) flags.emplace_back(m.size(), false);
    for (int m = 0; m < static_cast<int>(core_.memories.size()); ++m) {
      struct Share {
        size_t operand, level;
        double utilisation;
      };
      std::vector<Share> shares;
      double sum = 0;
      for (const std::string& name : core_.memories[m].operands)
        for (size_t o = 0; o < layer_.operands.size(); ++o) {
          if (memory_operand_[o] != name) continue;
          size_t level =
              static_cast<size_t>(std::find(memories_[o].begin(), memories_[o].end(), m) - memories_[o].begin());
          double top = 1;
          for (size_t i = end_of(o, static_cast<int>(level));
               i > end_of(o, static_cast<int>(level) - 1) && relevant(o, order_[i - 1].loop); --i)
            top *= static_cast<double>(order_[i - 1].size);
          double stored = held(o, static_cast<int>(level), end_of(o, static_cast<int>(level)), false) *
                          (partial(o, level + 1) ? layer_.partial_bits : layer_.operands[o].bits);
          shares.push_back({o, level, std::floor(stored / top) / static_cast<double>(core_.memories[m].size)});
          sum += shares.back().utilisation;
        }
      bool all = sum <= 0.5;
      for (const Share& s : shares) {
        bool own = all || s.utilisation <= 1 - sum;
        if (!all && own) sum += s.utilisation;
        flags[s.operand][s.level] = own;
      }
    }
    return flags;
  }

  struct Flow {
    size_t operand, link, place;
    std::string direction;
    double cycles, window, period, count, bits, floor;
    double stall() const { return (cycles - window) * (count - 1); }
    bool returns() const { return direction == "o tl" || direction == "o fh"; }
  };

  // Cycles within the longest period in which some flow's window is open; windows stand at the end of their periods.
  static double covered(std::vector<Flow> flows) {
    std::sort(flows.begin(), flows.end(), [](const Flow& a, const Flow& b) { return a.period < b.period; });
    double longest = flows.back().period;
    if (longest <= 2000) {
      double cycles = 0;
      for (int64_t t = 0; t < static_cast<int64_t>(longest); ++t) {
        bool open = false;
        for (const Flow& f : flows) {
          int64_t p = static_cast<int64_t>(f.period);
          open = open || t % p >= p - static_cast<int64_t>(f.window);
        }
        cycles += open;
      }
      return cycles;
    }
    // Periods divide each other: what the windows of the first k flows cover of the first `length` cycles.
    std::vector<double> whole(flows.size());
    auto prefix = [&](size_t k, double length) {
      double sum = 0;
      for (; k > 0 && length > 0; --k) {
        const Flow& f = flows[k - 1];
        double full = std::floor(length / f.period);
        sum += full * whole[k - 1];
        length -= full * f.period;
        double open = std::max(0.0, length - (f.period - f.window));
        sum += open;
        length -= open;
      }
      return sum;
    };
    for (size_t k = 0; k < flows.size(); ++k) whole[k] = prefix(k, flows[k].period - flows[k].window) + flows[k].window;
    return whole.back();
  }

  void latency(Cost& result) const {
    std::vector<std::vector<bool>> buffered = double_buffered();
    // [memory][port]
    std::vector<std::vector<std::vector<Flow>>> ports;
    for (const Memory& memory : core_.memories) ports.emplace_back(memory.ports.size());
    auto add = [&](int memory, size_t o, size_t link, const char* direction, double amount) {
      const Port& p = port(memory, o, direction);
      Flow flow;
      flow.operand = o;
      flow.link = link;
      flow.direction = std::string(is_output(o) ? "o " : "i ") + direction;
      flow.place = 0;
      while (p.allocation[flow.place] != std::make_pair(memory_operand_[o], std::string(direction))) ++flow.place;
      flow.bits = amount * bits(o, link);
      double bandwidth = static_cast<double>(p.bandwidth_max);
      flow.cycles = std::ceil(flow.bits / bandwidth);
      flow.period = period(o, link);
      flow.count = count(o, link);
      flow.window = 1;
      if (link > 0) {
        int level = static_cast<int>(link) - 1;
        double run = 1;
        for (size_t i = end_of(o, level); i > end_of(o, level - 1) && irrelevant(o, order_[i - 1].loop); --i)
          run *= static_cast<double>(order_[i - 1].size);
        flow.window = buffered[o][level] ? flow.period : std::floor(flow.period / run);
      }
      double lowest = held(o, 0, end_of(o, 0), true) * bits(o, 1);
      flow.floor = std::ceil(lowest / bandwidth);
      ports[memory][static_cast<size_t>(&p - core_.memories[memory].ports.data())].push_back(flow);
    };
    for (size_t o = 0; o < layer_.operands.size(); ++o)
      for (size_t link = 0; link < memories_[o].size(); ++link) {
        bool in = !is_output(o) || partial(o, link);
        int upper = memories_[o][link], lower = link > 0 ? memories_[o][link - 1] : -1;
        double up = upper_amount(o, link, true), down = amount(o, link, true);
        if (in) add(upper, o, link, "tl", up);
        if (is_output(o)) add(upper, o, link, "fl", up);
        if (in && lower >= 0) add(lower, o, link, "fh", down);
        if (is_output(o) && lower >= 0) add(lower, o, link, "th", down);
      }

    for (auto& memory : ports)
      for (std::vector<Flow>& flows : memory)
        std::sort(flows.begin(), flows.end(), [](const Flow& a, const Flow& b) { return a.place < b.place; });

    double stall = 0;
    for (const auto& memory : ports)
      for (const std::vector<Flow>& flows : memory) {
        if (flows.empty()) continue;
        if (flows.size() == 1) {
          stall = std::max(stall, flows[0].stall());
          continue;
        }
        double positive = 0, others = 0, windows = 0, open = -1;
        const Flow* longest = &flows[0];
        for (const Flow& f : flows) {
          (f.stall() > 0 ? positive : others) += f.stall();
          windows += f.window * (f.count - 1);
          if (f.period > longest->period) longest = &f;
          if (f.window == f.period) open = f.period * f.count;
        }
        if (open < 0) open = covered(flows) * longest->count;
        stall = std::max(stall, positive + std::max(0.0, others + windows - open));
      }

    // What runs beside the computation is taken off transfers that happen once.
    double busy = total() + stall;
    for (size_t m = 0; m < ports.size(); ++m)
      for (size_t p = 0; p < ports[m].size(); ++p) {
        double bandwidth = static_cast<double>(core_.memories[m].ports[p].bandwidth_max), used = 0;
        std::vector<Flow*> once;
        for (Flow& f : ports[m][p]) {
          if (f.returns() && !options_.count_all_traffic) continue;
          if (f.count > 1) {
            used += options_.count_all_traffic ? f.bits / f.period : std::floor(f.bits / f.period);
          } else if (!f.returns()) {
            once.push_back(&f);
          }
        }
        double surplus = std::max(0.0, (bandwidth - used) / bandwidth * busy);
        std::stable_sort(once.begin(), once.end(), [](const Flow* a, const Flow* b) { return a->cycles > b->cycles; });
        for (size_t i = 0; i < once.size(); ++i) {
          double d = once[i]->cycles - once[i]->floor, positions = static_cast<double>(i + 1);
          bool enough = surplus >= d * positions;
          double less = enough ? d : surplus / positions, spent = 0;
          for (size_t j = 0; j <= i; ++j) {
            double here = less;
            if (options_.hold_floors) here = std::min(less, std::max(0.0, once[j]->cycles - once[j]->floor));
            once[j]->cycles -= here;
            spent += here;
          }
          if (!enough) break;
          surplus -= spent;
        }
      }

    auto cycles = [&](int memory, size_t o, size_t link, const char* direction) {
      const Port& p = port(memory, o, direction);
      for (const Flow& f : ports[memory][static_cast<size_t>(&p - core_.memories[memory].ports.data())])
        if (f.operand == o && f.link == link && f.direction.substr(2) == direction) return f.cycles;
      throw std::runtime_error("no flow");
    };
    auto serves_both = [](const Port& p) {
      bool first = false, second = false;
      for (const auto& a : p.allocation) {
        first = first || a.first == "I1";
        second = second || a.first == "I2";
      }
      return first && second;
    };
    struct Parts {
      double shared = 0, half = 0, alone = 0;
    };
    std::vector<Parts> parts(2);
    size_t out = layer_.operands.size() - 1;
    for (size_t o = 0; o < out; ++o)
      for (size_t link = 1; link < memories_[o].size(); ++link) {
        int lower = memories_[o][link - 1], upper = memories_[o][link];
        double time = std::max(cycles(lower, o, link, "fh"), cycles(upper, o, link, "tl"));
        int both = serves_both(port(lower, o, "fh")) + serves_both(port(upper, o, "tl"));
        if (both == 2) parts[o].shared += time;
        if (both == 1) parts[o].half = options_.add_half_shared ? parts[o].half + time : time;
        if (both == 0) parts[o].alone += time;
      }
    auto onload = [&](const Parts& a, const Parts& b) {
      if (options_.add_half_shared) return a.shared + a.half + b.shared + b.half + std::max(a.alone, b.alone);
      return a.shared + std::max(b.shared + b.half + b.alone, a.half + a.alone);
    };
    result.onload = std::min(onload(parts[0], parts[1]), onload(parts[1], parts[0]));
    for (size_t link = 1; link < memories_[out].size(); ++link)
      result.offload +=
          std::max(cycles(memories_[out][link - 1], out, link, "th"), cycles(memories_[out][link], out, link, "fl"));
    result.stall = stall;
    result.total0 = total() + stall;
    result.total1 = result.total0 + result.onload;
    result.total2 = result.total1 + result.offload;
  }

  const Layer& layer_;
  const Core& core_;
  const CostOptions& options_;
  std::vector<SpatialLoop> spatial_;
  std::vector<int64_t> remaining_;
  std::vector<std::string> memory_operand_;  // per layer operand: I1, I2 or O
  std::vector<std::vector<int>> memories_;   // per layer operand: its memories, lowest first
  std::vector<TemporalLoop> order_;
  std::vector<std::vector<size_t>> allocated_;
};

// Every distinct order that begins as `fixed` says.
inline std::vector<std::vector<TemporalLoop>> orders(const Layer& layer, std::vector<int64_t> remaining,
                                                     const std::vector<FixedLoop>& fixed, int limit) {
  auto loop_of = [&](const std::string& dim) {
    for (int l = 0; l < static_cast<int>(layer.loops.size()); ++l)
      if (layer.loops[l].dim == dim) return l;
    return -1;
  };
  for (const FixedLoop& f : fixed)
    if (f.size > 1 && loop_of(f.loop) >= 0) remaining[loop_of(f.loop)] /= f.size;
  std::vector<TemporalLoop> free = factors(remaining, limit);
  auto less = [](const TemporalLoop& a, const TemporalLoop& b) {
    return std::make_pair(a.loop, a.size) < std::make_pair(b.loop, b.size);
  };
  std::sort(free.begin(), free.end(), less);
  std::vector<std::vector<TemporalLoop>> result;
  do {
    std::vector<TemporalLoop> order;
    size_t next = 0;
    bool fits = true;
    for (const FixedLoop& f : fixed) {
      int loop = loop_of(f.loop);
      if (loop < 0 || f.size == 1) continue;
      if (f.size > 1) {
        order.push_back({loop, f.size});
        continue;
      }
      bool any = false;
      for (size_t i = next; i < free.size(); ++i) any = any || free[i].loop == loop;
      if (!any) continue;
      fits = fits && free[next].loop == loop;
      order.push_back(free[next++]);
    }
    order.insert(order.end(), free.begin() + static_cast<int64_t>(next), free.end());
    if (fits) result.push_back(order);
  } while (std::next_permutation(free.begin(), free.end(), less));
  return result;
}

}  // namespace monet::plain
