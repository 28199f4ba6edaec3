#include <gtest/gtest.h>

#include "engine/cost/bounds.h"

namespace monet {
namespace {

// Two compute cores of 4 x 8 MACs at 0.5 pJ and a vector core of 16 lanes at 0.25 pJ; a DRAM port of 32 bit/cycle, 640
// pJ a word to read and 320 to write.
Accelerator hardware(int64_t rows = 4, int64_t port = 32) {
  Accelerator a;
  for (int id = 0; id < 2; ++id) {
    Core core;
    core.id = id;
    core.type = "compute";
    core.runs_contractions = true;
    core.dimensions = {"D1", "D2"};
    core.sizes = {rows, 8};
    core.unit_energy = 0.5;
    a.cores.push_back(core);
  }
  Core vector;
  vector.id = 2;
  vector.type = "simd";
  vector.dimensions = {"D1"};
  vector.sizes = {16};
  vector.unit_energy = 0.25;
  a.cores.push_back(vector);
  Core dram;
  dram.id = 3;
  dram.type = "memory";
  Memory memory;
  memory.size = 1 << 20;
  memory.read_cost = 640;
  memory.write_cost = 320;
  memory.operands = {"I1", "I2", "O"};
  memory.ports = {Port{"rw", Port::Type::read_write, port, port, {}}};
  dram.memories = {memory};
  a.cores.push_back(dram);
  a.offchip_core = 3;
  return a;
}

// y = relu(x w), loss and gradients left out, then w' = w - lr g with m' = m + g, as a training step has them:
// x [8, 16], w [16, 4], h = x w [8, 4], y = relu(h), g (of w) from y, w' and m' updated by one optimizer unit.
struct Step {
  Graph graph;
  TensorId x, w, h, y, g, lr, m, w2, m2, d, t;

  TensorId tensor(const std::string& name, Shape shape, TensorKind kind, TensorId of = kNone) {
    Tensor tensor;
    tensor.name = name;
    tensor.shape = std::move(shape);
    tensor.kind = kind;
    tensor.dtype = DType::float32;
    tensor.of = of;
    return graph.add(std::move(tensor));
  }
  NodeId node(const std::string& op, std::vector<TensorId> in, std::vector<TensorId> out, Phase phase) {
    Node n;
    n.op = op;
    n.inputs = std::move(in);
    n.outputs = std::move(out);
    n.phase = phase;
    return graph.add(std::move(n));
  }
  void unit(std::vector<NodeId> nodes, Role role, NodeId origin, NodeId contraction, TensorId target) {
    Unit u;
    u.nodes = std::move(nodes);
    u.role = role;
    u.origin = origin;
    u.contraction = contraction;
    u.target = target;
    u.phase = graph.nodes[u.nodes[0]].phase;
    for (NodeId n : u.nodes) graph.nodes[n].unit = static_cast<UnitId>(graph.units.size());
    graph.units.push_back(u);
  }

  Step() {
    x = tensor("x", {8, 16}, TensorKind::input);
    w = tensor("w", {16, 4}, TensorKind::parameter);
    h = tensor("h", {8, 4}, TensorKind::computed);
    y = tensor("y", {8, 4}, TensorKind::computed);
    t = tensor("x_transposed", {16, 8}, TensorKind::computed);
    g = tensor("g", {16, 4}, TensorKind::computed, w);
    lr = tensor("lr", {}, TensorKind::scalar);
    m = tensor("m", {16, 4}, TensorKind::state, w);
    d = tensor("d", {16, 4}, TensorKind::computed);
    w2 = tensor("w_updated", {16, 4}, TensorKind::computed, w);
    m2 = tensor("m_updated", {16, 4}, TensorKind::computed, m);
    unit({node("MatMul", {x, w}, {h}, Phase::forward)}, Role::forward, 0, 0, kNone);
    unit({node("Relu", {h}, {y}, Phase::forward)}, Role::forward, 1, kNone, kNone);
    unit({node("Transpose", {x}, {t}, Phase::backward), node("MatMul", {t, y}, {g}, Phase::backward)},
         Role::weight_gradient, 0, 3, w);
    unit({node("Add", {m, g}, {m2}, Phase::optimizer), node("Mul", {m2, lr}, {d}, Phase::optimizer),
          node("Sub", {w, d}, {w2}, Phase::optimizer)},
         Role::update, kNone, kNone, w);
    graph.outputs = {y, w2, m2};
  }
};

TEST(Bounds, UnitsByHand) {
  Step s;
  Accelerator a = hardware();
  std::vector<Work> all = works(s.graph);
  // MatMul: 8 x 16 x 4 = 512 MACs on 64 units; x 512 B, w 256 B, h 128 B over 4 B a cycle; the cheaper access of DRAM
  // costs 320 pJ / 32 bit = 10 pJ a bit.
  Bound matmul = unit_bound(s.graph, s.graph.units[0], all[0], a, Precision{});
  EXPECT_EQ(matmul.compute_cycles, 8);
  EXPECT_EQ(matmul.traffic_bytes, 896);
  EXPECT_EQ(matmul.traffic_cycles, 224);
  EXPECT_EQ(matmul.cycles(), 224);
  EXPECT_EQ(matmul.compute_energy, 256);
  EXPECT_EQ(matmul.traffic_energy, 896 * 8 * 10);
  EXPECT_EQ(matmul.energy(), 256 + 71680);
  // Relu: 32 operations on 2 x 32 + 16 = 80 units, the cheapest at 0.25 pJ; 128 B in and 128 B out.
  Bound relu = unit_bound(s.graph, s.graph.units[1], all[1], a, Precision{});
  EXPECT_EQ(relu.compute_cycles, 0.4);
  EXPECT_EQ(relu.compute_energy, 8);
  EXPECT_EQ(relu.traffic_bytes, 256);
  // Weight gradient: the same 512 MACs; x 512 B, y 128 B, g 256 B, x transposed stays inside.
  Bound gradient = unit_bound(s.graph, s.graph.units[2], all[2], a, Precision{});
  EXPECT_EQ(gradient.compute_cycles, 8);
  EXPECT_EQ(gradient.traffic_bytes, 896);
  // Update: 3 x 64 operations; m, g, w in, m', w' out, 256 B each, lr 4 B.
  Bound update = unit_bound(s.graph, s.graph.units[3], all[3], a, Precision{});
  EXPECT_EQ(update.compute_cycles, 192.0 / 80);
  EXPECT_EQ(update.traffic_bytes, 5 * 256 + 4);
}

TEST(Bounds, TotalByHand) {
  Step s;
  Accelerator a = hardware();
  Bound total = total_bound(s.graph, works(s.graph), a, Precision{});
  // 1024 MACs and 32 + 192 operations: max(1024 / 64, 1248 / 80) = 16.
  EXPECT_EQ(total.compute_cycles, 16);
  EXPECT_EQ(total.compute_energy, 1024 * 0.5 + 224 * 0.25);
  // In: x 512, w 256, m 256, lr 4; out: y 128, w' 256, m' 256. h, g and the rest stay on the chip.
  EXPECT_EQ(total.traffic_bytes, 512 + 256 + 256 + 4 + 128 + 256 + 256);
  EXPECT_EQ(total.traffic_cycles, 417);
  EXPECT_EQ(total.traffic_energy, 1668 * 80);
}

TEST(Bounds, VectorWorkSharesTheUnits) {
  Step s;
  Work work;
  work.macs = 640;
  work.operations = 960;
  Bound bound = total_bound(s.graph, {work}, hardware(), Precision{});
  EXPECT_EQ(bound.compute_cycles, 20);  // (640 + 960) / 80, above 640 / 64 = 10
}

TEST(Bounds, PrecisionSetsTheBytes) {
  Step s;
  std::vector<Work> all = works(s.graph);
  Precision half = precision_named("fp16").value();
  EXPECT_EQ(unit_bound(s.graph, s.graph.units[0], all[0], hardware(), half).traffic_bytes, 448);
  // Mixed: x, w, y 2 B; m and m' 4 B; w as fp32 in (256 B, the working copy follows), fp32 and working copy out; lr 4
  // B.
  Precision mixed = precision_named("mixed_bf16").value();
  EXPECT_EQ(total_bound(s.graph, all, hardware(), mixed).traffic_bytes, 256 + 256 + 256 + 4 + 64 + (256 + 128) + 256);
  // The update alone: m 256, g 128, w 256, lr 4 in; m' 256, w' 256 + 128 out.
  EXPECT_EQ(unit_bound(s.graph, s.graph.units[3], all[3], hardware(), mixed).traffic_bytes,
            256 + 128 + 256 + 4 + 256 + 384);
}

TEST(Bounds, SelectedRowsOnly) {
  Step s;
  TensorId table = s.tensor("table", {1000, 16}, TensorKind::parameter);
  TensorId ids = s.tensor("ids", {3}, TensorKind::input);
  s.graph.tensors[ids].dtype = DType::int64;
  TensorId rows = s.tensor("rows", {3, 16}, TensorKind::computed);
  s.unit({s.node("Gather", {table, ids}, {rows}, Phase::forward)}, Role::forward, 7, kNone, kNone);
  s.graph.outputs.push_back(rows);
  std::vector<Work> all = works(s.graph);
  // 3 rows of 64 B in and out, 3 indices of 8 B.
  EXPECT_EQ(unit_bound(s.graph, s.graph.units.back(), all.back(), hardware(), Precision{}).traffic_bytes,
            192 + 24 + 192);
  EXPECT_EQ(total_bound(s.graph, {all.back()}, hardware(), Precision{}).traffic_bytes, 192 + 24 + 192);
}

TEST(Bounds, ConstantsCrossNothing) {
  Step s;
  s.graph.tensors[s.lr].kind = TensorKind::constant;
  EXPECT_EQ(total_bound(s.graph, works(s.graph), hardware(), Precision{}).traffic_bytes, 1664);
}

TEST(Bounds, TotalIsBelowTheSumOfItsUnits) {
  Step s;
  Accelerator a = hardware();
  std::vector<Work> all = works(s.graph);
  double cycles = 0, energy = 0, bytes = 0;
  for (size_t u = 0; u < all.size(); ++u) {
    Bound bound = unit_bound(s.graph, s.graph.units[u], all[u], a, Precision{});
    cycles += bound.cycles();
    energy += bound.energy();
    bytes += static_cast<double>(bound.traffic_bytes);
  }
  Bound total = total_bound(s.graph, all, a, Precision{});
  EXPECT_LE(total.cycles(), cycles);
  EXPECT_LE(total.energy(), energy);
  EXPECT_LT(static_cast<double>(total.traffic_bytes), bytes);
}

TEST(Bounds, MoreHardwareIsNeverSlower) {
  Step s;
  std::vector<Work> all = works(s.graph);
  double last_compute = 1e30, last_traffic = 1e30;
  for (int64_t scale : {1, 2, 3, 8, 64}) {
    Bound bound = total_bound(s.graph, all, hardware(4 * scale, 32 * scale), Precision{});
    EXPECT_LT(bound.compute_cycles, last_compute);
    EXPECT_LT(bound.traffic_cycles, last_traffic);
    last_compute = bound.compute_cycles;
    last_traffic = bound.traffic_cycles;
  }
}

TEST(Bounds, WithoutOffchipMemoryTrafficIsUnbounded) {
  Step s;
  Accelerator a = hardware();
  a.cores.pop_back();
  a.offchip_core = -1;
  Bound bound = total_bound(s.graph, works(s.graph), a, Precision{});
  EXPECT_EQ(bound.traffic_cycles, 0);
  EXPECT_EQ(bound.traffic_energy, 0);
  EXPECT_EQ(bound.traffic_bytes, 1668);
  EXPECT_EQ(bound.cycles(), 16);
}

}  // namespace
}  // namespace monet
