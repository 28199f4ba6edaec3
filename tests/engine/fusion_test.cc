// Fusion's costs and plans: every plan against a checker that knows the rules by other words, the least plan against
// all plans of small graphs, groups of equal content against scheduling each, estimates against schedules.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "engine/analysis/session.h"
#include "engine/fusion/baselines.h"
#include "engine/fusion/cover.h"
#include "engine/solver/highs.h"
#include "tests/engine/random_networks.h"
#include "tests/engine/slow_build.h"

namespace monet {
namespace {

using Set = std::vector<UnitId>;

struct Case {
  Graph graph;
  std::vector<Work> works;
  Accelerator accelerator;
  MappingFile mapping;
  CostOptions costs;
  CostCache cache;
  std::unique_ptr<Planner> planner;
  std::unique_ptr<CandidateCosts> candidates;

  Case(Graph g, Accelerator a, const FusionRules& rules, bool write_back = true)
      : graph(std::move(g)), works(monet::works(graph)), accelerator(std::move(a)) {
    ScheduleOptions options;
    options.write_back = write_back;
    planner =
        std::make_unique<Planner>(graph, works, accelerator, datapath_precision(), mapping, costs, options, cache);
    candidates = std::make_unique<CandidateCosts>(*planner, rules);
    while (candidates->step(100)) {
    }
  }
  Case(const Case&) = delete;

  Schedule schedule(const FusionPlan& plan) {
    return Scheduler(*planner).schedule(planner->program(plan.partition(graph)), false);
  }
};

// Who reads whom, through views, from the nodes alone.
std::set<std::pair<UnitId, UnitId>> edges_of(const Graph& graph) {
  std::vector<TensorId> bytes = storage(graph);
  std::set<std::pair<UnitId, UnitId>> edges;
  for (const Node& node : graph.nodes) {
    if (is_view(node)) continue;
    for (TensorId t : node.inputs) {
      if (t == kNone) continue;
      NodeId from = graph.tensors[bytes[t]].producer;
      if (from != kNone && graph.nodes[from].unit != node.unit) edges.insert({graph.nodes[from].unit, node.unit});
    }
  }
  return edges;
}

// All that must hold of a plan, said once more.
void check(Case& c, const FusionPlan& plan, int most_units) {
  const FusionRules& rules = c.candidates->rules();
  std::set<std::pair<UnitId, UnitId>> edges = edges_of(c.graph);
  std::map<UnitId, size_t> group_of;
  for (size_t g = 0; g < plan.groups.size(); ++g)
    for (UnitId u : plan.groups[g].units) EXPECT_TRUE(group_of.emplace(u, g).second) << "unit " << u << " twice";
  for (UnitId u = 0; u < static_cast<UnitId>(c.graph.units.size()); ++u)
    EXPECT_EQ(group_of.count(u), c.works[u].view ? 0u : 1u) << u;
  EXPECT_EQ(plan.cost.groups, static_cast<int>(plan.groups.size()));

  // No group waits for itself: take away those that wait for none until none is left.
  std::set<std::pair<size_t, size_t>> waits;
  for (auto [from, to] : edges)
    if (group_of.at(from) != group_of.at(to)) waits.insert({group_of.at(from), group_of.at(to)});
  std::set<size_t> left;
  for (size_t g = 0; g < plan.groups.size(); ++g) left.insert(g);
  for (bool gone = true; gone;) {
    gone = false;
    for (auto at = left.begin(); at != left.end();) {
      bool waiting = std::any_of(waits.begin(), waits.end(),
                                 [&](const auto& w) { return w.second == *at && left.count(w.first); });
      gone = gone || !waiting;
      at = waiting ? std::next(at) : left.erase(at);
    }
  }
  EXPECT_TRUE(left.empty()) << "groups wait for each other";

  PlanCost sum;
  for (const FusedGroup& group : plan.groups) {
    std::set<UnitId> in(group.units.begin(), group.units.end());
    if (most_units > 0) {
      EXPECT_LE(in.size(), static_cast<size_t>(most_units));
    }
    // It costs what running it alone costs.
    Scheduler::Totals alone = Scheduler(*c.planner).totals(c.planner->program({{group}}));
    sum.add({group.tiles, group.axis, alone.latency, alone.energy, alone.offchip_bits});
    if (in.size() == 1) continue;
    int convolutions = 0, products = 0, outputs = 0;
    bool update = false, weight_gradient = false;
    for (UnitId u : in) {
      const Unit& unit = c.graph.units[u];
      bool conv = unit.op == "Conv" || unit.op == "ConvTranspose";
      convolutions += unit.contraction != kNone && conv;
      products += unit.contraction != kNone && !conv;
      update |= unit.role == Role::update;
      weight_gradient |= unit.role == Role::weight_gradient;
      bool outside = std::none_of(edges.begin(), edges.end(), [&](const auto& e) { return e.first == u; });
      for (auto [from, to] : edges) outside |= from == u && !in.count(to);
      for (NodeId n : unit.nodes)
        for (TensorId t : c.graph.nodes[n].outputs)
          outside |= std::find(c.graph.outputs.begin(), c.graph.outputs.end(), t) != c.graph.outputs.end();
      outputs += outside;
    }
    EXPECT_LE(convolutions, rules.most_convolutions);
    EXPECT_LE(products, rules.most_products);
    if (rules.most_contractions > 0) {
      EXPECT_LE(convolutions + products, rules.most_contractions);
    }
    if (rules.one_output) {
      EXPECT_LE(outputs, 1);
    }
    if (rules.updates_apart) {
      EXPECT_FALSE(update && weight_gradient);
    }
    // Memory, from the program of the group alone: the most that any of its tiles reads or makes of each tensor.
    Program program = c.planner->program({{group}});
    std::map<int, std::map<TensorId, int64_t>> held;  // by store
    std::set<int64_t> tiles;
    const Stores& stores = c.planner->stores();
    for (const Step& step : program.steps) {
      tiles.insert(program.placements[step.unit].tiles);
      for (int p = 0; p < step.tiles; ++p) {
        const Tile& tile = program.tiles[step.first_tile + p];
        std::map<std::pair<int, TensorId>, int64_t> now;
        for (int n = 0; n < step.needs; ++n) {
          const Need& need = program.needs[step.first_need + n];
          const Piece& piece = program.pieces[need.piece];
          if (need.tiles.has(p) && !need.streamed)
            now[{stores.of(static_cast<size_t>(tile.core), need.second ? 1 : 0, piece.region), piece.tensor}] +=
                need.bits;
        }
        for (int m = 0; m < tile.made; ++m) {
          const Piece& piece = program.pieces[program.made[tile.first_made + m]];
          now[{stores.of(static_cast<size_t>(tile.core), 2, piece.region), piece.tensor}] += piece.bits;
        }
        for (auto [at, bits] : now) held[at.first][at.second] = std::max(held[at.first][at.second], bits);
      }
    }
    for (auto& [store, tensors] : held) {
      if (store < 0) continue;
      int64_t bits = 0;
      for (auto [tensor, most] : tensors) bits += most;
      EXPECT_LE(bits, stores.all()[store].capacity + 64 * static_cast<int64_t>(tensors.size()));
    }
    for (int64_t a : tiles)
      for (int64_t b : tiles) EXPECT_TRUE(a % b == 0 || b % a == 0) << a << " and " << b << " tiles";
  }
  EXPECT_EQ(sum.cycles, plan.cost.cycles);
  EXPECT_NEAR(sum.energy, plan.cost.energy, 1e-9 * sum.energy);
  EXPECT_EQ(sum.offchip_bits, plan.cost.offchip_bits);
}

FusionPlan solved(Case& c, FusionObjective objective, int most_units, double* bound = nullptr, int* cuts = nullptr) {
  FusionCover cover(*c.candidates, objective, most_units, greedy_groups(*c.candidates, objective));
  int programs = 0;
  while (!cover.done() && programs++ < 1000) cover.answer(solve(cover.program(), {}, cover.start()));
  EXPECT_TRUE(cover.done());
  EXPECT_EQ(cover.status(), Solution::Status::optimal);
  if (bound) *bound = cover.bound();
  if (cuts) *cuts += cover.cuts();
  EXPECT_EQ(cover.plan().cost.of(objective), cover.value());
  return cover.plan();
}

constexpr FusionObjective kAll[] = {FusionObjective::groups, FusionObjective::latency, FusionObjective::energy,
                                    FusionObjective::edp, FusionObjective::traffic};

// Calls visit(cost) for every plan of the candidates, whatever it costs: groups in all their ways, none waiting for
// itself.
class AllPlans {
 public:
  AllPlans(Case& c, int most_units) : case_(c), edges_(edges_of(c.graph)), group_of_(c.graph.units.size(), -1) {
    for (const auto& candidate : c.candidates->all())
      if (most_units == 0 || candidate.units.size() <= static_cast<size_t>(most_units))
        by_first_[candidate.units.front()].push_back(&candidate);
    next(0, 0, {});
  }
  std::map<FusionObjective, double> least;
  size_t plans = 0, cyclic = 0;

 private:
  void next(UnitId from, int groups, PlanCost cost) {
    while (from < static_cast<UnitId>(group_of_.size()) && (group_of_[from] >= 0 || case_.works[from].view)) ++from;
    if (from == static_cast<UnitId>(group_of_.size())) return full(groups, cost);
    for (const CandidateCosts::Candidate* candidate : by_first_[from]) {
      if (std::any_of(candidate->units.begin(), candidate->units.end(), [&](UnitId u) { return group_of_[u] >= 0; }))
        continue;
      for (UnitId u : candidate->units) group_of_[u] = groups;
      for (const GroupCost& way : *candidate->ways) {
        PlanCost with = cost;
        with.add(way);
        next(from, groups + 1, with);
      }
      for (UnitId u : candidate->units) group_of_[u] = -1;
    }
  }
  void full(int groups, const PlanCost& cost) {
    std::vector<std::vector<int>> readers(static_cast<size_t>(groups));
    std::vector<int> waits(static_cast<size_t>(groups), 0), ready;
    for (auto [a, b] : edges_)
      if (group_of_[a] != group_of_[b]) {
        readers[static_cast<size_t>(group_of_[a])].push_back(group_of_[b]);
        ++waits[static_cast<size_t>(group_of_[b])];
      }
    for (int g = 0; g < groups; ++g)
      if (waits[static_cast<size_t>(g)] == 0) ready.push_back(g);
    size_t ran = 0;
    for (; ran < ready.size(); ++ran)
      for (int g : readers[static_cast<size_t>(ready[ran])])
        if (--waits[static_cast<size_t>(g)] == 0) ready.push_back(g);
    if (ran < static_cast<size_t>(groups)) {
      ++cyclic;
      return;
    }
    ++plans;
    for (FusionObjective objective : kAll) {
      double value = cost.of(objective);
      auto [at, fresh] = least.emplace(objective, value);
      if (!fresh) at->second = std::min(at->second, value);
    }
  }

  Case& case_;
  std::set<std::pair<UnitId, UnitId>> edges_;
  std::vector<int> group_of_;
  std::map<UnitId, std::vector<const CandidateCosts::Candidate*>> by_first_;
};

TEST(Fusion, ThePlanIsTheLeastOfAll) {
  std::mt19937 random(11);
  size_t plans = 0, cyclic = 0;
  int cuts = 0;
  for (int i = 0; i < (kSlowBuild == 1 ? 300 : 20); ++i) {
    SCOPED_TRACE(i);
    FusionRules rules;
    rules.most_units = std::array<int, 3>{0, 3, 4}[random() % 3];
    rules.one_output = random() % 4 == 0;
    rules.most_convolutions = 1 + random() % 3;
    ForwardGraph network = random_branches(random, 4 + static_cast<int>(random() % 6));
    double memory = std::array<double, 3>{1, 0.01, 0.002}[random() % 3];
    Case c(inferred(network), scaled(random() % 3 ? "fusemax" : "edge_tpu", 1, memory), rules);
    int most_units = random() % 3 ? rules.most_units : 3;
    AllPlans all(c, most_units);
    plans += all.plans;
    cyclic += all.cyclic;
    for (FusionObjective objective : kAll) {
      SCOPED_TRACE(name(objective));
      double bound = 0;
      FusionPlan plan = solved(c, objective, most_units, &bound, &cuts);
      check(c, plan, most_units);
      EXPECT_NEAR(plan.cost.of(objective), all.least.at(objective), 1e-7 * all.least.at(objective));
      EXPECT_NEAR(bound, plan.cost.of(objective), 1e-7 * bound);
    }
  }
  std::cout << "[ MEASURED ] " << plans << " plans tried one by one, " << cyclic
            << " with groups that wait for each other; " << cuts << " cuts\n";
  EXPECT_GT(plans, kSlowBuild == 1 ? 15'000u : 1'000u);
  if (kSlowBuild == 1) {  // among fewer graphs there may be none
    EXPECT_GT(cyclic, 100u);
    EXPECT_GT(cuts, 0);
  }
}

// The same graphs as the page's: training steps, whose plans no enumeration can reach.
TEST(Fusion, PlansOfTrainingStepsKeepTheRules) {
  std::mt19937 random(12);
  for (int i = 0; i < (kSlowBuild == 1 ? 24 : 3); ++i) {
    SCOPED_TRACE(i);
    FusionRules rules;
    if (i % 4 == 1) rules = one_contraction_rules();
    rules.most_units = i % 2 ? 4 : 5;
    rules.one_output = i % 3 == 0;
    rules.updates_apart = i % 4 == 2;
    rules.activations_apart = i % 4 == 3;
    Case c(trained(random_network(random), i % 2 ? Optimizer::adam : Optimizer::sgd),
           scaled(i % 2 ? "edge_tpu" : "fusemax", 1, i % 5 == 4 ? 0.02 : 1), rules, i % 6 != 5);
    FusionPlan none = c.candidates->plan({}, FusionObjective::latency);
    EXPECT_EQ(none.groups.size(), static_cast<size_t>(std::count_if(c.works.begin(), c.works.end(),
                                                                    [](const Work& w) { return !w.view; })));
    for (FusionObjective objective : kAll) {
      SCOPED_TRACE(name(objective));
      FusionPlan manual = c.candidates->plan(manual_groups(*c.candidates), objective);
      FusionPlan greedy = c.candidates->plan(greedy_groups(*c.candidates, objective), objective);
      FusionPlan plan = solved(c, objective, 0);
      for (const FusionPlan* p : {&manual, &greedy, &plan}) check(c, *p, p == &manual ? 0 : rules.most_units);
      for (const FusionPlan* p : {&none, &manual, &greedy})
        EXPECT_LE(plan.cost.of(objective), p->cost.of(objective) * (1 + 1e-9));
      EXPECT_GT(c.schedule(plan).latency, 0);
    }
  }
}

// Groups of equal content are scheduled once: what each is told to cost is what scheduling it would say.
TEST(Fusion, EqualGroupsCostTheSame) {
  ForwardGraph f;
  TensorId y = f.input("x", {2, 16, 8, 8});
  for (int i = 0; i < 4; ++i) {
    std::string name = std::to_string(i);
    TensorId z = f.same("Relu", f.batch_norm(f.conv(y, "conv" + name, {16, 16, 1, 1}, {2, 16, 8, 8}), "bn" + name),
                        "relu" + name);
    y = f.node("Add", {z, y}, "add" + name, {2, 16, 8, 8});
  }
  f.output(y);
  FusionRules rules{.most_units = 4, .one_output = false};
  Case c(trained(f, Optimizer::adam), preset("edge_tpu"), rules);
  size_t several = 0, ways = 0;
  for (const CandidateCosts::Candidate& candidate : c.candidates->all()) {
    several += candidate.units.size() > 1;
    for (const GroupCost& way : *candidate.ways) {
      ++ways;
      FusedGroup group{candidate.units, way.tiles, way.axis};
      Scheduler::Totals alone = Scheduler(*c.planner).totals(c.planner->program({{group}}));
      EXPECT_EQ(alone.latency, way.cycles);
      EXPECT_NEAR(alone.energy, way.energy, 1e-9 * way.energy);
      EXPECT_EQ(alone.offchip_bits, way.offchip_bits);
    }
  }
  EXPECT_GT(several, 200u);
  EXPECT_LT(c.candidates->scheduled(), 2 * several);  // seven ways of a pair are tried
  // Totals are those of the schedule.
  Program program = c.planner->program(layer_by_layer(c.graph));
  Schedule schedule = Scheduler(*c.planner).schedule(program);
  Scheduler scheduler(*c.planner);
  for (int i = 0; i < 2; ++i) {
    Scheduler::Totals totals = scheduler.totals(program);
    double energy = 0;
    for (const UnitRun& unit : schedule.units) energy += total(unit.energy);
    EXPECT_EQ(totals.latency, schedule.latency);
    EXPECT_NEAR(totals.energy, energy, 1e-9 * energy);
    EXPECT_EQ(totals.offchip_bits, schedule.read_bits + schedule.written_bits);
  }
}

// What practitioners fuse: the units of a group by name.
TEST(Fusion, ManualGroups) {
  ForwardGraph f;
  TensorId x = f.input("x", {2, 3, 8, 8});
  TensorId y = f.conv(x, "conv", {8, 3, 3, 3}, {2, 8, 8, 8}, {{"pads", std::vector<int64_t>(4, 1)}});
  y = f.same("Relu", f.batch_norm(y, "bn"), "relu");
  y = f.node("Reshape", {y, f.tensor("shape", {3}, TensorKind::constant, DType::int64)}, "rows", {2, 8, 64});
  TensorId q = f.node("MatMul", {y, f.parameter("wq", {64, 64})}, "q", {2, 8, 64});
  TensorId k = f.node("MatMul", {y, f.parameter("wk", {64, 64})}, "k", {2, 8, 64});
  TensorId t = f.node("Transpose", {k}, "kt", {2, 64, 8}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  TensorId scores = f.node("MatMul", {q, t}, "scores", {2, 8, 8});
  TensorId scaled_scores = f.same("Sqrt", scores, "scaled");
  TensorId p = f.node("Softmax", {scaled_scores}, "softmax", {2, 8, 8}, {{"axis", int64_t{-1}}});
  f.output(f.node("MatMul", {p, y}, "mixed", {2, 8, 64}));
  FusionRules rules{.most_units = 6, .one_output = false};
  Case c(inferred(f), preset("edge_tpu"), rules);
  std::set<std::set<std::string>> groups;
  for (const Set& group : manual_groups(*c.candidates)) {
    std::set<std::string> names;
    for (UnitId u : group) names.insert(unit_name(c.graph, c.graph.units[u]));
    groups.insert(names);
  }
  EXPECT_EQ(groups,
            (std::set<std::set<std::string>>{{"conv", "bn", "relu"}, {"scores", "scaled", "softmax", "mixed"}}));
  rules.most_units = 2;
  Case pairs(inferred(f), preset("edge_tpu"), rules);
  for (const Set& group : manual_groups(*pairs.candidates)) EXPECT_EQ(group.size(), 2u);
}

TEST(Fusion, SaysWhyAGroupMayNotGrow) {
  ForwardGraph f;
  TensorId y = f.input("x", {1, 64, 16, 16});
  for (int i = 0; i < 3; ++i) y = f.conv(y, "conv" + std::to_string(i), {64, 64, 1, 1}, {1, 64, 16, 16});
  f.output(f.same("Relu", y, "relu"));
  FusionRules rules{.most_units = 3, .most_convolutions = 2};
  Case c(inferred(f), scaled("fusemax", 1, 0.012), rules);
  std::string why;
  EXPECT_EQ(c.candidates->limit({2, 3}, &why), Limit::none) << why;
  EXPECT_EQ(c.candidates->limit({0, 1, 2}, &why), Limit::convolutions);
  EXPECT_EQ(why, "it would have more than 2 convolutions");
  EXPECT_EQ(c.candidates->limit({0, 1, 2, 3}, &why), Limit::units);
  EXPECT_EQ(c.candidates->limit({0, 2}, &why), Limit::convex);
  Case small(inferred(f), scaled("fusemax", 1, 0.004), rules);
  EXPECT_EQ(small.candidates->limit({1, 2}, &why), Limit::memory);
  EXPECT_NE(why.find("bytes in a memory of"), std::string::npos) << why;
}

// Ranks from 1; equal values share the mean of theirs.
std::vector<double> ranks(const std::vector<double>& values) {
  std::vector<size_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] < values[b]; });
  std::vector<double> rank(values.size());
  for (size_t i = 0; i < order.size();) {
    size_t j = i;
    while (j < order.size() && values[order[j]] == values[order[i]]) ++j;
    for (size_t k = i; k < j; ++k) rank[order[k]] = static_cast<double>(i + j + 1) / 2;
    i = j;
  }
  return rank;
}

double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double ma = 0, mb = 0, ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    ma += a[i] / static_cast<double>(a.size());
    mb += b[i] / static_cast<double>(b.size());
  }
  for (size_t i = 0; i < a.size(); ++i) {
    ab += (a[i] - ma) * (b[i] - mb);
    aa += (a[i] - ma) * (a[i] - ma);
    bb += (b[i] - mb) * (b[i] - mb);
  }
  return ab / std::sqrt(aa * bb);
}

// What fusing one group saves, all other units alone: by the estimate, and by the schedule.
TEST(Fusion, TheEstimateRanksGroupsAsSchedulesDo) {
  if (kSlowBuild > 1) GTEST_SKIP() << "thousands of schedules: in the native build";
  auto source = open_file("examples/models/resnet18_cifar.onnx");
  Session session(*source, "resnet18_cifar.onnx");
  Settings settings = parse_settings(R"({"batch": 4, "optimizer": "adam"})");
  std::shared_ptr<const Graph> graph = session.graph(settings, true);
  for (const char* hardware : {"edge_tpu", "fusemax"})
    for (bool write_back : {true, false}) {
      FusionRules rules{.most_units = 6, .one_output = false};
      Case c(*graph, preset(hardware), rules, write_back);
      Scheduler scheduler(*c.planner);
      FusionPlan none = c.candidates->plan({}, FusionObjective::latency);
      Scheduler::Totals before = scheduler.totals(c.planner->program(none.partition(c.graph)));
      std::vector<double> estimated, scheduled, estimated_pj, scheduled_pj;
      double error = 0, all = 0;
      const auto& candidates = c.candidates->all();
      for (size_t i = 0; i < candidates.size(); i += 3) {
        if (candidates[i].units.size() < 2) continue;
        FusionPlan plan = c.candidates->plan({candidates[i].units}, FusionObjective::latency);
        Scheduler::Totals with = scheduler.totals(c.planner->program(plan.partition(c.graph)));
        estimated.push_back(static_cast<double>(none.cost.cycles - plan.cost.cycles));
        scheduled.push_back(static_cast<double>(before.latency - with.latency));
        estimated_pj.push_back(none.cost.energy - plan.cost.energy);
        scheduled_pj.push_back(before.energy - with.energy);
        error += std::abs(estimated.back() - scheduled.back());
        all += std::abs(scheduled.back());
      }
      double cycles = correlation(ranks(estimated), ranks(scheduled));
      double energy = correlation(ranks(estimated_pj), ranks(scheduled_pj));
      std::cout << "[ MEASURED ] " << hardware << (write_back ? ", write back: " : ", kept on the chip: ")
                << estimated.size() << " groups, rank correlation of cycles saved " << cycles << ", of energy saved "
                << energy << ", mean error of cycles " << 100 * error / all << "% of the mean saving\n";
      EXPECT_GE(estimated.size(), 1000u);
      // Where much stays on the chip, what a group saves is mostly what others then need not evict: no property of it.
      if (write_back || hardware == std::string("fusemax")) {
        EXPECT_GT(cycles, 0.9);
        EXPECT_GT(energy, 0.9);
      }
    }
}

}  // namespace
}  // namespace monet
