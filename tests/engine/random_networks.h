// Random networks, and presets with other memories and bandwidths, for tests of schedules and of fusion.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "engine/hardware/accelerator.h"
#include "engine/training/training_graph.h"
#include "tests/engine/training_models.h"

namespace monet {

inline Accelerator preset(const std::string& name) {
  for (const Preset& p : hardware_presets())
    if (p.name == name) return parse_accelerator(p.json);
  ADD_FAILURE() << name;
  return {};
}

// The preset with every off-chip (or on-chip) number of that name multiplied.
inline Accelerator scaled(const std::string& name, double offchip_bandwidth, double memory) {
  Accelerator a = preset(name);
  for (size_t c = 0; c < a.cores.size(); ++c)
    for (Memory& m : a.cores[c].memories) {
      bool off = static_cast<int>(c) == a.offchip_core;
      if (off)
        for (Port& port : m.ports)
          port.bandwidth_max = static_cast<int64_t>(static_cast<double>(port.bandwidth_max) * offchip_bandwidth);
      if (!off && a.cores[c].instances(m) == 1) m.size = static_cast<int64_t>(static_cast<double>(m.size) * memory);
    }
  if (offchip_bandwidth != 1)
    for (Connection& connection : a.connections)
      connection.bandwidth = static_cast<int64_t>(static_cast<double>(connection.bandwidth) * offchip_bandwidth);
  return a;
}

inline Graph trained(const ForwardGraph& forward, Optimizer optimizer = Optimizer::sgd) {
  Graph graph = forward.graph;
  assign_single_units(graph);
  TrainingOptions options;
  options.optimizer = optimizer;
  return build_training_graph(graph, options).graph;
}

inline Graph inferred(const ForwardGraph& forward) {
  Graph graph = forward.graph;
  assign_single_units(graph);
  return graph;
}

// A convolutional network with branches, or a chain of matrix products.
inline ForwardGraph random_network(std::mt19937& random) {
  auto pick = [&](std::initializer_list<int64_t> list) { return list.begin()[random() % list.size()]; };
  ForwardGraph f;
  int64_t batch = pick({1, 2, 4}), size = pick({8, 12, 16}), channels = pick({3, 8, 16});
  TensorId y = f.input("x", {batch, channels, size, size});
  int layers = 2 + static_cast<int>(random() % 4);
  for (int i = 0; i < layers; ++i) {
    std::string name = "l" + std::to_string(i);
    int64_t out = pick({8, 12, 16}), kernel = pick({1, 3}), stride = size >= 8 ? pick({1, 2}) : 1;
    std::vector<int64_t> pads(4, kernel / 2);
    int64_t next = (size + 2 * (kernel / 2) - kernel) / stride + 1;
    TensorId z = f.conv(y, name + "conv", {out, channels, kernel, kernel}, {batch, out, next, next},
                        {{"pads", pads}, {"strides", std::vector<int64_t>{stride, stride}}});
    if (random() % 2) z = f.batch_norm(z, name + "bn");
    if (random() % 2) z = f.same("Relu", z, name + "relu");
    if (random() % 3 == 0)
      z = f.node("Add", {z, f.same("Sigmoid", z, name + "gate")}, name + "add", {batch, out, next, next});
    channels = out;
    size = next;
    y = z;
  }
  y = f.node("GlobalAveragePool", {y}, "pool", {batch, channels, 1, 1});
  y = f.node("Flatten", {y}, "flat", {batch, channels});
  f.output(f.linear(y, "fc", 10));
  return f;
}

// Units that read one or two of those before, so that there are branches, joins and ways around: convolutions of one
// pixel, Relu and Add over images of the same shape.
inline ForwardGraph random_branches(std::mt19937& random, int units) {
  ForwardGraph f;
  Shape shape = {2, 16, 8, 8};
  std::vector<TensorId> made = {f.input("x", shape)};
  std::vector<char> read = {1};
  for (int i = 0; i < units; ++i) {
    std::string name = "u" + std::to_string(i);
    auto any = [&] {
      size_t back = random() % 3 ? random() % std::min<size_t>(made.size(), 3) : random() % made.size();
      read[made.size() - 1 - back] = 1;
      return made[made.size() - 1 - back];
    };
    TensorId from = any();
    switch (random() % 4) {
      case 0:
        made.push_back(f.conv(from, name, {16, 16, 1, 1}, shape));
        break;
      case 1:
        made.push_back(f.same("Relu", from, name));
        break;
      default:
        made.push_back(f.node("Add", {from, any()}, name, shape));
    }
    read.push_back(0);
  }
  for (size_t i = 0; i < made.size(); ++i)
    if (!read[i]) f.output(made[i]);
  return f;
}

}  // namespace monet
