// The mapping search against the plain enumerator (plain_mapping.h) on random layers and cores, and its parts by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <set>

#include "engine/cost/layer_cost.h"
#include "tests/engine/plain_mapping.h"
#include "tests/engine/slow_build.h"

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

WindowedAxis window(Random& random, const Layer& layer, int point, int tap) {
  WindowedAxis axis;
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
  options.leave_room_above = random.chance(30);
  options.count_all_traffic = random.chance(30);
  options.count_partial_words = random.chance(30);
  options.count_uneven_tiles = random.chance(30);
  return options;
}

// One order of each of thousands of random cases: everything that is explained.
TEST(Mapping, EveryFigureOfAnOrderIsAsPlain) {
  Random random(1);
  const int cases = 10000 / kSlowBuild;
  int compared = 0, overflowed = 0;
  for (int i = 0; i < cases; ++i) {
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
  EXPECT_GT(compared, cases / 2);
  EXPECT_GT(overflowed, cases / 100);
}

TEST(Mapping, SearchFindsWhatTryingEveryOrderFinds) {
  Random random(2);
  const int cases = 2500 / kSlowBuild;
  int compared = 0, refused = 0, tried = 0;
  for (int i = 0; i < cases; ++i) {
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
  EXPECT_GT(compared, cases * 3 / 5);
}

// --- parts, by hand

Layer gemm(int64_t d, int64_t c, int64_t k) {
  Layer layer;
  layer.name = "gemm";
  layer.op = "Gemm";
  layer.loops = {{"B", 1}, {"C", c}, {"D", d}, {"K", k}};
  layer.operands = {operand("I", {0, 2, 1}, 8), operand("W", {0, 1, 3}, 8), operand("O", {0, 2, 3}, 8)};
  return layer;
}

// Registers for the output below one memory of everything, no port shared.
Core small_core(int64_t array, int64_t bits) {
  Core core;
  core.name = "small";
  core.unit_energy = 0.5;
  core.dimensions = {"D1", "D2"};
  core.sizes = {array, array};
  Memory registers, memory;
  registers.name = "registers";
  registers.size = 16;
  registers.read_cost = 1;
  registers.write_cost = 2;
  registers.operands = {"O"};
  for (const char* direction : {"fh", "tl", "fl", "th"})
    registers.ports.push_back({direction, Port::Type::read_write, 16, 16, {{"O", direction}}});
  memory.name = "memory";
  memory.size = bits;
  memory.read_cost = 10;
  memory.write_cost = 20;
  memory.operands = {"I1", "I2", "O"};
  memory.served_dimensions = {"D1", "D2"};
  for (const char* operand : {"I1", "I2", "O"})
    for (const char* direction : {"fh", "tl", "fl", "th"})
      memory.ports.push_back(
          {std::string(operand) + direction, Port::Type::read_write, 64, 64, {{operand, direction}}});
  core.memories = {registers, memory};
  return core;
}

LayerMapping unrolled(const std::string& first, const std::string& second, int64_t size) {
  LayerMapping mapping;
  mapping.spatial = {{"D1", {{first, size}}}, {"D2", {{second, size}}}};
  return mapping;
}

// D 4 x K 4 outputs on 2 x 2 PEs, C = 3: 12 iterations. Each PE keeps an output for the three of C.
TEST(Mapping, OutputStationaryProductByHand) {
  LayerCost cost = cost_layer(gemm(4, 3, 4), small_core(2, 1 << 20), unrolled("D", "K", 2));
  EXPECT_EQ(cost.temporal_cycles, 12);
  EXPECT_EQ(cost.ideal_cycles, 12);
  EXPECT_EQ(cost.stall, 0);
  EXPECT_EQ(cost.onload, 0);   // inputs are in the memory that feeds the array
  EXPECT_EQ(cost.offload, 1);  // four outputs of 8 bits, one word of 64
  EXPECT_EQ(cost.cycles(), 13);
  EXPECT_EQ(cost.mac_energy, 24);
  ASSERT_EQ(cost.operands.size(), 3u);
  const OperandCost& output = cost.operands[2];
  EXPECT_EQ(output.memory_operand, "O");
  EXPECT_EQ(output.levels[0].temporal, (std::vector<TemporalLoop>{{1, 3}}));
  EXPECT_TRUE(output.levels[0].spatial.empty());
  EXPECT_EQ(output.levels[1].spatial.size(), 2u);
  EXPECT_EQ(output.levels[0].reads_to_low, 48);  // partial sums, every MAC
  EXPECT_EQ(output.levels[0].writes_by_low, 48);
  EXPECT_EQ(output.levels[0].reads_to_high, 16);
  EXPECT_EQ(output.levels[0].writes_by_high, 0);  // nothing comes back
  EXPECT_EQ(output.levels[0].energy, (48 + 16) * 1 + 48 * 2);
  EXPECT_EQ(output.levels[1].writes_by_low, 4);
  EXPECT_EQ(output.levels[1].bits, 16 * 8);
  // Two elements a word; of the inputs one waits while the other's loop runs outside C.
  EXPECT_EQ(cost.operands[0].levels[0].reads_to_low, 12);
  EXPECT_EQ(cost.operands[1].levels[0].reads_to_low, 12);
  EXPECT_EQ(cost.energy, 24 + 64 + 96 + 4 * 20 + 12 * 10 + 12 * 10);
  EXPECT_EQ(cost.orders, 6);
}

TEST(Mapping, FixedOrderIsKept) {
  LayerMapping mapping = unrolled("D", "K", 2);
  mapping.temporal_ordering = {{"K", 0}, {"OX", 0}, {"D", 2}};
  LayerCost cost = cost_layer(gemm(4, 3, 4), small_core(2, 1 << 20), mapping);
  EXPECT_EQ(cost.order, (std::vector<TemporalLoop>{{3, 2}, {2, 2}, {1, 3}}));
  EXPECT_EQ(cost.orders, 1);
  mapping.temporal_ordering = {{"C", 2}};
  EXPECT_THROW(cost_layer(gemm(4, 3, 4), small_core(2, 1 << 20), mapping), Refusal);
}

std::string code_of(const Layer& layer, const Core& core, const LayerMapping& mapping,
                    const CostOptions& options = {}) {
  try {
    cost_layer(layer, core, mapping, options);
  } catch (const Refusal& refusal) {
    return refusal.problems()[0].code;
  }
  return "";
}

TEST(Mapping, WhatCannotBeMappedIsRefused) {
  LayerMapping mapping = unrolled("D", "K", 2);
  EXPECT_EQ(code_of(gemm(4, 3, 4), small_core(2, 1 << 20), mapping), "");
  EXPECT_EQ(code_of(gemm(4, 3, 4), small_core(2, 100), mapping), "no-mapping");
  Core core = small_core(2, 1 << 20);
  core.memories[1].operands = {"I1", "O"};
  EXPECT_EQ(code_of(gemm(4, 3, 4), core, mapping), "no-memory");
  core = small_core(2, 1 << 20);
  core.memories[1].ports.erase(core.memories[1].ports.begin() + 1);
  EXPECT_EQ(code_of(gemm(4, 3, 4), core, mapping), "no-port");
  mapping.links = {{"I", "I2"}};
  EXPECT_EQ(code_of(gemm(4, 3, 4), small_core(2, 1 << 20), mapping), "bad-mapping");
  CostOptions options;
  options.factor_limit = 30;
  EXPECT_EQ(code_of(gemm(64, 64, 64), small_core(2, 1 << 20), unrolled("D", "K", 2), options), "too-many-loops");
}

// 2 x 2 registers of 512 bits take all loops, 128 complete outputs of 8 bits, which the memory above cannot hold. It
// can hold 32 incomplete ones of 16 bits and a tile of each input: three loops of K.
TEST(Mapping, RoomIsLeftAboveWhenAsked) {
  Core core = small_core(2, 1 << 20);
  core.memories[0].size = 512;
  core.memories[1].size = 600;
  Memory top = core.memories[1];
  top.size = 1 << 20;
  core.memories.push_back(top);
  LayerMapping mapping = unrolled("D", "K", 2);
  mapping.temporal_ordering = {{"K", 0}, {"K", 0}, {"K", 0}, {"K", 0}, {"K", 0}, {"C", 0}};
  CostOptions options;
  EXPECT_EQ(code_of(gemm(2, 3, 64), core, mapping, options), "no-mapping");
  options.leave_room_above = true;
  LayerCost cost = cost_layer(gemm(2, 3, 64), core, mapping, options);
  EXPECT_EQ(cost.operands[2].levels[0].temporal.size(), 3u);
}

// Without a dataflow: two loops of three over the 4 x 4 array; C over the registers' own dimension is no worse than
// any.
TEST(Mapping, SpatialMappingsAreGenerated) {
  Layer layer = gemm(8, 2, 6);
  Core core = small_core(4, 1 << 20);
  std::vector<SpatialMapping> all = generate_spatial(layer, core);
  EXPECT_EQ(all.size(), 13u);  // 3 x 2 pairs, 3 + 3 alone, none
  EXPECT_EQ(all[0].temporal, (std::vector<int64_t>{1, 2, 2, 2}));
  EXPECT_TRUE(all.back().unrollings.empty());
  LayerCost generated = cost_layer(layer, core, {});
  LayerCost given = cost_layer(layer, core, unrolled("D", "K", 4));
  EXPECT_LE(generated.cycles(), given.cycles());
  core.dataflows = {{"D1", {{"C", 2}}}};
  EXPECT_EQ(cost_layer(layer, core, {}).temporal_cycles, 48);
}

TEST(Mapping, GeneratedMappingsOfManyDimensionsAreBounded) {
  Layer layer = gemm(7, 7, 7);
  for (int i = 0; i < 12; ++i) layer.loops.push_back({"X" + std::to_string(i), 7});
  Core core = small_core(4, 1 << 20);
  for (int d = 3; d <= 12; ++d) {
    core.dimensions.push_back("D" + std::to_string(d));
    core.sizes.push_back(2);
  }
  std::vector<SpatialMapping> all = generate_spatial(layer, core);
  EXPECT_LE(all.size(), 10'000u);
  EXPECT_EQ(all[0].unrollings.size(), 12u);
  EXPECT_EQ(all[0].unrollings[0].units(), 3.5);
}

TEST(Mapping, UnrollingsThatDoNotDivide) {
  Layer layer = gemm(14, 7, 5);
  Core core = small_core(4, 1 << 20);
  Dataflow dataflow = {{"D1", {{"D", 4}}}, {"D2", {{"K", 9}, {"C", 3}}}};
  SpatialMapping mapping = resolve(dataflow, layer, core);
  EXPECT_EQ(mapping.temporal, (std::vector<int64_t>{1, 7, 4, 2}));
  ASSERT_EQ(mapping.unrollings.size(), 3u);
  EXPECT_EQ(mapping.unrollings[0].units(), 3.5);
  EXPECT_EQ(mapping.unrollings[0].whole, 3);
  EXPECT_EQ(mapping.unrollings[1].units(), 2.5);  // capped by the array
  EXPECT_EQ(mapping.unrollings[2].units(), 1);    // no PE of D2 is left
  // One loop over both dimensions: 14 = 4 x 3.5 in one iteration.
  mapping = resolve({{"D1", {{"D", 4}}}, {"D2", {{"D", 4}}}}, layer, core);
  EXPECT_EQ(mapping.temporal[2], 1);
  EXPECT_EQ(mapping.unrollings[0].units(), 4);
  EXPECT_EQ(mapping.unrollings[1].units(), 3.5);
}

TEST(Mapping, FactorsAreMergedFromTheLoopThatHasMost) {
  auto sizes = [](const std::vector<int64_t>& iterations, int limit) {
    std::vector<std::pair<int, int64_t>> result;
    for (const TemporalLoop& loop : temporal_factors(iterations, limit)) result.emplace_back(loop.loop, loop.size);
    return result;
  };
  using Sizes = std::vector<std::pair<int, int64_t>>;
  EXPECT_EQ(sizes({12, 1, 7}, 6), (Sizes{{0, 2}, {0, 2}, {0, 3}, {2, 7}}));
  EXPECT_EQ(sizes({12, 1, 7}, 3), (Sizes{{0, 3}, {0, 4}, {2, 7}}));
  EXPECT_EQ(sizes({4, 4}, 3), (Sizes{{0, 4}, {1, 2}, {1, 2}}));  // of equals the first
  EXPECT_EQ(sizes({4, 9, 5}, 1), (Sizes{{0, 4}, {1, 9}, {2, 5}}));
  EXPECT_EQ(sizes({1, 1}, 6), Sizes{});
}

// Every distinct order once, as std::next_permutation counts them; ZigZag's first three of gemm_dx.
TEST(Mapping, OrdersAreAllDistinctOnes) {
  Random random(3);
  for (int i = 0; i < 300; ++i) {
    Layer layer = random_layer(random);
    std::vector<int64_t> iterations;
    for (size_t l = 0; l < layer.loops.size(); ++l)
      iterations.push_back(random.of(std::vector<int64_t>{1, 1, 2, 3, 4, 8, 12}));
    std::vector<FixedLoop> fixed;
    for (int64_t f = random.in(0, 2); f > 0; --f) fixed.push_back({random.of(layer.loops).dim, 0});
    std::set<std::vector<std::pair<int, int64_t>>> seen, expected;
    LoopOrders orders(layer, iterations, fixed, 5);
    int64_t count = 0;
    auto pairs = [](const std::vector<TemporalLoop>& loops) {
      std::vector<std::pair<int, int64_t>> result;
      for (const TemporalLoop& loop : loops) result.emplace_back(loop.loop, loop.size);
      return result;
    };
    do {
      ++count;
      std::vector<TemporalLoop> order;
      for (int loop : orders.order()) order.push_back(orders.loops()[loop]);
      seen.insert(pairs(order));
    } while (orders.next());
    for (const auto& order : plain::orders(layer, iterations, fixed, 5)) expected.insert(pairs(order));
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(count, static_cast<int64_t>(expected.size()));
  }
  LoopOrders orders(gemm(1, 1, 1), {1, 4, 1, 2}, {}, 6);
  std::vector<std::vector<int>> loops;
  do {
    loops.emplace_back();
    for (int loop : orders.order()) loops.back().push_back(orders.loops()[loop].loop);
  } while (orders.next());
  EXPECT_EQ(loops, (std::vector<std::vector<int>>{{3, 1, 1}, {1, 3, 1}, {1, 1, 3}}));
}

TEST(Mapping, CacheKnowsWhatMatters) {
  CostCache cache;
  Core core = small_core(2, 1 << 20);
  Layer layer = gemm(4, 3, 4);
  double cycles = cache.cost(layer, core, unrolled("D", "K", 2)).cycles();
  layer.name = "another";
  core.name = "another";
  EXPECT_EQ(cache.cost(layer, core, unrolled("D", "K", 2)).cycles(), cycles);
  EXPECT_EQ(cache.size(), 1u);
  cache.cost(layer, core, unrolled("K", "D", 2));
  core.memories[1].ports[3].bandwidth_max = 128;
  cache.cost(layer, core, unrolled("D", "K", 2));
  layer.operands[0].bits = 4;
  cache.cost(layer, core, unrolled("D", "K", 2));
  CostOptions options;
  options.hold_floors = true;
  cache.cost(layer, core, unrolled("D", "K", 2), options);
  EXPECT_EQ(cache.size(), 5u);
}

// --- mapping files

std::vector<std::string> problems_of(const std::string& text) {
  std::vector<std::string> fields;
  try {
    parse_mapping(text);
  } catch (const Refusal& refusal) {
    for (const Diagnostic& problem : refusal.problems()) fields.push_back(problem.node);
  }
  return fields;
}

TEST(MappingFile, EntriesAreFoundByNameThenOperator) {
  MappingFile file = parse_mapping(R"([
      {"name": "default", "spatial_mapping": {"D1": ["K, 8"], "D2": "C, 4"}},
      {"name": "Gemm", "memory_operand_links": {"I": "I2", "W": "I1", "O": "O"}, "core_allocation": [0],
       "intra_core_tiling": ["D, 8"], "inter_core_tiling": ["K, *"]},
      {"name": "fc", "temporal_ordering": [["K", 4], ["C", "*"]]}])");
  EXPECT_TRUE(file.warnings.empty());
  Layer layer = gemm(1, 1, 1);
  EXPECT_EQ(file.of(layer).links.at("I"), "I2");
  layer.op = "MatMul";
  EXPECT_EQ(file.of(layer).spatial, (Dataflow{{"D1", {{"K", 8}}}, {"D2", {{"C", 4}}}}));
  layer.name = "fc";
  LayerMapping mapping = file.of(layer);
  ASSERT_EQ(mapping.temporal_ordering.size(), 2u);
  EXPECT_EQ(mapping.temporal_ordering[0].size, 4);
  EXPECT_EQ(mapping.temporal_ordering[1].size, 0);
  EXPECT_TRUE(MappingFile{}.of(layer).spatial.empty());
}

TEST(MappingFile, EveryProblemNamesItsField) {
  EXPECT_EQ(problems_of(R"([{"name": "a", "spatial_mapping": {"D1": ["K"], "D2": ["C, 0"], "D3": 5},
                             "memory_operand_links": {"W": "I3", "I": "O", "O": "O"},
                             "temporal_ordering": [["K", 0], ["C"], "K", [1, 2]]},
                            {"name": "a"}, {}, 5])"),
            (std::vector<std::string>{"0.spatial_mapping.D1.0", "0.spatial_mapping.D2.0", "0.spatial_mapping.D3",
                                      "0.memory_operand_links.W", "0.memory_operand_links.O", "0.temporal_ordering.0",
                                      "0.temporal_ordering.1", "0.temporal_ordering.2", "0.temporal_ordering.3",
                                      "1.name", "2.name", "3"}));
  for (const char* text : {"", "{}", "null", "[[]]", "\xff"}) EXPECT_FALSE(problems_of(text).empty()) << text;
  MappingFile file = parse_mapping(R"([{"name": "a", "spatial_maping": {}}])");
  ASSERT_EQ(file.warnings.size(), 1u);
  EXPECT_EQ(file.warnings[0].node, "0.spatial_maping");
}

}  // namespace
}  // namespace monet
