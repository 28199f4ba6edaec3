// Candidates for fused groups against every subset of small random graphs, each tried by a checker that walks ways; and
// against the counts known of a training graph of 615 nodes.
#include "engine/fusion/candidates.h"

#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <functional>
#include <random>
#include <set>

#include "engine/schedule/partition.h"
#include "engine/training/training_graph.h"
#include "tests/engine/slow_build.h"
#include "tests/engine/training_models.h"

namespace monet {
namespace {

using Set = std::vector<UnitId>;
using Kind = UnitTraits::Kind;

std::vector<UnitEdge> data_edges(const std::vector<std::pair<UnitId, UnitId>>& pairs) {
  std::set<UnitEdge> edges;
  for (auto [from, to] : pairs) edges.insert({from, to, true});
  return {edges.begin(), edges.end()};
}

struct Random {
  size_t units;
  std::vector<UnitEdge> edges;
  std::vector<char> leaves;
  std::vector<UnitTraits> traits;

  Random(std::mt19937& random, size_t n) : units(n), leaves(n), traits(n) {
    std::map<std::pair<UnitId, UnitId>, bool> pairs;
    for (size_t v = 1; v < n; ++v)
      for (size_t i = 0, count = 1 + random() % 2; i < count; ++i) {
        // Mostly a unit near by, so that there are chains as well as branches.
        size_t back = random() % 4 ? 1 + random() % std::min<size_t>(v, 3) : 1 + random() % v;
        pairs[{static_cast<UnitId>(v - back), static_cast<UnitId>(v)}] = random() % 6 != 0;
      }
    for (auto [pair, data] : pairs) edges.push_back({pair.first, pair.second, data});
    for (char& leaf : leaves) leaf = random() % 5 == 0;
    for (UnitTraits& t : traits) {
      t.kind = static_cast<Kind>(random() % 5);
      t.weight_gradient = t.kind != Kind::update && random() % 4 == 0;
    }
  }
};

// The rules said once more, without numbers of units, bits or search.
bool allowed(const Random& graph, const FusionRules& rules, const Set& set) {
  auto in = [&](UnitId u) { return std::find(set.begin(), set.end(), u) != set.end(); };
  if (set.size() == 1) return true;
  if (rules.most_units > 0 && static_cast<int>(set.size()) > rules.most_units) return false;
  // Connected: everything is reached from the first, along edges with data either way.
  Set reached = {set.front()};
  for (size_t i = 0; i < reached.size(); ++i)
    for (auto [from, to, data] : graph.edges)
      for (auto [a, b] : {std::pair{from, to}, std::pair{to, from}})
        if (data && a == reached[i] && in(b) && std::find(reached.begin(), reached.end(), b) == reached.end())
          reached.push_back(b);
  if (reached.size() != set.size()) return false;
  // Convex: no way that has left the set comes back.
  std::function<bool(UnitId)> comes_back = [&](UnitId u) {
    for (auto [from, to, data] : graph.edges)
      if (from == u && (in(to) || comes_back(to))) return true;
    return false;
  };
  for (auto [from, to, data] : graph.edges)
    if (in(from) && !in(to) && comes_back(to)) return false;
  int convolutions = 0, products = 0, updates = 0, weight_gradients = 0, outputs = 0;
  for (UnitId u : set) {
    convolutions += graph.traits[u].kind == Kind::convolution;
    products += graph.traits[u].kind == Kind::product;
    updates += graph.traits[u].kind == Kind::update;
    weight_gradients += graph.traits[u].weight_gradient;
    bool outside = graph.leaves[u] || std::none_of(graph.edges.begin(), graph.edges.end(),
                                                   [&](const UnitEdge& edge) { return edge.from == u; });
    for (auto [from, to, data] : graph.edges) {
      outside |= from == u && !in(to);
      if (rules.activations_apart && from == u && in(to) && graph.traits[u].kind == Kind::product &&
          graph.traits[to].kind == Kind::activation)
        return false;
    }
    outputs += outside;
  }
  if (rules.updates_apart && updates && weight_gradients) return false;
  if (rules.one_output && outputs > 1) return false;
  if (rules.most_contractions > 0 && convolutions + products > rules.most_contractions) return false;
  return convolutions <= rules.most_convolutions && products <= rules.most_products;
}

TEST(Candidates, AreEverySetThatTheRulesAllow) {
  std::mt19937 random(3);
  size_t several = 0, not_allowed = 0, not_reached = 0;
  for (int i = 0; i < (kSlowBuild == 1 ? 400 : 100); ++i) {
    SCOPED_TRACE(i);
    Random made(random, 2 + random() % 11);
    FusionRules rules;
    rules.most_units = static_cast<int>(std::array<int, 4>{0, 3, 4, 6}[random() % 4]);
    rules.most_convolutions = 1 + static_cast<int>(random() % 3);
    rules.most_products = 1 + static_cast<int>(random() % 3);
    rules.most_contractions = i % 4 == 3 ? 1 + i % 8 / 4 : 0;
    rules.one_output = random() % 2;
    rules.updates_apart = random() % 2;
    rules.activations_apart = random() % 2;

    // A set is found by growing one that is found, so what lies on the way has to keep the rules too, but for outputs.
    FusionRules grown_by = rules;
    grown_by.one_output = false;
    std::vector<Set> expected;
    std::vector<char> grown(1u << made.units, 0);
    for (uint32_t bits = 1; bits < 1u << made.units; ++bits) {
      Set set;
      bool from_smaller = false;
      for (size_t u = 0; u < made.units; ++u)
        if (bits >> u & 1) {
          set.push_back(static_cast<UnitId>(u));
          from_smaller |= grown[bits & ~(1u << u)] != 0;
        }
      grown[bits] = set.size() == 1 || (from_smaller && allowed(made, grown_by, set));
      if (!grown[bits]) ++(allowed(made, grown_by, set) ? not_reached : not_allowed);
      if (grown[bits] && allowed(made, rules, set)) expected.push_back(set);
    }
    UnitGraph graph(made.edges, made.leaves);
    CandidateSearch::Found found = CandidateSearch(graph, made.traits, rules).find();
    EXPECT_TRUE(found.complete);
    std::sort(expected.begin(), expected.end());
    std::sort(found.sets.begin(), found.sets.end());
    EXPECT_EQ(found.sets, expected);
    several += expected.size() - made.units;
  }
  EXPECT_GT(several, kSlowBuild == 1 ? 3'000u : 600u);
  EXPECT_GT(not_allowed, several);
  EXPECT_LE(not_reached, several / 1000);  // only ways for scalars make any
}

TEST(Candidates, EndWhereTheyAreTooMany) {
  std::mt19937 random(5);
  Random made(random, 40);
  UnitGraph graph(made.edges, made.leaves);
  FusionRules rules;
  rules.most_units = 0;
  rules.most_convolutions = rules.most_products = 100;
  rules.most_candidates = 1000;
  CandidateSearch::Found found = CandidateSearch(graph, made.traits, rules).find();
  EXPECT_FALSE(found.complete);
  EXPECT_EQ(found.grown, 1000u);
  EXPECT_LE(found.sets.size(), 1000u);
  for (size_t u = 0; u < made.units; ++u) EXPECT_EQ(found.sets[u], Set{static_cast<UnitId>(u)});
}

TEST(Candidates, SayWhichRuleASetBreaks) {
  // conv 0 -> relu 1 -> conv 2 -> add 4, with a way around over 3; product 5 -> activation 6; gradient 7 -> update 8.
  std::vector<UnitTraits> traits(9);
  traits[0].kind = traits[2].kind = Kind::convolution;
  traits[1].kind = traits[6].kind = Kind::activation;
  traits[5].kind = traits[7].kind = Kind::product;
  traits[7].weight_gradient = true;
  traits[8].kind = Kind::update;
  UnitGraph graph(data_edges({{0, 1}, {1, 2}, {1, 3}, {2, 4}, {3, 4}, {4, 5}, {5, 6}, {5, 7}, {7, 8}}),
                  std::vector<char>(9, 0));
  FusionRules rules{
      .most_units = 4, .most_convolutions = 1, .most_products = 1, .updates_apart = true, .activations_apart = true};
  CandidateSearch search(graph, traits, rules);
  auto broken = [&](const Set& set) { return std::string(name(search.limit(set))); };
  EXPECT_EQ(broken({0}), "none");
  EXPECT_EQ(broken({0, 1}), "none");
  EXPECT_EQ(broken({0, 1, 2}), "convolutions");
  EXPECT_EQ(broken({2, 3, 4}), "none");
  EXPECT_EQ(broken({1, 2, 4}), "convex");
  EXPECT_EQ(broken({1, 2}), "outputs");
  EXPECT_EQ(broken({1, 2, 3, 4}), "none");
  EXPECT_EQ(broken({1, 2, 3, 4, 5}), "units");
  EXPECT_EQ(broken({5, 6}), "activations");
  EXPECT_EQ(broken({5, 7}), "products");
  EXPECT_EQ(broken({7, 8}), "updates");
}

// ResNet-18's training graph made by ONNX Runtime, node by node, groups of up to six: counts of an enumerator of all
// 26,164 connected sets.
TEST(Candidates, CountsOfATrainingGraphOf615Nodes) {
  std::filesystem::path file = std::filesystem::path(MONET_SHARED_DIR) / "oracles/monet-training/resnet18_full.onnx";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "no oracles at " << file;
  std::ifstream in(file, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  onnx::ModelProto model;
  ASSERT_TRUE(model.ParseFromString(bytes));
  std::map<std::string, UnitId> producer;
  std::vector<std::pair<UnitId, UnitId>> edges;
  std::vector<char> leaves(static_cast<size_t>(model.graph().node_size()), 0);
  UnitId at = 0;
  for (const onnx::NodeProto& node : model.graph().node()) {
    for (const std::string& input : node.input())
      if (producer.count(input)) edges.push_back({producer[input], at});
    for (const std::string& output : node.output()) producer[output] = at;
    ++at;
  }
  ASSERT_EQ(at, 615);
  for (const auto& output : model.graph().output()) leaves[producer.at(output.name())] = 1;
  UnitGraph graph(data_edges(edges), leaves);
  std::vector<UnitTraits> traits(static_cast<size_t>(at));
  FusionRules rules{.one_output = false};
  CandidateSearch::Found convex = CandidateSearch(graph, traits, rules).find();
  EXPECT_EQ(convex.sets.size(), 9032u);
  rules.one_output = true;
  EXPECT_EQ(CandidateSearch(graph, traits, rules).find().sets.size(), 3275u);
}

TEST(Candidates, TraitsOfATrainingStep) {
  ForwardGraph f;
  TensorId x = f.input("x", {2, 3, 8, 8});
  TensorId y = f.conv(x, "conv", {4, 3, 3, 3}, {2, 4, 8, 8}, {{"pads", std::vector<int64_t>(4, 1)}});
  y = f.same("Relu", f.batch_norm(y, "bn"), "relu");
  y = f.node("Flatten", {f.node("GlobalAveragePool", {y}, "pool", {2, 4, 1, 1})}, "flat", {2, 4});
  f.output(f.linear(y, "fc", 10));
  Graph graph = f.graph;
  assign_single_units(graph);
  graph = build_training_graph(graph, {.optimizer = Optimizer::adam}).graph;
  std::vector<UnitTraits> traits = unit_traits(graph);
  std::map<Kind, int> count;
  int weight_gradients = 0;
  for (const UnitTraits& t : traits) {
    ++count[t.kind];
    weight_gradients += t.weight_gradient;
  }
  EXPECT_EQ(count[Kind::convolution], 2);  // forward and weight gradient; the input needs none
  EXPECT_EQ(count[Kind::product], 3);
  EXPECT_EQ(count[Kind::activation], 1);
  EXPECT_EQ(count[Kind::update], 6);  // of conv's weight, bn's two and fc's two tensors; the scalars that they share
  EXPECT_EQ(weight_gradients, 2);
  UnitGraph units(graph, works(graph));
  // The order of groups is the scheduler's: each candidate has one, with all other units alone.
  CandidateSearch::Found found = CandidateSearch(units, traits, {}).find();
  EXPECT_GT(found.sets.size(), graph.units.size() + 8);
  for (const Set& set : found.sets) {
    Partition partition = {{{set}}};
    for (UnitId u = 0; u < static_cast<UnitId>(graph.units.size()); ++u)
      if (!std::binary_search(set.begin(), set.end(), u)) partition.groups.push_back({{u}});
    EXPECT_NO_THROW(group_order(graph, unit_edges(graph, works(graph)), partition));
  }
}

}  // namespace
}  // namespace monet
