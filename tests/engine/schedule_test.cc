#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "engine/schedule/memory.h"
#include "engine/workload/work.h"

namespace monet {
namespace {

// A graph whose tensors are n floats each unless said otherwise, built by hand in execution order.
struct Sketch {
  Graph graph;

  TensorId tensor(const std::string& name, int64_t n, TensorKind kind = TensorKind::computed, TensorId of = kNone) {
    return graph.add(Tensor{.name = name, .dtype = DType::float32, .shape = {n}, .kind = kind, .of = of});
  }
  // Appends a node; `join` puts it into the unit of the node before.
  void node(const char* op, std::vector<TensorId> in, std::vector<TensorId> out, Phase phase = Phase::forward,
            bool join = false) {
    NodeId id = graph.add(Node{.op = op, .inputs = std::move(in), .outputs = std::move(out), .phase = phase});
    if (!join) graph.units.push_back(Unit{.op = op, .phase = phase});
    graph.units.back().nodes.push_back(id);
    graph.nodes[id].unit = static_cast<UnitId>(graph.units.size() - 1);
  }
  std::vector<int64_t> bytes() const {
    std::vector<int64_t> all;
    for (const Tensor& t : graph.tensors) all.push_back(monet::bytes(t));
    return all;
  }
};

BytesByCategory row(std::initializer_list<std::pair<MemoryCategory, int64_t>> entries) {
  BytesByCategory bytes{};
  for (auto [category, value] : entries) bytes[static_cast<size_t>(category)] = value;
  return bytes;
}

// y = relu(x W); loss = sum(y); dy; dW = x^T dz; W -= dW. Sizes in bytes: x 40, W 400, z 80, y 80, loss 4.
Sketch tiny_step() {
  Sketch s;
  TensorId x = s.tensor("x", 10, TensorKind::input), w = s.tensor("w", 100, TensorKind::parameter);
  TensorId z = s.tensor("z", 20), y = s.tensor("y", 20), loss = s.tensor("loss", 1);
  TensorId dy = s.tensor("dy", 20, TensorKind::computed, y), dz = s.tensor("dz", 20, TensorKind::computed, z);
  TensorId dw = s.tensor("dw", 100, TensorKind::computed, w), scaled = s.tensor("scaled", 100);
  TensorId updated = s.tensor("w_new", 100, TensorKind::computed, w);
  s.graph.inputs = {x, w};
  s.node("MatMul", {x, w}, {z});
  s.node("Relu", {z}, {y});
  s.node("ReduceSum", {y}, {loss}, Phase::loss);
  s.node("Expand", {loss}, {dy}, Phase::backward);
  s.node("Mul", {dy, y}, {dz}, Phase::backward);
  s.node("MatMul", {x, dz}, {dw}, Phase::backward);
  s.node("Mul", {dw, dw}, {scaled}, Phase::optimizer);
  s.node("Sub", {w, scaled}, {updated}, Phase::optimizer, true);
  s.graph.units.back().role = Role::update;
  s.graph.units.back().target = w;
  s.graph.outputs = {loss, updated};
  return s;
}

TEST(MemoryTimeline, FollowsTheStepByHand) {
  using enum MemoryCategory;
  Sketch s = tiny_step();
  MemoryTimeline m = memory(s.graph, s.bytes(), {});
  ASSERT_EQ(m.timeline.size(), 7u);
  EXPECT_EQ(m.timeline[0], row({{inputs, 40}, {parameters, 400}, {activations, 80}}));   // z
  EXPECT_EQ(m.timeline[1], row({{inputs, 40}, {parameters, 400}, {activations, 160}}));  // z, y
  EXPECT_EQ(m.timeline[2], row({{inputs, 40}, {parameters, 400}, {activations, 84}}));   // y, loss; z is gone
  EXPECT_EQ(m.timeline[3], row({{inputs, 40}, {parameters, 400}, {activations, 84}, {activation_gradients, 80}}));
  EXPECT_EQ(m.timeline[4], row({{inputs, 40}, {parameters, 400}, {activations, 80}, {activation_gradients, 160}}));
  EXPECT_EQ(m.timeline[5], row({{inputs, 40}, {parameters, 400}, {activation_gradients, 80}, {gradients, 400}}));
  // The update overwrites w, and its inner product streams.
  EXPECT_EQ(m.timeline[6], row({{inputs, 40}, {parameters, 400}, {gradients, 400}}));
  EXPECT_EQ(m.peak, 40 + 400 + 80 + 400);
  EXPECT_EQ(m.peak_at, 5u);
}

TEST(MemoryTimeline, MasterWeightsAndKeptOutputs) {
  using enum MemoryCategory;
  Sketch s = tiny_step();
  TensorId w = 1;
  MemoryTimeline m = memory(s.graph, s.bytes(), {.master_weights = {w}, .keep_outputs = true});
  for (const BytesByCategory& at : m.timeline) EXPECT_EQ(at[static_cast<size_t>(master_weights)], 400);
  EXPECT_EQ(m.timeline.back()[static_cast<size_t>(activations)], 4) << "the loss is an output and kept";
}

TEST(MemoryTimeline, ViewsShareBytes) {
  using enum MemoryCategory;
  Sketch s;
  TensorId x = s.tensor("x", 10, TensorKind::input), a = s.tensor("a", 100), b = s.tensor("b", 100);
  TensorId c = s.tensor("c", 5);
  s.node("Relu", {x}, {a});
  s.node("Reshape", {a}, {b});
  s.node("MatMul", {b, x}, {c});
  s.graph.outputs = {c};
  MemoryTimeline m = memory(s.graph, s.bytes(), {});
  EXPECT_EQ(m.timeline[1], row({{inputs, 40}, {activations, 400}}));
  EXPECT_EQ(m.timeline[2], row({{inputs, 40}, {activations, 420}})) << "read through the view, so still held";
}

TEST(MemoryTimeline, TheFirstGradientIsMadeByTheLoss) {
  using enum MemoryCategory;
  Sketch s;
  TensorId y = s.tensor("y", 10, TensorKind::input), w = s.tensor("w", 10, TensorKind::parameter);
  TensorId loss = s.tensor("loss", 1), dy = s.tensor("dy", 10), dw = s.tensor("dw", 10, TensorKind::computed, w);
  s.node("ReduceSum", {y}, {loss}, Phase::loss);
  s.node("Expand", {loss}, {dy}, Phase::loss);
  s.graph.units.back().role = Role::gradient;
  s.node("Mul", {dy, w}, {dw}, Phase::backward);
  s.graph.outputs = {loss, dw};
  MemoryTimeline m = memory(s.graph, s.bytes(), {});
  EXPECT_EQ(m.timeline[1], row({{inputs, 40}, {parameters, 40}, {activations, 4}, {activation_gradients, 40}}));
  EXPECT_EQ(m.timeline[2], row({{inputs, 40}, {parameters, 40}, {activation_gradients, 40}, {gradients, 40}}));
}

TEST(MemoryTimeline, WorkspaceOfLayoutMoves) {
  using enum MemoryCategory;
  Sketch s;
  TensorId x = s.tensor("x", 10, TensorKind::input), t1 = s.tensor("t1", 10), t2 = s.tensor("t2", 20);
  TensorId y = s.tensor("y", 3);
  s.node("Transpose", {x}, {t1});
  s.node("Transpose", {x}, {t2}, Phase::forward, true);
  s.node("Conv", {t1, t2}, {y}, Phase::forward, true);
  s.graph.outputs = {y};
  MemoryTimeline m = memory(s.graph, s.bytes(), {});
  EXPECT_EQ(m.timeline[0], row({{inputs, 40}, {activations, 12}, {workspace, 120}}));
}

TEST(ExecutionOrder, ImmediateUpdatesWaitForLastReaderOfTheParameter) {
  // Units: 0 forward, 1 dW of w (from x), 2 dX (reads w), 3 dV, 4 update w, 5 update v.
  Sketch s;
  TensorId x = s.tensor("x", 1, TensorKind::input), w = s.tensor("w", 1, TensorKind::parameter);
  TensorId v = s.tensor("v", 1, TensorKind::parameter), y = s.tensor("y", 1);
  TensorId dw = s.tensor("dw", 1, TensorKind::computed, w), dx = s.tensor("dx", 1),
           dv = s.tensor("dv", 1, TensorKind::computed, v);
  TensorId w2 = s.tensor("w2", 1, TensorKind::computed, w), v2 = s.tensor("v2", 1, TensorKind::computed, v);
  s.node("MatMul", {x, w}, {y});
  s.node("MatMul", {x, y}, {dw}, Phase::backward);
  s.node("MatMul", {y, w}, {dx}, Phase::backward);
  s.node("MatMul", {dx, x}, {dv}, Phase::backward);
  s.node("Sub", {w, dw}, {w2}, Phase::optimizer);
  s.graph.units.back().target = w;
  s.node("Sub", {v, dv}, {v2}, Phase::optimizer);
  s.graph.units.back().target = v;
  EXPECT_EQ(execution_order(s.graph, false), (std::vector<UnitId>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(execution_order(s.graph, true), (std::vector<UnitId>{0, 1, 2, 4, 3, 5}));
}

// The timeline against a plain simulation that keeps a set of live tensors, on random graphs of single-node units.
TEST(MemoryTimeline, EqualsPlainSimulationOnRandomGraphs) {
  std::mt19937 random(7);
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 200; ++round) {
    Sketch s;
    std::vector<TensorId> known = {s.tensor("x", 1 + below(50), TensorKind::input)};
    int nodes = 2 + below(30);
    std::vector<bool> read;
    for (int i = 0; i < nodes; ++i) {
      std::vector<TensorId> in = {known[below(static_cast<int>(known.size()))],
                                  known[below(static_cast<int>(known.size()))]};
      TensorId out = s.tensor("t" + std::to_string(i), 1 + below(50));
      s.node("MatMul", in, {out});
      known.push_back(out);
    }
    s.graph.outputs = {known.back()};
    std::vector<int64_t> sizes = s.bytes();
    MemoryTimeline m = memory(s.graph, sizes, {});
    for (int i = 0; i < nodes; ++i) {
      int64_t live = sizes[0];
      for (int made = 0; made <= i; ++made) {
        TensorId t = s.graph.nodes[made].outputs[0];
        bool needed = made == i;
        for (int later = i; later < nodes; ++later)
          for (TensorId in : s.graph.nodes[later].inputs) needed = needed || in == t;
        if (needed) live += sizes[t];
      }
      ASSERT_EQ(total(m.timeline[i]), live) << "round " << round << ", node " << i;
    }
  }
}

TEST(LargestBatch, EqualsTryingEveryBatch) {
  // Two tensors grow with the batch, the parameter does not.
  auto step = [](int64_t batch) {
    Sketch s;
    TensorId x = s.tensor("x", 3 * batch, TensorKind::input), w = s.tensor("w", 100, TensorKind::parameter);
    TensorId a = s.tensor("a", 7 * batch), b = s.tensor("b", 2 * batch), c = s.tensor("c", 1);
    s.node("MatMul", {x, w}, {a});
    s.node("MatMul", {a, w}, {b});
    s.node("ReduceSum", {b}, {c});
    s.graph.outputs = {c};
    return s;
  };
  for (int64_t capacity : {100, 400, 447, 448, 449, 1000, 12345, 99999}) {
    int64_t expected = 0;
    while (memory(step(expected + 1).graph, step(expected + 1).bytes(), {}).peak <= capacity) ++expected;
    Sketch one = step(5), two = step(10);
    std::vector<int64_t> bytes_one = one.bytes(), bytes_two = two.bytes();
    EXPECT_EQ(largest_batch(one.graph, {5, bytes_one}, {10, bytes_two}, {}, capacity), expected) << capacity;
  }
}

TEST(LargestBatch, UnboundedWhenNothingGrows) {
  Sketch s;
  TensorId x = s.tensor("x", 3, TensorKind::input), y = s.tensor("y", 3);
  s.node("Relu", {x}, {y});
  s.graph.outputs = {y};
  std::vector<int64_t> bytes = s.bytes();
  EXPECT_EQ(largest_batch(s.graph, {1, bytes}, {2, bytes}, {}, 24), kEveryBatch);
  EXPECT_EQ(largest_batch(s.graph, {1, bytes}, {2, bytes}, {}, 23), 0);
}

}  // namespace
}  // namespace monet
