// Forward graphs written by hand for the tests of engine/training/.
#pragma once

#include <string>
#include <vector>

#include "engine/ir/graph.h"

namespace monet {

struct ForwardGraph {
  Graph graph;

  TensorId tensor(const std::string& name, const Shape& shape, TensorKind kind = TensorKind::computed,
                  DType type = DType::float32, std::string data = "") {
    Tensor tensor;
    tensor.name = name;
    tensor.dtype = type;
    tensor.shape = shape;
    tensor.kind = kind;
    tensor.data = std::move(data);
    TensorId id = graph.add(std::move(tensor));
    if (kind == TensorKind::input || kind == TensorKind::parameter || kind == TensorKind::buffer)
      graph.inputs.push_back(id);
    return id;
  }
  TensorId input(const std::string& name, const Shape& shape) { return tensor(name, shape, TensorKind::input); }
  TensorId parameter(const std::string& name, const Shape& shape) { return tensor(name, shape, TensorKind::parameter); }
  // A node named after its output.
  TensorId node(const std::string& op, const std::vector<TensorId>& inputs, const std::string& output,
                const Shape& shape, std::vector<Attribute> attributes = {}) {
    TensorId result = tensor(output, shape);
    Node node;
    node.name = output;
    node.op = op;
    node.inputs = inputs;
    node.outputs = {result};
    node.attributes = std::move(attributes);
    graph.add(std::move(node));
    return result;
  }
  void output(TensorId t) { graph.outputs.push_back(t); }

  TensorId conv(TensorId x, const std::string& name, const Shape& weight, const Shape& shape,
                std::vector<Attribute> attributes = {}) {
    return node("Conv", {x, parameter(name + ".weight", weight)}, name, shape, std::move(attributes));
  }
  TensorId batch_norm(TensorId x, const std::string& name) {
    Shape shape = graph.tensors[x].shape, channels = {shape[1]};
    TensorId scale = parameter(name + ".weight", channels), bias = parameter(name + ".bias", channels);
    TensorId mean = tensor(name + ".mean", channels, TensorKind::buffer);
    TensorId variance = tensor(name + ".var", channels, TensorKind::buffer);
    return node("BatchNormalization", {x, scale, bias, mean, variance}, name, shape);
  }
  TensorId linear(TensorId x, const std::string& name, int64_t columns) {
    Shape shape = graph.tensors[x].shape;
    TensorId weight = parameter(name + ".weight", {columns, shape[1]}), bias = parameter(name + ".bias", {columns});
    return node("Gemm", {x, weight, bias}, name, {shape[0], columns}, {{"transB", int64_t{1}}});
  }
  TensorId same(const std::string& op, TensorId x, const std::string& name) {
    return node(op, {x}, name, graph.tensors[x].shape);
  }
};

// conv -> batch norm -> relu -> max pooling -> flatten -> linear, batch 2, 8x8 images, 10 classes.
inline ForwardGraph small_network() {
  ForwardGraph f;
  TensorId x = f.input("x", {2, 3, 8, 8});
  TensorId y = f.conv(x, "conv1", {4, 3, 3, 3}, {2, 4, 8, 8}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  y = f.same("Relu", f.batch_norm(y, "bn1"), "relu1");
  y = f.node("MaxPool", {y}, "pool", {2, 4, 4, 4},
             {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  y = f.conv(y, "conv2", {6, 4, 1, 1}, {2, 6, 4, 4});
  y = f.node("Flatten", {y}, "flat", {2, 96});
  f.output(f.linear(y, "fc", 10));
  return f;
}

}  // namespace monet
