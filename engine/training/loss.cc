#include "engine/training/loss.h"

namespace monet {

namespace {

constexpr size_t kMinRankOfMaps = 4;  // from here on [N, C, H, W, ...], below [N, ..., C]

const Node* producer(const Graph& graph, TensorId t) {
  NodeId id = graph.tensors[t].producer;
  return id == kNone ? nullptr : &graph.nodes[id];
}

bool makes_probabilities(const Node* node) {
  return node && node->domain.empty() && (node->op == "Softmax" || node->op == "LogSoftmax");
}

int64_t class_axis(const Graph& graph, TensorId output) {
  int64_t rank = static_cast<int64_t>(graph.tensors[output].shape.size());
  const Node* node = producer(graph, output);
  if (makes_probabilities(node)) {
    int64_t axis = attribute(*node, "axis", int64_t{-1});
    return axis < 0 ? axis + rank : axis;
  }
  return rank >= static_cast<int64_t>(kMinRankOfMaps) ? 1 : rank - 1;
}

void begin(Builder& b, const char* op, Role role) { b.begin_unit({.op = op, .role = role, .phase = Phase::loss}); }

// Softmax cross entropy, decomposed so that the class axis may be anywhere and every operator has a kernel in any ONNX
// runtime. Kept for the gradient: the log-probabilities, as in PyTorch.
//   loss = -mean(logp[label]),  dlogits = (exp(logp) - onehot(label)) / count
void cross_entropy(Builder& b, TensorId output, LossNodes& loss, std::vector<Diagnostic>& warnings) {
  constexpr const char* kName = "SoftmaxCrossEntropyLoss";
  const Graph& graph = b.graph();
  int64_t axis = class_axis(graph, output);
  Shape shape = b.shape(output);
  DType type = b.dtype(output);
  Shape label_shape = shape, column = shape;
  label_shape.erase(label_shape.begin() + axis);
  column[axis] = 1;
  double count = static_cast<double>(elements(label_shape));

  loss.reads = loss.differentiated = output;
  TensorId log_probabilities = kNone;
  const Node* last = producer(graph, output);
  if (makes_probabilities(last)) {
    // The softmax is part of the loss: differentiating both together is exact and stable.
    loss.differentiated = last->inputs[0];
    if (last->op == "LogSoftmax") {
      log_probabilities = output;
    } else {
      loss.reads = last->inputs[0];
    }
    warnings.push_back({"softmax-output",
                        "output " + graph.tensors[output].name + " is already made by " + last->op +
                            ": cross entropy is taken of what goes into it, not of a softmax of it",
                        label(graph, graph.tensors[output].producer), graph.tensors[output].name,
                        "nothing to do; export the model without it to train on logits as PyTorch does"});
  }
  TensorId labels =
      b.add_tensor({.name = "labels", .dtype = DType::int64, .shape = label_shape, .kind = TensorKind::label});
  loss.labels = {labels};

  begin(b, kName, Role::forward);
  if (log_probabilities == kNone) log_probabilities = b.emit("LogSoftmax", {loss.reads}, shape, {{"axis", axis}});
  TensorId index = b.reshape(labels, column);
  TensorId picked = b.emit("GatherElements", {log_probabilities, index}, column, {{"axis", axis}});
  TensorId mean = b.emit("ReduceMean", {picked}, {}, {{"keepdims", int64_t{0}}});
  loss.value = b.unary("Neg", mean);

  begin(b, kName, Role::gradient);
  TensorId share = b.scaled(b.unary("Exp", log_probabilities), 1 / count);
  loss.gradient = b.emit("ScatterElements", {share, index, b.filled(column, -1 / count, type)}, shape,
                         {{"axis", axis}, {"reduction", std::string("add")}});
}

// loss = mean((Y - T)^2), dY = 2 (Y - T) / elements
void mean_squared_error(Builder& b, TensorId output, LossNodes& loss) {
  constexpr const char* kName = "MeanSquaredError";
  loss.reads = loss.differentiated = output;
  TensorId target =
      b.add_tensor({.name = "target", .dtype = b.dtype(output), .shape = b.shape(output), .kind = TensorKind::label});
  loss.labels = {target};
  begin(b, kName, Role::forward);
  TensorId difference = b.sub(output, target);
  loss.value = b.emit("ReduceMean", {b.mul(difference, difference)}, {}, {{"keepdims", int64_t{0}}});
  begin(b, kName, Role::gradient);
  loss.gradient = b.scaled(difference, 2 / static_cast<double>(elements(b.shape(output))));
}

void sum(Builder& b, TensorId output, LossNodes& loss) {
  constexpr const char* kName = "ReduceSum";
  loss.reads = loss.differentiated = output;
  begin(b, kName, Role::forward);
  loss.value = b.emit("ReduceSum", {output}, {}, {{"keepdims", int64_t{0}}});
  begin(b, kName, Role::gradient);
  loss.gradient = b.filled(b.shape(output), 1, b.dtype(output));
}

}  // namespace

Loss choose_loss(const Graph& graph, TensorId output, Loss asked) {
  if (asked != Loss::automatic) return asked;
  const Shape& shape = graph.tensors[output].shape;
  // One class has nothing to choose from: a regression.
  return shape.size() >= 2 && shape[class_axis(graph, output)] > 1 ? Loss::cross_entropy : Loss::mse;
}

LossNodes add_loss(Builder& b, TensorId output, Loss kind, std::vector<Diagnostic>& warnings) {
  LossNodes loss;
  loss.kind = kind;
  if (kind == Loss::cross_entropy) {
    cross_entropy(b, output, loss, warnings);
  } else if (kind == Loss::mse) {
    mean_squared_error(b, output, loss);
  } else {
    sum(b, output, loss);
  }
  return loss;
}

}  // namespace monet
