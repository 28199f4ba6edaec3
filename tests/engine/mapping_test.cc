// The mapping search against the plain enumerator (plain_mapping.h) on random layers and cores, and its parts by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <set>

#include "engine/cost/layer_cost.h"
#include "tests/engine/plain_mapping.h"

namespace monet {
namespace {

// std::mt19937 gives the same numbers everywhere; the standard's distributions do not.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  int64_t below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  int64_t in(int64_t low, int64_t high) { return low + below(high - low + 1); }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T>
  const T& of(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

 private:
  std::mt19937 engine_;
};

LayerOperand operand(const std::string& name, std::vector<int> loops, int bits) {
  LayerOperand result;
  result.name = name;
  result.loops = std::move(loops);
  result.bits = bits;
  return result;
}

WindowAxis window(Random& random, const Layer& layer, int point, int tap) {
  WindowAxis axis;
  axis.point = point;
  axis.tap = tap;
  axis.stride = random.in(1, 3);
  axis.dilation = random.in(1, 3);
  axis.size = int64_t{1} << 40;
  axis.size = window_span(axis, layer.loops[point].size, layer.loops[tap].size);
  axis.size = std::max<int64_t>(1, axis.size - random.below(4));  // padding
  return axis;
}

// A convolution in one of its roles, a product of matrices, a sum, a pooling with a weight of 0 bits.
Layer random_layer(Random& random) {
  static const std::vector<int64_t> kSizes = {2, 3, 4, 5, 6, 7, 8, 9, 12, 14, 16, 20, 25, 30, 32};
  static const std::vector<int> kBits = {4, 8, 16};
  Layer layer;
  layer.name = "random";
  auto loops = [&](const std::vector<std::string>& dims) {
    for (const std::string& dim : dims)
      layer.loops.push_back({dim, random.chance(50) ? 1 : dim[0] == 'F' ? random.in(2, 5) : random.of(kSizes)});
  };
  int bits = random.of(kBits), output = random.of(kBits);
  layer.partial_bits = output * static_cast<int>(random.in(1, 2));
  switch (random.below(5)) {
    case 0: {
      loops({"B", "D", "C", "K"});
      layer.operands = {operand("I", {0, 1, 2}, bits), operand("W", {0, 2, 3}, bits), operand("O", {0, 1, 3}, output)};
      break;
    }
    case 1: {  // sum
      loops({"B", "G", "OY", "OX"});
      layer.operands = {operand("W", {0, 1, 2, 3}, bits), operand("I", {0, 1, 2, 3}, bits),
                        operand("O", {0, 1, 2, 3}, output)};
      break;
    }
    case 2: {  // pooling
      loops({"B", "G", "OY", "OX", "FX", "FY"});
      layer.operands = {operand("W", {4, 5}, random.chance(50) ? 0 : bits), operand("I", {0, 1}, bits),
                        operand("O", {0, 1, 2, 3}, output)};
      layer.operands[1].windows = {window(random, layer, 3, 4), window(random, layer, 2, 5)};
      break;
    }
    default: {
      loops({"K", "G", "OX", "OY", "C", "FX", "FY"});
      LayerOperand input = operand("I", {1, 4}, bits), weight = operand("W", {0, 1, 4, 5, 6}, bits);
      LayerOperand result = operand("O", {0, 1, 2, 3}, output);
      input.windows = {window(random, layer, 2, 5), window(random, layer, 3, 6)};
      int64_t role = random.below(3);
      if (role == 1) std::swap(input, result);
      if (role == 2) std::swap(weight, result);
      layer.operands = {input, weight, result};
      for (size_t i = 0; i < 3; ++i) layer.operands[i].name = std::string("IWO").substr(i, 1);
      break;
    }
  }
  return layer;
}

Core random_core(Random& random) {
  static const std::vector<int64_t> kBandwidths = {4, 8, 12, 16, 32, 64, 100, 128, 512};
  Core core;
  core.name = "random";
  core.unit_energy = 0.04;
  int64_t dimensions = random.in(1, 3);
  for (int64_t d = 1; d <= dimensions; ++d) {
    core.dimensions.push_back("D" + std::to_string(d));
    core.sizes.push_back(random.of(std::vector<int64_t>{1, 2, 3, 4, 8}));
  }
  int64_t levels = random.in(1, 4);
  std::vector<std::string> served;
  for (int64_t m = 0; m < levels; ++m) {
    bool top = m + 1 == levels;
    Memory memory;
    memory.name = "m" + std::to_string(m);
    std::vector<std::string> operands = {"I1", "I2", "O"};
    for (size_t i = 3; i > 1; --i)
      std::swap(operands[i - 1], operands[static_cast<size_t>(random.below(static_cast<int64_t>(i)))]);
    if (!top) operands.resize(static_cast<size_t>(random.in(1, 3)));
    memory.operands = operands;
    memory.size = top ? (random.chance(90) ? int64_t{1} << 40 : 60000) : int64_t{1} << random.in(4, 16);
    memory.read_cost = static_cast<double>(random.in(1, 1000)) / 64;
    memory.write_cost = static_cast<double>(random.in(1, 1000)) / 64;
    for (const std::string& dimension : core.dimensions)
      if (top || std::count(served.begin(), served.end(), dimension) || random.chance(40))
        memory.served_dimensions.push_back(dimension);
    // Every direction on one of a few ports.
    int64_t ports = random.in(1, 4);
    for (int64_t p = 0; p < ports; ++p) {
      Port port;
      port.name = "p" + std::to_string(p);
      port.bandwidth_max = random.of(kBandwidths);
      port.bandwidth_min =
          random.chance(50) ? port.bandwidth_max : std::max<int64_t>(1, port.bandwidth_max / random.in(1, 8));
      memory.ports.push_back(port);
    }
    for (const std::string& name : operands)
      for (const char* direction : {"fh", "tl", "fl", "th"})
        memory.ports[static_cast<size_t>(random.below(ports))].allocation.emplace_back(name, direction);
    core.memories.push_back(std::move(memory));
  }
  return core;
}

LayerMapping random_mapping(Random& random, const Layer& layer, const Core& core) {
  LayerMapping mapping;
  mapping.links = default_links(layer);
  for (const std::string& dimension : core.dimensions) {
    int64_t loops = random.in(0, 2);
    if (mapping.spatial.empty()) loops = std::max<int64_t>(loops, 1);  // an empty dataflow is a generated one
    for (int64_t i = 0; i < loops; ++i)
      mapping.spatial[dimension].emplace_back(random.chance(90) ? random.of(layer.loops).dim : "Q", random.in(1, 8));
  }
  return mapping;
}

bool close(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)); }

// The least (first, second) figures of all orders that fit, and how many do.
struct PlainBest {
  std::pair<double, double> figure = {std::numeric_limits<double>::infinity(), 0};
  int fitting = 0, tried = 0;
};

PlainBest plain_best(const Layer& layer, const Core& core, const LayerMapping& mapping, const CostOptions& options) {
  plain::Mapping evaluator(layer, core, mapping.spatial, mapping.links, options);
  PlainBest best;
  for (const std::vector<TemporalLoop>& order :
       plain::orders(layer, evaluator.remaining(), mapping.temporal_ordering, options.factor_limit)) {
    ++best.tried;
    plain::Cost cost = evaluator.cost(order);
    if (!cost.fits) continue;
    ++best.fitting;
    std::pair<double, double> figure = {cost.total2, cost.energy};
    if (options.objective == Objective::energy) figure = {cost.energy, cost.total2};
    if (options.objective == Objective::edp) figure = {cost.energy * cost.total2, cost.total2};
    best.figure = std::min(best.figure, figure);
  }
  return best;
}

CostOptions random_options(Random& random) {
  CostOptions options;
  options.objective = random.of(std::vector<Objective>{Objective::latency, Objective::energy, Objective::edp});
  options.hold_floors = random.chance(30);
  options.add_half_shared = random.chance(30);
  return options;
}

// One order of each of thousands of random cases: everything that is explained.
TEST(Mapping, EveryFigureOfAnOrderIsAsPlain) {
  Random random(1);
  int compared = 0, overflowed = 0;
  for (int i = 0; i < 10000; ++i) {
    Layer layer = random_layer(random);
    Core core = random_core(random);
    LayerMapping mapping = random_mapping(random, layer, core);
    CostOptions options = random_options(random);
    plain::Mapping evaluator(layer, core, mapping.spatial, mapping.links, options);
    std::vector<TemporalLoop> order = plain::factors(evaluator.remaining(), static_cast<int>(random.in(1, 9)));
    for (size_t k = order.size(); k > 1; --k)
      std::swap(order[k - 1], order[static_cast<size_t>(random.below(static_cast<int64_t>(k)))]);
    plain::Cost expected = evaluator.cost(order);
    SCOPED_TRACE(i);
    if (!expected.fits) {
      ++overflowed;
      EXPECT_THROW(cost_order(layer, core, mapping, order, options), Refusal);
      continue;
    }
    ++compared;
    LayerCost cost = cost_order(layer, core, mapping, order, options);
    EXPECT_EQ(cost.stall, expected.stall);
    EXPECT_EQ(cost.onload, expected.onload);
    EXPECT_EQ(cost.offload, expected.offload);
    EXPECT_EQ(cost.cycles(), expected.total2);
    EXPECT_TRUE(close(cost.energy, expected.energy)) << cost.energy << " " << expected.energy;
    for (size_t o = 0; o < cost.operands.size(); ++o)
      for (size_t l = 0; l < cost.operands[o].levels.size(); ++l) {
        const LevelCost& level = cost.operands[o].levels[l];
        EXPECT_EQ(level.temporal, expected.levels[o][l]);
        EXPECT_EQ(level.reads_to_low, expected.words[o][l].read_to_low);
        EXPECT_EQ(level.writes_by_low, expected.words[o][l].written_by_low);
        EXPECT_EQ(level.reads_to_high, expected.words[o][l].read_to_high);
        EXPECT_EQ(level.writes_by_high, expected.words[o][l].written_by_high);
      }
    if (HasFailure()) return;
  }
  std::printf("%d orders equal, %d fit neither\n", compared, overflowed);
  EXPECT_GT(compared, 5000);
  EXPECT_GT(overflowed, 100);
}

TEST(Mapping, SearchFindsWhatTryingEveryOrderFinds) {
  Random random(2);
  int compared = 0, refused = 0, tried = 0;
  for (int i = 0; i < 2500; ++i) {
    Layer layer = random_layer(random);
    Core core = random_core(random);
    LayerMapping mapping = random_mapping(random, layer, core);
    CostOptions options = random_options(random);
    options.factor_limit = static_cast<int>(random.in(1, 4));
    if (random.chance(30))
      for (int64_t f = random.in(1, 3); f > 0; --f)
        mapping.temporal_ordering.push_back({random.of(layer.loops).dim, 0});
    PlainBest expected = plain_best(layer, core, mapping, options);
    tried += expected.tried;
    SCOPED_TRACE(i);
    if (expected.fitting == 0) {
      ++refused;
      EXPECT_THROW(cost_layer(layer, core, mapping, options), Refusal);
      continue;
    }
    ++compared;
    LayerCost cost = cost_layer(layer, core, mapping, options);
    EXPECT_EQ(cost.orders, expected.tried);
    double figure = options.objective == Objective::latency  ? cost.cycles()
                    : options.objective == Objective::energy ? cost.energy
                                                             : cost.cycles() * cost.energy;
    EXPECT_TRUE(close(figure, expected.figure.first)) << figure << " " << expected.figure.first;
    double second = options.objective == Objective::latency ? cost.energy : cost.cycles();
    EXPECT_TRUE(close(second, expected.figure.second)) << second << " " << expected.figure.second;
    if (HasFailure()) return;
  }
  std::printf("%d searches equal over %d orders, %d fit in none\n", compared, tried, refused);
  EXPECT_GT(compared, 1500);
}

}  // namespace
}  // namespace monet
