// Schedules against a plain checker that knows nothing of how they were made: what runs when, what moves, what fits,
// and what it costs; on random networks, trained and not, on every preset.
#include "engine/schedule/scheduler.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "engine/cost/bounds.h"
#include "engine/schedule/store.h"
#include "engine/training/training_graph.h"
#include "tests/engine/random_networks.h"
#include "tests/engine/slow_build.h"

namespace monet {
namespace {

using Json = nlohmann::ordered_json;

struct Case {
  Graph graph;
  std::vector<Work> works;
  Accelerator accelerator;
  MappingFile mapping;
  CostOptions costs;
  ScheduleOptions options;
  CostCache cache;
  Partition partition;
  std::unique_ptr<Planner> planner;
  Program program;
  Schedule schedule;

  Case(Graph g, Accelerator a, ScheduleOptions how = {}, const std::string& groups = "", CostOptions model = {})
      : graph(std::move(g)), accelerator(std::move(a)), costs(model), options(how) {
    works = monet::works(graph);
    partition = groups.empty() ? layer_by_layer(graph) : parse_partition(groups, graph);
    planner =
        std::make_unique<Planner>(graph, works, accelerator, datapath_precision(), mapping, costs, options, cache);
    program = planner->program(partition);
    schedule = monet::Scheduler(*planner).schedule(program);
  }
  Case(const Case&) = delete;
};

// Everything that must hold of any schedule.
void check(const Case& run) {
  const Program& program = run.program;
  const Schedule& s = run.schedule;
  const Interconnect& links = run.planner->interconnect();

  // Every tile runs once; a core runs one at a time.
  std::map<std::array<int, 3>, const Event*> ran;
  std::map<int, std::vector<const Event*>> by_core;
  for (const Event& e : s.events) {
    ASSERT_LE(0, e.start);
    ASSERT_LE(e.start, e.end);
    ASSERT_LE(e.end, s.latency);
    if (e.core == kNone) continue;
    EXPECT_TRUE(ran.emplace(std::array<int, 3>{e.unit, e.slot, e.tile}, &e).second);
    by_core[e.core].push_back(&e);
  }
  EXPECT_EQ(ran.size(), program.tiles.size());
  for (auto& [core, events] : by_core) {
    std::sort(events.begin(), events.end(), [](const Event* a, const Event* b) {
      return std::make_pair(a->start, a->end) < std::make_pair(b->start, b->end);
    });
    for (size_t i = 1; i < events.size(); ++i) EXPECT_LE(events[i - 1]->end, events[i]->start) << "core " << core;
  }

  // No link carries more than it can: transfers take all of it, streams their part.
  for (size_t l = 0; l < links.links().size(); ++l) {
    std::map<int64_t, int64_t> change;
    int64_t bandwidth = links.links()[l].bandwidth;
    for (const Event& e : s.events) {
      if (e.link != static_cast<int>(l) || e.end == e.start) continue;
      int64_t takes = e.cause == Cause::stream ? e.bits / (e.end - e.start) : bandwidth;
      EXPECT_GE((e.end - e.start) * bandwidth, e.bits);
      change[e.start] += takes;
      change[e.end] -= takes;
    }
    int64_t used = 0;
    for (const auto& [time, delta] : change) ASSERT_LE(used += delta, bandwidth) << links.links()[l].name;
  }

  // A tile starts when what it reads is made; every tile of a unit makes its pieces, each once.
  std::vector<int64_t> made_at(program.pieces.size(), -1);
  for (const Step& step : program.steps)
    for (int p = 0; p < step.tiles; ++p) {
      const Tile& tile = program.tiles[step.first_tile + p];
      const Event* event = ran.at({step.unit, step.slot, p});
      for (int i = 0; i < tile.made; ++i) {
        int64_t& at = made_at[program.made[tile.first_made + i]];
        EXPECT_EQ(at, -1) << "made twice";
        at = event->end;
      }
    }
  for (const Step& step : program.steps)
    for (int n = 0; n < step.needs; ++n) {
      const Need& need = program.needs[step.first_need + n];
      const Piece& piece = program.pieces[need.piece];
      EXPECT_EQ(piece.stored, made_at[need.piece] < 0);
      for (int p = 0; p < step.tiles; ++p)
        EXPECT_TRUE(!need.tiles.has(p) || ran.at({step.unit, step.slot, p})->start >= made_at[need.piece]);
    }
  // Pieces make up their tensors, whatever other groups cut what lies off the chip into.
  std::map<TensorId, int64_t> bits, others;
  for (const Piece& piece : program.pieces)
    (piece.stored && piece.has_place ? others : bits)[piece.tensor] += piece.bits;
  for (const auto& [tensor, sum] : bits) EXPECT_EQ(sum, 8 * bytes(run.graph, tensor, datapath_precision()));
  for (const auto& [tensor, sum] : others) EXPECT_EQ(sum % (8 * bytes(run.graph, tensor, datapath_precision())), 0);

  // A tile takes no more of a tensor than its slice, along whatever axes the tensor is cut.
  if (!run.options.as_stream)
    for (const Step& step : program.steps) {
      const Placement& placement = program.placements[step.unit];
      const UnitParts& parts = run.planner->parts(step.unit);
      for (size_t r = 0; r < run.works[step.unit].reads.size(); ++r) {
        TensorId tensor = run.works[step.unit].reads[r];
        double most = 8 * static_cast<double>(bytes(run.graph, tensor, datapath_precision()));
        auto narrow = [&](int axis, int64_t slices) {
          if (axis == kNone || parts.axes[axis].reads[r].axis == kNone) return;
          const AxisUse& use = parts.axes[axis].reads[r];
          int64_t largest = 0;
          for (int64_t i = 0; i < slices; ++i)
            largest = std::max(largest, use.range(slice(parts.axes[axis].size, slices, i)).size());
          most *= static_cast<double>(largest) / static_cast<double>(use.size);
        };
        auto cores = static_cast<int64_t>(placement.cores.size());
        if (placement.split == placement.tiled) {
          narrow(placement.split, cores * placement.tiles);
        } else {
          narrow(placement.split, cores);
          narrow(placement.tiled, placement.tiles);
        }
        for (int p = 0; p < step.tiles; ++p) {
          double taken = 0;
          int pieces = 0;
          for (int n = 0; n < step.needs; ++n) {
            const Need& need = program.needs[step.first_need + n];
            if (program.pieces[need.piece].tensor != tensor || !need.tiles.has(p)) continue;
            taken += static_cast<double>(need.bits);
            ++pieces;
          }
          EXPECT_LE(taken, most * (1 + 1e-9) + pieces) << run.graph.tensors[tensor].name;
        }
      }
    }

  // Memory: no store beyond its capacity, and at the end nothing is on the chip.
  for (size_t m = 0; m < s.store_peak.size(); ++m)
    EXPECT_LE(s.store_peak[m], run.planner->stores().all()[m].capacity) << run.planner->stores().all()[m].name;
  EXPECT_EQ(s.onchip.empty() ? 0 : total(s.onchip.back().bytes), 0);
  for (const FootprintPoint& point : s.onchip)
    for (int64_t of : point.bytes) ASSERT_GE(of, 0);
  for (const FootprintPoint& point : s.offchip)
    for (int64_t of : point.bytes) ASSERT_GE(of, 0);

  // Traffic: what links to and from the off-chip memory carried, and what tiles streamed.
  int64_t read = 0, written = 0;
  for (const UnitRun& unit : s.units) {
    read += unit.read_bits;
    written += unit.written_bits;
  }
  EXPECT_EQ(read, s.read_bits);
  EXPECT_EQ(written, s.written_bits);
  EXPECT_EQ(std::accumulate(s.traffic.begin(), s.traffic.end(), int64_t{0}), read + written);
  std::array<int64_t, 6> carried{};
  for (const Event& e : s.events)
    if (e.link != kNone && links.links()[e.link].offchip && e.cause != Cause::stream)
      carried[static_cast<size_t>(e.cause)] += e.bits;
  for (Cause cause : {Cause::load, Cause::eviction, Cause::write_back, Cause::output})
    EXPECT_EQ(carried[static_cast<size_t>(cause)], s.traffic[static_cast<size_t>(cause)]) << name(cause);

  // Link energy from the events alone.
  double expected = 0, found = 0;
  for (const Event& e : s.events) {
    if (e.link == kNone || e.end == e.start) continue;
    const Link& link = links.links()[e.link];
    double share = e.cause == Cause::stream
                       ? static_cast<double>(e.bits) / static_cast<double>((e.end - e.start) * link.bandwidth)
                       : 1;
    if (e.cause != Cause::eviction) expected += link.unit_energy_cost * static_cast<double>(e.end - e.start) * share;
  }
  for (const UnitRun& unit : s.units) found += unit.energy[static_cast<size_t>(EnergyTerm::links)];
  EXPECT_NEAR(found, expected, 1e-9 * (1 + expected));
}

std::vector<std::string> all_presets() {
  std::vector<std::string> names;
  for (const Preset& p : hardware_presets()) names.push_back(p.name);
  return names;
}

TEST(Scheduler, RandomNetworksOnEveryPreset) {
  std::mt19937 random(7);
  int count = kSlowBuild == 1 ? 8 : 1;
  for (const std::string& hardware : all_presets()) {
    SCOPED_TRACE(hardware);
    for (int i = 0; i < count; ++i) {
      SCOPED_TRACE(i);
      ForwardGraph network = random_network(random);
      for (bool write_back : {false, true}) {
        SCOPED_TRACE(write_back);
        check(Case(trained(network, i % 2 ? Optimizer::adam : Optimizer::sgd), preset(hardware),
                   {.write_back = write_back}));
      }
      check(Case(inferred(network), preset(hardware)));
    }
  }
}

// Memories so small that tensors are evicted, split into parts and streamed.
TEST(Scheduler, SmallMemories) {
  std::mt19937 random(11);
  for (int i = 0; i < (kSlowBuild == 1 ? 12 : 2); ++i) {
    SCOPED_TRACE(i);
    ForwardGraph network = random_network(random);
    double memory = std::array<double, 4>{0.002, 0.005, 0.01, 0.05}[static_cast<size_t>(i) % 4];
    check(Case(trained(network), scaled("edge_tpu", 1, memory)));
  }
}

// Chains of a random number of units, fused into groups of several tiles.
TEST(Scheduler, FusedGroups) {
  std::mt19937 random(13);
  for (int i = 0; i < (kSlowBuild == 1 ? 20 : 3); ++i) {
    SCOPED_TRACE(i);
    ForwardGraph network = random_network(random);
    Graph graph = i % 2 ? trained(network) : inferred(network);
    Json groups = Json::array();
    UnitId at = 0, n = static_cast<UnitId>(graph.units.size());
    while (at < n) {
      UnitId end = std::min<UnitId>(n, at + 1 + static_cast<UnitId>(random() % 4));
      Json units = Json::array();
      for (; at < end; ++at) units.push_back(at);
      const char* const axes[] = {"batch", "rows", "channels"};
      groups.push_back({{"units", units}, {"tiles", 1 + random() % 4}, {"axis", axes[random() % 3]}});
    }
    for (const char* hardware : {"edge_tpu", "fusemax", "edge_tpu_like"})
      for (bool write_back : {false, true}) {
        SCOPED_TRACE(hardware);
        check(Case(graph, preset(hardware), {.write_back = write_back}, Json{{"groups", groups}}.dump()));
      }
  }
}

// The highest memory of every core cut into regions: shares of its size, the rest for everything else.
Accelerator with_regions(Accelerator a, double share, int64_t bandwidth) {
  for (size_t c = 0; c < a.cores.size(); ++c) {
    if (static_cast<int>(c) == a.offchip_core) continue;
    Memory& memory = a.cores[c].memories.back();
    for (auto holds :
         {MemoryRegion::Holds::parameters, MemoryRegion::Holds::gradients, MemoryRegion::Holds::checkpoints})
      memory.regions.push_back({.holds = holds,
                                .size = static_cast<int64_t>(share * static_cast<double>(memory.size)),
                                .bandwidth = bandwidth});
  }
  return a;
}

TEST(Scheduler, RegionsOfTheTopMemory) {
  std::mt19937 random(31);
  for (int i = 0; i < (kSlowBuild == 1 ? 12 : 2); ++i) {
    SCOPED_TRACE(i);
    Graph graph = trained(random_network(random), Optimizer::adam);
    for (double share : {0.3, 0.02})
      check(Case(graph, with_regions(scaled("edge_tpu", 1, i % 2 ? 0.05 : 1), share, 512)));

    // Where everything has room, each region holds what is of its kind, and nothing else.
    Case run(graph, with_regions(scaled("fusemax", 1, 64), 0.25, 1 << 20));
    check(run);
    std::array<int64_t, kMemoryRegions + 1> all{};
    for (const Piece& piece : run.program.pieces) {
      bool parameter = piece.category == MemoryCategory::parameters || piece.category == MemoryCategory::buffers;
      bool gradient = piece.category == MemoryCategory::gradients;
      using Holds = MemoryRegion::Holds;
      EXPECT_EQ(parameter, piece.region == static_cast<int>(Holds::parameters));
      EXPECT_EQ(gradient, piece.region == static_cast<int>(Holds::gradients));
      all[static_cast<size_t>(piece.region)] += piece.bits;
    }
    const auto& stores = run.planner->stores().all();
    std::array<bool, kMemoryRegions> used{};
    for (size_t m = 0; m < stores.size(); ++m)
      for (auto holds :
           {MemoryRegion::Holds::parameters, MemoryRegion::Holds::gradients, MemoryRegion::Holds::checkpoints})
        if (stores[m].region && stores[m].name.ends_with(name(holds))) {
          used[static_cast<size_t>(holds)] |= run.schedule.store_peak[m] > 0;
          EXPECT_LE(run.schedule.store_peak[m], all[static_cast<size_t>(holds)]) << stores[m].name;
        }
    EXPECT_TRUE(used[0] && used[1] && used[2]);

    // A narrow region makes its readers wait, for the memory; a wide one makes nobody.
    Case plain(graph, scaled("fusemax", 1, 64)), narrow(graph, with_regions(scaled("fusemax", 1, 64), 0.25, 1));
    EXPECT_EQ(run.schedule.latency, plain.schedule.latency);
    EXPECT_GT(narrow.schedule.latency, run.schedule.latency);
    double waits = 0, before = 0;
    for (const UnitRun& unit : narrow.schedule.units) waits += unit.waits.memory;
    for (const UnitRun& unit : run.schedule.units) before += unit.waits.memory;
    EXPECT_GT(waits, before);
  }
}

// Sums over micro-batches, added to where they lie: one read and one write of the memory. Otherwise the new part is
// written and read as well as the sum.
TEST(Scheduler, GradientsAreAccumulatedInPlaceOrApart) {
  std::mt19937 random(37);
  ForwardGraph network = random_network(random);
  Graph forward = network.graph;
  assign_single_units(forward);
  TrainingOptions options;
  options.micro_batches = 4;
  Graph graph = build_training_graph(forward, options).graph;
  Case in_place(graph, scaled("fusemax", 1, 64)),
      apart(graph, scaled("fusemax", 1, 64), {.accumulate_in_place = false});
  check(in_place);
  check(apart);
  int sums = 0;
  auto sram = [](const UnitRun& unit) { return unit.energy[static_cast<size_t>(EnergyTerm::sram)]; };
  for (UnitId u = 0; u < static_cast<UnitId>(graph.units.size()); ++u) {
    const UnitRun &one = in_place.schedule.units[u], &other = apart.schedule.units[u];
    if (graph.units[u].role == Role::accumulate &&
        graph.tensors[in_place.works[u].reads.front()].kind == TensorKind::sum) {
      ++sums;
      // One read more, in granules of 256 bit at fusemax's 8192 pJ for a word of 8192.
      int64_t bits = 8 * bytes(graph, in_place.works[u].reads.front(), datapath_precision());
      int64_t more = (2 * bits + 255) / 256 * 256 - (bits + 255) / 256 * 256;
      EXPECT_NEAR(sram(other) - sram(one), static_cast<double>(more), 1e-9 * sram(one));
      EXPECT_GE(other.busy, one.busy);
    } else {
      EXPECT_EQ(sram(other), sram(one));
    }
  }
  EXPECT_GT(sums, 3);
  EXPECT_GE(apart.schedule.latency, in_place.schedule.latency);
}

// With room for everything, what is stored off the chip is loaded once and results are written once; written back, each
// tensor that crosses groups goes out once, and comes in once for every group that reads it.
TEST(Scheduler, EveryByteCrossesOnce) {
  std::mt19937 random(17);
  for (int i = 0; i < (kSlowBuild == 1 ? 20 : 3); ++i) {
    SCOPED_TRACE(i);
    ForwardGraph network = random_network(random);
    Case run(trained(network), scaled("fusemax", 1, 64));
    int64_t stored = 0, results = 0;
    std::set<int32_t> loaded;
    for (const Need& need : run.program.needs) {
      if (!run.program.pieces[need.piece].stored || need.streamed || loaded.count(need.piece)) continue;
      stored += need.bits;
      if (!need.partial) loaded.insert(need.piece);  // parts do not stay
    }
    for (const Piece& piece : run.program.pieces)
      if (piece.output && !piece.stored) results += piece.bits;
    EXPECT_EQ(run.schedule.traffic[static_cast<size_t>(Cause::load)], stored);
    EXPECT_EQ(run.schedule.traffic[static_cast<size_t>(Cause::output)], results);
    EXPECT_EQ(run.schedule.traffic[static_cast<size_t>(Cause::eviction)], 0);

    // Two units at a time.
    Json groups = Json::array();
    for (UnitId u = 0; u + 1 < static_cast<UnitId>(run.graph.units.size()); u += 2)
      groups.push_back({{"units", {u, u + 1}}});
    Case back(run.graph, scaled("fusemax", 1, 64), {.write_back = true}, Json{{"groups", groups}}.dump());
    // (A unit beside views only runs as one alone.)
    auto fused = [&](int32_t group) {
      int units = 0;
      for (UnitId u : back.partition.groups[group].units) units += !back.works[u].view;
      return units > 1;
    };
    int64_t out = 0, in = 0;
    std::set<std::pair<int32_t, int32_t>> readers;
    std::vector<int32_t> maker(back.program.pieces.size(), -1);
    for (const Step& step : back.program.steps) {
      for (int p = 0; p < step.tiles; ++p) {
        const Tile& tile = back.program.tiles[step.first_tile + p];
        for (int m = 0; m < tile.made; ++m) maker[back.program.made[tile.first_made + m]] = step.group;
      }
      if (!fused(step.group)) continue;
      for (int n = 0; n < step.needs; ++n) {
        const Need& need = back.program.needs[step.first_need + n];
        const Piece& piece = back.program.pieces[need.piece];
        if (piece.stored || need.streamed || maker[need.piece] == step.group) continue;
        if (readers.count({need.piece, step.group})) continue;
        in += need.bits;
        if (!need.partial) readers.insert({need.piece, step.group});
      }
    }
    for (size_t p = 0; p < maker.size(); ++p) {
      const Piece& piece = back.program.pieces[p];
      if (maker[p] >= 0 && fused(maker[p]) && piece.crossing && !piece.output) out += piece.bits;
    }
    EXPECT_EQ(back.schedule.traffic[static_cast<size_t>(Cause::write_back)], out);
    int64_t crossing_loads = 0;
    for (const Event& e : back.schedule.events)
      if (e.link != kNone && e.cause == Cause::load) {
        bool made = false;
        for (const Piece& piece : back.program.pieces) made = made || (piece.tensor == e.tensor && !piece.stored);
        if (made) crossing_loads += e.bits;
      }
    EXPECT_EQ(crossing_loads, in);
  }
}

// With the cost model's faults mended no schedule beats the bound.
TEST(Scheduler, NotBelowTheBound) {
  std::mt19937 random(19);
  CostOptions mended;
  mended.hold_floors = mended.add_half_shared = mended.leave_room_above = mended.count_all_traffic =
      mended.count_partial_words = mended.count_uneven_tiles = true;
  for (const std::string& hardware : all_presets()) {
    SCOPED_TRACE(hardware);
    for (int i = 0; i < (kSlowBuild == 1 ? 4 : 1); ++i) {
      Case run(trained(random_network(random)), preset(hardware), {}, "", mended);
      Bound bound = total_bound(run.graph, run.works, run.accelerator, datapath_precision());
      double energy = 0;
      for (const UnitRun& unit : run.schedule.units) energy += total(unit.energy);
      EXPECT_GE(static_cast<double>(run.schedule.latency), bound.cycles() * (1 - 1e-9));
      EXPECT_GE(energy, bound.energy() * (1 - 1e-9));
      EXPECT_GE(run.schedule.read_bits + run.schedule.written_bits, 8 * bound.traffic_bytes);
    }
  }
}

// More bandwidth off the chip, or more memory, hardly ever makes a schedule longer. (It can: list scheduling takes each
// step as it comes, and a transfer that is done earlier may stand in another's way; Graham, 1969.)
TEST(Scheduler, MoreOfAnythingHelps) {
  std::mt19937 random(29);
  int longer = 0, all = 0;
  double worst = 1;
  // (A share over fewer networks says nothing: one step of 48 is 2% already.)
  for (int i = 0; i < (kSlowBuild == 1 ? 12 : 6); ++i) {
    Graph graph = trained(random_network(random));
    for (const char* hardware : {"edge_tpu", "fusemax", "edge_tpu_like"}) {
      for (bool memory : {false, true}) {
        double before = 0;
        for (double factor :
             memory ? std::vector<double>{0.02, 0.1, 0.5, 1, 4} : std::vector<double>{0.5, 1, 2, 4, 8}) {
          Case run(graph, memory ? scaled(hardware, 1, factor) : scaled(hardware, factor, 1));
          auto now = static_cast<double>(run.schedule.latency);
          if (before > 0) {
            ++all;
            if (now > before) {
              ++longer;
              std::cout << "network " << i << " on " << hardware << ", " << (memory ? "memory" : "bandwidth") << " x "
                        << factor << ": " << before << " to " << now << " cycles\n";
            }
            worst = std::max(worst, now / before);
          }
          before = now;
        }
      }
    }
  }
  std::cout << longer << " of " << all << " steps to more are longer, at most " << (worst - 1) * 100 << "%\n";
  EXPECT_LE(worst, 1.01);
  EXPECT_LE(longer * 50, all);
}

// The same bytes of events every time, and whatever was scheduled before with the same planner.
TEST(Scheduler, Repeats) {
  std::mt19937 random(23);
  Case run(trained(random_network(random)), preset("edge_tpu"));
  Program again = run.planner->program(run.partition);
  Schedule second = Scheduler(*run.planner).schedule(again);
  ASSERT_EQ(second.events.size(), run.schedule.events.size());
  for (size_t i = 0; i < second.events.size(); ++i) {
    EXPECT_EQ(second.events[i].start, run.schedule.events[i].start);
    EXPECT_EQ(second.events[i].end, run.schedule.events[i].end);
  }
  EXPECT_EQ(Scheduler(*run.planner).schedule(again, false).latency, run.schedule.latency);
}

TEST(Store, FindsTheFirstTimeWithRoomFromThenOn) {
  Store store(100);
  EXPECT_EQ(store.earliest(5, 100), 5);
  store.hold(10, 60);
  store.release(30, 60);
  EXPECT_EQ(store.earliest(0, 40), 0);
  EXPECT_EQ(store.earliest(0, 41), 30);  // room before 10, but not from then on
  store.hold(40, 90);
  EXPECT_EQ(store.earliest(0, 11), -1);
  EXPECT_EQ(store.earliest(0, 10), 0);
  EXPECT_EQ(store.peak(), 90);
}

TEST(LinkTimeline, SharesBandwidthAndFindsGaps) {
  LinkTimeline link(10);
  link.take(10, 10, 10);
  link.take(30, 10, 6);
  EXPECT_EQ(link.earliest(0, 10, 10), 0);
  EXPECT_EQ(link.earliest(0, 11, 10), 40);
  EXPECT_EQ(link.earliest(5, 6, 1), 20);
  EXPECT_EQ(link.earliest(5, 30, 4), 20);
  EXPECT_EQ(link.earliest(5, 30, 5), 40);
}

TEST(Partition, RefusesWhatItCannotRun) {
  ForwardGraph f = small_network();
  Graph graph = inferred(f);
  auto problems = [&](const std::string& text) {
    try {
      Partition partition = parse_partition(text, graph);
      group_order(graph, unit_edges(graph, works(graph)), partition);
    } catch (const Refusal& refusal) {
      std::string all;
      for (const Diagnostic& d : refusal.problems()) all += d.message + "\n";
      return all;
    }
    return std::string();
  };
  EXPECT_EQ(problems(R"({"groups": [{"units": ["conv1", "bn1", 2], "tiles": 2, "axis": "rows"}]})"), "");
  EXPECT_NE(problems(R"({"groups": [{"units": ["nothing", 99], "axis": "up"}]})").find("no layer is called"),
            std::string::npos);
  EXPECT_NE(problems(R"({"groups": [{"units": [0]}, {"units": [0]}]})").find("in two groups"), std::string::npos);
  // conv1 and relu1 without bn1 between them.
  EXPECT_NE(problems(R"({"groups": [{"units": ["conv1", "relu1"]}]})").find("wait for each other"), std::string::npos);
}

// One line, and what would let it run.
TEST(Scheduler, SaysWhatWouldLetItRun) {
  ForwardGraph f;
  TensorId x = f.input("x", {4, 64, 32, 32});
  TensorId y = f.same("Relu", f.same("Sigmoid", x, "a"), "b");
  f.output(y);
  try {
    Case run(inferred(f), scaled("fusemax", 1, 1.0 / 128), {}, R"({"groups": [{"units": [0, 1]}]})");
    FAIL() << "262,144 bytes do not fit 16,384";
  } catch (const Refusal& refusal) {
    EXPECT_EQ(refusal.problems().front().code, "tile-too-large");
    EXPECT_NE(refusal.problems().front().message.find("b"), std::string::npos);
    EXPECT_NE(refusal.problems().front().hint.find("bytes"), std::string::npos);
  }
  // In more tiles it does.
  check(Case(inferred(f), scaled("fusemax", 1, 1.0 / 128), {},
             R"({"groups": [{"units": [0, 1], "tiles": 32, "axis": "rows"}]})"));
  // No core with an array.
  Accelerator bare = preset("fusemax");
  for (Core& core : bare.cores) core.sizes.assign(core.sizes.size(), 0);
  EXPECT_THROW(Case(inferred(f), bare), Refusal);
}

}  // namespace
}  // namespace monet
