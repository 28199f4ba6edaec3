#include "engine/cost/evaluator.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace monet {

namespace {

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

// Extents of loops below a point of the hierarchy, as numerator / denominator: exact, because what convolution windows
// span is truncated and element counts are rounded.
struct Extent {
  std::vector<int64_t> numerator, denominator;
  explicit Extent(size_t loops) : numerator(loops, 1), denominator(loops, 1) {}
  void unroll(const Unrolling& u, bool whole) {
    numerator[u.loop] *= whole ? u.whole : u.numerator;
    denominator[u.loop] *= whole ? 1 : u.denominator;
  }
};

// Elements of the operand that the extents touch, as a fraction. `uneven`: windows span fractions of their loops, too.
std::pair<double, double> elements(const LayerOperand& operand, const Extent& extent, bool uneven) {
  double over = 1, under = 1;
  for (int loop : operand.loops) {
    over *= static_cast<double>(extent.numerator[loop]);
    under *= static_cast<double>(extent.denominator[loop]);
  }
  for (const WindowedAxis& axis : operand.windows) {
    int64_t points = extent.numerator[axis.point], taps = extent.numerator[axis.tap];
    int64_t point_parts = extent.denominator[axis.point], tap_parts = extent.denominator[axis.tap];
    if (!uneven) {
      over *= static_cast<double>(window_span(axis, points / point_parts, taps / tap_parts));
      continue;
    }
    over *= static_cast<double>(window_span(axis, points, taps, point_parts, tap_parts));
    under *= static_cast<double>(point_parts * tap_parts);
  }
  return {over, under};
}

double value(const std::pair<double, double>& fraction) { return fraction.first / fraction.second; }

}  // namespace

MappingEvaluator::MappingEvaluator(const Layer& layer, const Core& core,
                                   const std::map<std::string, std::string>& links, const SpatialMapping& spatial,
                                   const std::vector<TemporalLoop>& loops, const CostOptions& options)
    : layer_(layer), core_(core), spatial_(spatial), loops_(loops), options_(options), links_(links) {
  check_loop_count(layer, loops.size());
  product_.assign(size_t{1} << loops.size(), 1);
  for (size_t set = 1; set < product_.size(); ++set) {
    size_t lowest = 0;
    while (!(set >> lowest & 1)) ++lowest;
    product_[set] = product_[set & (set - 1)] * static_cast<double>(loops[lowest].size);
  }
  iterations_ = product_.back();
  mac_energy_ = core.unit_energy;
  double macs = 1;
  for (const Loop& loop : layer.loops) macs *= static_cast<double>(loop.size);
  mac_energy_ *= macs;
  for (size_t i = 0; i < loops.size(); ++i) reducing_ |= static_cast<uint32_t>(layer.reduces(loops[i].loop)) << i;

  memories_.resize(core.memories.size());
  for (size_t m = 0; m < core.memories.size(); ++m) memories_[m].size = static_cast<double>(core.memories[m].size);
  std::vector<std::string> memory_operands;
  for (size_t o = 0; o < layer.operands.size(); ++o) {
    const LayerOperand& described = layer.operands[o];
    Operand operand;
    operand.output = o + 1 == layer.operands.size();
    operand.bits = described.bits;
    for (size_t i = 0; i < loops.size(); ++i) {
      if (std::find(described.loops.begin(), described.loops.end(), loops[i].loop) != described.loops.end())
        operand.relevant |= uint32_t{1} << i;
      for (const WindowedAxis& axis : described.windows)
        if (axis.point == loops[i].loop || axis.tap == loops[i].loop) operand.partial |= uint32_t{1} << i;
    }
    auto link = links.find(described.name);
    if (link == links.end())
      throw Refusal({"bad-mapping",
                     "memory_operand_links: operand " + described.name + " of layer " + layer.name +
                         " is linked to no memory operand",
                     "memory_operand_links", "", "link it to I1, I2 or O"});
    if (contains(memory_operands, link->second))
      throw Refusal({"bad-mapping",
                     "memory_operand_links: two operands of layer " + layer.name + " are linked to " + link->second,
                     "memory_operand_links", "", ""});
    memory_operands.push_back(link->second);
    for (size_t m = 0; m < core.memories.size(); ++m) {
      if (!contains(core.memories[m].operands, link->second)) continue;
      operand.levels.emplace_back();
      operand.levels.back().memory = static_cast<int>(m);
    }
    if (operand.levels.empty())
      throw Refusal({"no-memory", "core " + core.name + " has no memory for " + link->second, core.name, "", ""});
    operands_.push_back(std::move(operand));
  }
  for (size_t m = 0; m < core.memories.size(); ++m)
    for (const std::string& name : core.memories[m].operands)
      for (int o = 0; o < operand_count(); ++o) {
        if (memory_operands[o] != name) continue;
        for (int l = 0; l < level_count(o); ++l)
          if (operands_[o].levels[l].memory == static_cast<int>(m))
            memories_[m].shares.push_back({o, l, l + 1 == level_count(o)});
      }
  for (int o = 0; o < operand_count(); ++o)
    for (int l = 0; l < level_count(o); ++l) tabulate(o, l);
  add_ports();
  ends_.resize(operands_.size());
  link_.resize(operands_.size());
  buffered_.resize(operands_.size());
  for (int o = 0; o < operand_count(); ++o) {
    ends_[o].assign(operands_[o].levels.size(), 0);
    link_[o].resize(operands_[o].levels.size() + 1);
    buffered_[o].assign(operands_[o].levels.size(), 0);
  }
  once_.reserve(flows_.size());
}

void MappingEvaluator::tabulate(int o, int l) {
  Level& level = operands_[o].levels[l];
  const LayerOperand& operand = layer_.operands[o];
  // Whether a memory at or below this level serves the array dimension: the unrolling then lies below it.
  auto below = [&](const Unrolling& u, int top) {
    for (int i = 0; i <= top; ++i)
      if (contains(core_.memories[operands_[o].levels[i].memory].served_dimensions, core_.dimensions[u.dimension]))
        return true;
    return false;
  };
  double instances = 1;
  for (const Unrolling& u : spatial_.unrollings) {
    if (below(u, l)) continue;
    instances *= u.units();
    level.spatial_reduction_above = level.spatial_reduction_above || layer_.reduces(u.loop);
  }
  bool uneven = options_.count_uneven_tiles;
  auto rounded = [&](double count) { return uneven ? count : std::nearbyint(count); };
  level.instances = rounded(instances);
  for (bool whole : {false, true}) {
    Extent lower(layer_.loops.size()), upper(layer_.loops.size()), inside(layer_.loops.size());
    for (const Unrolling& u : spatial_.unrollings) {
      bool cut = whole && !uneven;
      if (!below(u, l - 1)) lower.unroll(u, cut);
      if (!below(u, l)) upper.unroll(u, cut);
      if (below(u, l)) inside.unroll(u, cut);
    }
    (whole ? level.fan_out_whole : level.fan_out) =
        rounded(value(elements(operand, lower, uneven)) / value(elements(operand, upper, uneven)));
    std::vector<double>& held = whole ? level.held_whole : level.held;
    held.resize(product_.size());
    const int widths[] = {operand.bits, layer_.partial_bits};
    if (!whole)
      for (int w = 0; w <= operands_[o].output; ++w) {
        level.bits[w].resize(product_.size());
        level.weighed_bits[w].resize(product_.size());
      }
    Extent extent = inside;
    for (size_t set = 0; set < product_.size(); ++set) {
      extent.numerator = inside.numerator;
      for (size_t i = 0; i < loops_.size(); ++i)
        if (set >> i & 1) extent.numerator[loops_[i].loop] *= loops_[i].size;
      std::pair<double, double> fraction = elements(operand, extent, uneven);
      held[set] = rounded(value(fraction));
      if (whole) continue;
      for (int w = 0; w <= operands_[o].output; ++w) {
        // Whole numbers until the division, so that what is equal compares equal.
        double bits = fraction.first * widths[w];
        level.bits[w][set] = bits / fraction.second;
        level.weighed_bits[w][set] = product_[(product_.size() - 1) ^ set] * bits / fraction.second;
      }
    }
  }
}

void MappingEvaluator::add_ports() {
  std::vector<std::vector<Flow>> by_port;
  flow_at_.resize(operands_.size());
  auto add = [&](int o, int link, int level, Direction direction, const char* name) {
    const Memory& memory = core_.memories[operands_[o].levels[level].memory];
    const std::string& operand = links_.at(layer_.operands[o].name);
    for (const Port& port : memory.ports) {
      for (const std::pair<std::string, std::string>& allocated : port.allocation) {
        if (allocated.first != operand || allocated.second != name) continue;
        size_t at = 0;
        while (at < ports_.size() && ports_[at].port != &port) ++at;
        if (at == ports_.size()) {
          PortState state;
          state.port = &port;
          state.memory = operands_[o].levels[level].memory;
          state.bandwidth = static_cast<double>(port.bandwidth_max);
          bool first = false, second = false;
          for (const std::pair<std::string, std::string>& other : port.allocation) {
            first = first || other.first == "I1";
            second = second || other.first == "I2";
          }
          state.both_inputs = first && second;
          ports_.push_back(state);
          by_port.emplace_back();
        }
        Flow flow;
        flow.operand = o;
        flow.link = link;
        flow.port = static_cast<int>(at);
        flow.place = static_cast<int>(&allocated - port.allocation.data());
        flow.direction = direction;
        by_port[at].push_back(flow);
        operands_[o].levels[level].port[direction] = static_cast<int>(at);
        return;
      }
    }
    throw Refusal(
        {"no-port",
         "memory " + memory.name + " of core " + core_.name + " has no port for \"" + operand + ", " + name + "\"",
         core_.name, "", "add it to the allocation of one of the memory's ports"});
  };
  // The output needs its read ports only where partial sums come back; a core without them cannot do that.
  for (int o = 0; o < operand_count(); ++o) {
    bool output = operands_[o].output;
    for (int link = 0; link < level_count(o); ++link) {
      bool in = !output || reducing_ != 0;
      if (in) add(o, link, link, tl, "tl");
      if (output) add(o, link, link, fl, "fl");
      if (in && link > 0) add(o, link, link - 1, fh, "fh");
      if (output && link > 0) add(o, link, link - 1, th, "th");
    }
    flow_at_[o].resize(operands_[o].levels.size());
  }
  for (size_t p = 0; p < ports_.size(); ++p) {
    ports_[p].first = static_cast<int>(flows_.size());
    std::sort(by_port[p].begin(), by_port[p].end(), [](const Flow& a, const Flow& b) { return a.place < b.place; });
    for (const Flow& flow : by_port[p]) {
      flow_at_[flow.operand][flow.link][flow.direction] = static_cast<int>(flows_.size());
      flows_.push_back(flow);
    }
    ports_[p].end = static_cast<int>(flows_.size());
  }
}

bool MappingEvaluator::may_fit() {
  for (const MemoryState& memory : memories_) {
    double bits = 0;
    for (const Share& share : memory.shares) {
      const Operand& operand = operands_[share.operand];
      const Level& level = operand.levels[share.level];
      size_t set = share.top ? product_.size() - 1 : 0;
      bits += operand.output ? std::min(level.bits[0][set], level.bits[1][set]) : level.bits[0][set];
    }
    overflowing_ = static_cast<int>(&memory - memories_.data());
    if (bits > memory.size) return false;
  }
  return true;
}

bool MappingEvaluator::evaluate(const std::vector<int>& order) {
  order_ = order;
  prefix_[0] = 0;
  for (size_t i = 0; i < order.size(); ++i) prefix_[i + 1] = prefix_[i] | uint32_t{1} << order[i];
  if (!allocate()) return false;
  merge_down();
  set_links();
  set_windows();
  set_stall();
  set_loads();
  return true;
}

// Hands the loops to the memories from the bottom up, each operand on its own: of all combinations that fit a memory,
// the one with the least sum of (iterations above x bits held), the last of equals. An output counts at its partial
// width while summands are left above or for the loops handed out now.
bool MappingEvaluator::allocate() {
  const int loops = static_cast<int>(order_.size());
  const uint32_t all = prefix_[loops];
  allocated_ = {};
  for (size_t m = 0; m < memories_.size(); ++m) {
    const MemoryState& memory = memories_[m];
    const double size = memory.size;
    // Choices of up to three operands; an absent one has a single empty choice.
    double bits[3][kMaxTemporalLoops + 1], cost[3][kMaxTemporalLoops + 1];
    int from[3], choices[3];
    const int sharing = static_cast<int>(memory.shares.size());
    // The last operand varies fastest: it is the last of the three.
    const int shift = 3 - sharing;
    for (int slot = 0; slot < shift; ++slot) {
      choices[slot] = 1;
      bits[slot][0] = cost[slot][0] = 0;
    }
    for (int s = 0; s < sharing; ++s) {
      const Share& share = memory.shares[s];
      const Operand& operand = operands_[share.operand];
      const Level& level = operand.levels[share.level];
      int start = share.level > 0 ? ends_[share.operand][share.level - 1] : 0, slot = s + shift;
      bool partial =
          operand.output && (level.spatial_reduction_above || (!share.top && (reducing_ & (all ^ prefix_[start]))));
      if (share.top) {
        from[slot] = loops;
        choices[slot] = 1;
        bits[slot][0] = level.bits[partial][all];
        cost[slot][0] = 0;
        continue;
      }
      const double* stored = level.bits[partial].data();
      const double* weighed = level.weighed_bits[partial].data();
      from[slot] = start;
      choices[slot] = loops - start + 1;
      for (int i = 0; i < choices[slot]; ++i) {
        bits[slot][i] = stored[prefix_[start + i]];
        cost[slot][i] = weighed[prefix_[start + i]];
      }
    }
    double least = std::numeric_limits<double>::infinity();
    std::array<int, 3> best = {-1, -1, -1};
    // Bits grow with every loop: once a choice does not fit, later ones do not.
    for (int i = 0; i < choices[0] && bits[0][i] <= size; ++i) {
      for (int j = 0; j < choices[1] && bits[0][i] + bits[1][j] <= size; ++j) {
        double held = bits[0][i] + bits[1][j], sum = cost[0][i] + cost[1][j];
        for (int k = 0; k < choices[2] && held + bits[2][k] <= size; ++k) {
          if (sum + cost[2][k] > least) continue;
          if (options_.leave_room_above) {
            const int choice[3] = {i, j, k};
            for (int s = 0; s < sharing; ++s)
              allocated_[memory.shares[s].operand] = from[s + shift] + choice[s + shift];
            if (!room_above(m + 1)) continue;
          }
          least = sum + cost[2][k];
          best = {i, j, k};
        }
      }
    }
    if (best[0] < 0) {
      overflowing_ = static_cast<int>(m);
      return false;
    }
    for (int s = 0; s < sharing; ++s) {
      int operand = memory.shares[s].operand;
      allocated_[operand] = ends_[operand][memory.shares[s].level] = from[s + shift] + best[s + shift];
    }
  }
  return true;
}

// Whether the memories from this one on hold at least what the loops handed out so far make of their operands. Handing
// out more only lowers an output's width, so what holds once goes on holding.
bool MappingEvaluator::room_above(size_t first) const {
  const uint32_t all = prefix_[order_.size()];
  for (size_t m = first; m < memories_.size(); ++m) {
    double bits = 0;
    for (const Share& share : memories_[m].shares) {
      const Operand& operand = operands_[share.operand];
      const Level& level = operand.levels[share.level];
      uint32_t below = prefix_[allocated_[share.operand]];
      bool partial = operand.output && (level.spatial_reduction_above || (!share.top && (reducing_ & (all ^ below))));
      bits += level.bits[partial][share.top ? all : below];
    }
    if (bits > memories_[m].size) return false;
  }
  return true;
}

// The innermost irrelevant loops of a level run below it: its data is not exchanged for them.
void MappingEvaluator::merge_down() {
  for (int o = 0; o < operand_count(); ++o) {
    uint32_t indexing = operands_[o].relevant | operands_[o].partial;
    std::vector<int>& ends = ends_[o];
    // From the bottom up, each within the level above as allocated.
    for (size_t l = 0; l + 1 < ends.size(); ++l)
      while (ends[l] < ends[l + 1] && !(indexing >> order_[ends[l]] & 1)) ++ends[l];
  }
}

void MappingEvaluator::set_links() {
  const int loops = static_cast<int>(order_.size());
  const uint32_t all = prefix_[loops];
  for (int o = 0; o < operand_count(); ++o) {
    const Operand& operand = operands_[o];
    uint32_t indexing = operand.relevant | operand.partial;
    for (int l = 0; l <= level_count(o); ++l) {
      Link& link = link_[o][l];
      int end = 0;
      if (l > 0) {
        end = ends_[o][l - 1];
      } else if (!operand.output) {
        while (end < loops && !(indexing >> order_[end] & 1)) ++end;
      }
      link.below = prefix_[end];
      link.period = product_[link.below];
      link.count = std::floor(iterations_ / link.period);
      link.partial = operand.output && (reducing_ & (all ^ prefix_[end]));
      link.bits = link.partial ? layer_.partial_bits : operand.bits;
    }
  }
}

// Iterations of the outermost loops below a link that do not index the operand: its data stay for so long.
double MappingEvaluator::top_run(int operand, int link) const {
  uint32_t indexing = operands_[operand].relevant | operands_[operand].partial;
  int end = ends_[operand][link - 1], from = link > 1 ? ends_[operand][link - 2] : 0;
  double run = 1;
  for (; end > from && !(indexing >> order_[end - 1] & 1); --end)
    run *= static_cast<double>(loops_[order_[end - 1]].size);
  return run;
}

void MappingEvaluator::set_windows() {
  for (const MemoryState& memory : memories_) {
    std::array<double, 3> utilisation{};
    double sum = 0;
    for (size_t s = 0; s < memory.shares.size(); ++s) {
      const Share& share = memory.shares[s];
      const Operand& operand = operands_[share.operand];
      const Link& above = link_[share.operand][share.level + 1];
      int end = ends_[share.operand][share.level];
      int from = share.level > 0 ? ends_[share.operand][share.level - 1] : 0;
      double top = 1;
      for (; end > from && (operand.relevant >> order_[end - 1] & 1); --end)
        top *= static_cast<double>(loops_[order_[end - 1]].size);
      double stored = operand.levels[share.level].held[above.below] * above.bits;
      utilisation[s] = std::floor(stored / top) / memory.size;
      sum += utilisation[s];
    }
    bool all = sum <= 0.5;
    for (size_t s = 0; s < memory.shares.size(); ++s) {
      bool own = all || utilisation[s] <= 1 - sum;
      if (!all && own) sum += utilisation[s];
      buffered_[memory.shares[s].operand][memory.shares[s].level] = own;
    }
  }
  for (int o = 0; o < operand_count(); ++o) {
    link_[o][0].window = 1;
    for (int l = 1; l < level_count(o); ++l) {
      Link& link = link_[o][l];
      if (buffered_[o][l - 1]) {
        link.window = link.period;
        continue;
      }
      link.window = std::floor(link.period / top_run(o, l));
    }
  }
  for (Flow& flow : flows_) {
    const Operand& operand = operands_[flow.operand];
    const Link& link = link_[flow.operand][flow.link];
    bool back = operand.output && (flow.direction == tl || flow.direction == fh);
    flow.active = !back || link.partial;
    double amount = flow.link > 0 ? operand.levels[flow.link - 1].held_whole[link.below] : 1;
    if (flow.direction == tl || flow.direction == fl) amount *= operand.levels[flow.link].fan_out_whole;
    flow.bits = amount * link.bits;
    flow.cycles = std::ceil(flow.bits / ports_[flow.port].bandwidth);
    flow.window = link.window;
    flow.period = link.period;
    flow.count = link.count;
  }
}

void MappingEvaluator::set_stall() {
  stall_ = 0;
  for (const PortState& port : ports_) stall_ = std::max(stall_, stall_of(port));
}

double MappingEvaluator::stall_of(const PortState& port) const {
  int flows = 0;
  double positive = 0, others = 0, windows = 0, longest = 0, longest_count = 0, open = -1;
  for (int f = port.first; f < port.end; ++f) {
    const Flow& flow = flows_[f];
    if (!flow.active) continue;
    ++flows;
    double stall = (flow.cycles - flow.window) * (flow.count - 1);
    (stall > 0 ? positive : others) += stall;
    windows += flow.window * (flow.count - 1);
    if (flow.period > longest) {
      longest = flow.period;
      longest_count = flow.count;
    }
    if (flow.window == flow.period) open = flow.period * flow.count;
  }
  if (flows > 1) {
    if (open < 0) open = covered(port) * longest_count;
    positive += std::max(0.0, others + windows - open);
  }
  return positive;
}

// Cycles of the longest period in which the window of one of the port's transfers is open. Windows stand at the end of
// their periods, and periods divide each other: all are products of the order's first loops.
double MappingEvaluator::covered(const PortState& port) const {
  constexpr int kMost = 8;  // a memory's port: two directions of each input, four of the output
  struct Window {
    double period, open, covered;  // covered: cycles of the period, by this window and those of shorter periods
  };
  std::array<Window, kMost> windows;
  int count = 0;
  for (int f = port.first; f < port.end && count < kMost; ++f) {
    if (!flows_[f].active) continue;
    int at = count++;
    for (; at > 0 && windows[at - 1].period > flows_[f].period; --at) windows[at] = windows[at - 1];
    windows[at] = {flows_[f].period, flows_[f].window, 0};
  }
  for (int w = 0; w < count; ++w) {
    double sum = windows[w].open, rest = windows[w].period - windows[w].open;
    for (int v = w - 1; v >= 0 && rest > 0; --v) {
      double full = std::floor(rest / windows[v].period);
      rest -= full * windows[v].period;
      double open = std::max(0.0, rest - (windows[v].period - windows[v].open));
      rest -= open;
      sum += full * windows[v].covered + open;
    }
    windows[w].covered = sum;
  }
  return count > 0 ? windows[count - 1].covered : 0;
}

// Transfers that happen once can run beside the computation as far as the port has bandwidth to spare; what is left of
// them delays begin and end.
void MappingEvaluator::reduce_single_transfers(const PortState& port) {
  double used = 0;
  once_.clear();
  for (int f = port.first; f < port.end; ++f) {
    Flow& flow = flows_[f];
    if (!flow.active) continue;
    bool comes_back = operands_[flow.operand].output && (flow.direction == tl || flow.direction == fh);
    if (comes_back && !options_.count_all_traffic) continue;
    if (flow.count > 1) {
      double bits = flow.bits / flow.period;
      used += options_.count_all_traffic ? bits : std::floor(bits);
      continue;
    }
    if (comes_back) continue;
    size_t at = once_.size();
    once_.push_back(&flow);
    for (; at > 0 && once_[at - 1]->cycles < flow.cycles; --at) std::swap(once_[at], once_[at - 1]);
  }
  double surplus = std::max(0.0, (port.bandwidth - used) / port.bandwidth * (iterations_ + stall_));
  auto floor = [&](const Flow& flow) {
    const Link& above = link_[flow.operand][1];
    return std::ceil(operands_[flow.operand].levels[0].held_whole[above.below] * above.bits / port.bandwidth);
  };
  for (size_t i = 0; i < once_.size(); ++i) {
    double off = once_[i]->cycles - floor(*once_[i]), positions = static_cast<double>(i + 1);
    bool enough = surplus >= off * positions;
    double less = enough ? off : surplus / positions;
    double spent = enough ? off * positions : surplus;
    if (options_.hold_floors) spent = 0;
    for (size_t j = 0; j <= i; ++j) {
      double here = less;
      if (options_.hold_floors) {
        here = std::min(less, std::max(0.0, once_[j]->cycles - floor(*once_[j])));
        spent += here;
      }
      once_[j]->cycles -= here;
    }
    if (!enough) break;
    surplus -= spent;
  }
}

void MappingEvaluator::set_loads() {
  for (const PortState& port : ports_) reduce_single_transfers(port);
  struct Parts {
    double shared = 0, half = 0, alone = 0;
  };
  std::array<Parts, 2> parts;
  int inputs = operand_count() - 1;
  for (int o = 0; o < inputs; ++o)
    for (int l = 1; l < level_count(o); ++l) {
      const Flow &lower = flow(o, l, fh), &upper = flow(o, l, tl);
      double cycles = std::max(lower.cycles, upper.cycles);
      bool below = ports_[lower.port].both_inputs, above = ports_[upper.port].both_inputs;
      if (below && above) {
        parts[o].shared += cycles;
      } else if (below || above) {
        parts[o].half = options_.add_half_shared ? parts[o].half + cycles : cycles;
      } else {
        parts[o].alone += cycles;
      }
    }
  auto after = [&](const Parts& first, const Parts& second) {
    if (options_.add_half_shared)
      return first.shared + second.shared + first.half + second.half + std::max(first.alone, second.alone);
    return first.shared + std::max(second.shared + second.half + second.alone, first.half + first.alone);
  };
  onload_ = std::min(after(parts[0], parts[1]), after(parts[1], parts[0]));
  offload_ = 0;
  for (int l = 1; l < level_count(inputs); ++l)
    offload_ += std::max(flow(inputs, l, th).cycles, flow(inputs, l, fl).cycles);
}

// Accesses of the memory at the link's upper end (tl, fl) or lower end (fh, th).
double MappingEvaluator::words(int o, int l, Direction direction) const {
  const Operand& operand = operands_[o];
  const Link& link = link_[o][l];
  bool upper = direction == tl || direction == fl;
  if (operand.output && (direction == tl || direction == fh) && !link.partial) return 0;
  const Port& port = *ports_[operand.levels[upper ? l : l - 1].port[direction]].port;
  double low = static_cast<double>(port.bandwidth_min), high = static_cast<double>(port.bandwidth_max);
  double amount = l > 0 ? operand.levels[l - 1].held[link.below] : 1;
  if (upper) amount *= operand.levels[l].fan_out;
  double instances = operand.levels[upper ? l : l - 1].instances;
  double words = std::ceil(amount * link.bits / low) * (low / high) * link.count * instances;
  return options_.count_partial_words ? words : std::floor(words);
}

double MappingEvaluator::energy() const {
  double sum = mac_energy_;
  for (int o = 0; o < operand_count(); ++o) {
    bool output = operands_[o].output;
    for (int l = 0; l < level_count(o); ++l) {
      const Memory& memory = core_.memories[operands_[o].levels[l].memory];
      bool top = l + 1 == level_count(o);
      double reads = words(o, l, tl), writes = output ? words(o, l, fl) : 0;
      if (!top && output) reads += words(o, l + 1, th);
      if (!top) writes += words(o, l + 1, fh);
      sum += reads * memory.read_cost + writes * memory.write_cost;
    }
  }
  return sum;
}

int64_t MappingEvaluator::top_bandwidth(int operand) const {
  int top = level_count(operand) - 1;
  if (top < 1) return 0;  // what the array reads is not held back
  const Flow& moved = flow(operand, top, operands_[operand].output ? fl : tl);
  return static_cast<int64_t>(std::floor(moved.bits / moved.period)) * static_cast<int64_t>(top_run(operand, top));
}

double MappingEvaluator::top_load(int tiles) const {
  int most = 0;
  for (int o = 0; o < operand_count(); ++o) most = std::max(most, level_count(o));
  double asked = 0, bandwidth = 0;
  bool broadcast = false;  // counted: the input that all tiles share
  for (int o = 0; o < operand_count(); ++o) {
    int top = level_count(o) - 1;
    if (top + 1 < most || top < 1) continue;
    double run = top_run(o, top), own = 0;
    for (Direction direction : {tl, fl}) {
      if (direction == fl && !operands_[o].output) continue;
      const Flow& moved = flow(o, top, direction);
      if (!moved.active) continue;
      own += std::floor(moved.bits / moved.period) * run;
      // What loading takes of the time in which the array computes.
      double full = std::ceil(moved.bits / ports_[moved.port].bandwidth);
      if (moved.count == 1)
        own += std::ceil((full - moved.cycles) / (iterations_ + stall_) * ports_[moved.port].bandwidth);
      bandwidth = std::max(bandwidth, ports_[moved.port].bandwidth);
    }
    bool shared = !operands_[o].output && !broadcast;
    broadcast = broadcast || shared;
    asked += own * (shared ? 1 : tiles);
  }
  return bandwidth > 0 ? std::ceil(asked / bandwidth) : 1;
}

LayerCost MappingEvaluator::explain() const {
  LayerCost cost;
  int64_t macs = layer_.macs(), pes = std::max<int64_t>(core_.pes(), 1);
  cost.ideal_cycles = static_cast<double>(macs / pes + (macs % pes != 0));
  cost.temporal_cycles = iterations_;
  cost.stall = stall_;
  cost.onload = onload_;
  cost.offload = offload_;
  cost.mac_energy = mac_energy_;
  cost.energy = energy();
  for (const PortState& port : ports_)
    if (double stall = stall_of(port); stall > 0) cost.stalls.push_back({port.memory, port.port->name, stall});
  cost.spatial = spatial_;
  for (int loop : order_) cost.order.push_back(loops_[loop]);
  for (int o = 0; o < operand_count(); ++o) {
    OperandCost operand;
    operand.name = layer_.operands[o].name;
    operand.memory_operand = links_.at(operand.name);
    bool output = operands_[o].output;
    std::vector<char> taken(spatial_.unrollings.size(), 0);
    for (int l = 0; l < level_count(o); ++l) {
      const Memory& memory = core_.memories[operands_[o].levels[l].memory];
      LevelCost level;
      level.memory = operands_[o].levels[l].memory;
      for (size_t u = 0; u < taken.size(); ++u) {
        if (taken[u] || !contains(memory.served_dimensions, core_.dimensions[spatial_.unrollings[u].dimension]))
          continue;
        taken[u] = 1;
        level.spatial.push_back(spatial_.unrollings[u]);
      }
      level.temporal.assign(cost.order.begin() + (l > 0 ? ends_[o][l - 1] : 0), cost.order.begin() + ends_[o][l]);
      const Link& above = link_[o][l + 1];
      level.bits = operands_[o].levels[l].held[above.below] * above.bits;
      level.double_buffered = buffered_[o][l] != 0;
      bool top = l + 1 == level_count(o);
      level.reads_to_low = words(o, l, tl);
      if (output) level.writes_by_low = words(o, l, fl);
      if (!top && output) level.reads_to_high = words(o, l + 1, th);
      if (!top) level.writes_by_high = words(o, l + 1, fh);
      level.energy = (level.reads_to_low + level.reads_to_high) * memory.read_cost +
                     (level.writes_by_low + level.writes_by_high) * memory.write_cost;
      operand.levels.push_back(std::move(level));
    }
    operand.top_bandwidth = top_bandwidth(o);
    cost.operands.push_back(std::move(operand));
  }
  return cost;
}

}  // namespace monet
