// Gradients of ONNX's loss operators where a model has them as nodes. (The loss that training adds itself is in
// loss.cc.)
#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

// How much each label's negative log-likelihood weighs in what flows back, and where it stands.
struct LabelTerms {
  TensorId index;   // labels as a column along the class axis, [N, 1, ...]; ignored ones are class 0
  TensorId factor;  // dY * weight of the label / sum of weights for the mean, of the same shape; 0 for ignored ones
};

bool labels_fit(Backward& g) {
  Shape scores = g.shape(g.input(0)), labels = g.shape(g.input(1));
  bool fit = scores.size() >= 2;
  if (fit) {
    int64_t classes = scores[1];
    scores.erase(scores.begin() + 1);
    fit = labels == scores && (g.input(2) == kNone || g.shape(g.input(2)) == Shape{classes});
  }
  if (!fit)
    g.refuse("its labels or weights do not fit its scores",
             "give it scores [N, C, ...], labels [N, ...] and weights [C]");
  return fit;
}

// Inputs of the node: scores [N, C, ...], labels [N, ...], weights [C] (optional).
LabelTerms label_terms(Backward& g) {
  Builder& b = g.b;
  TensorId labels = g.input(1), dy = g.gradient(), weight = kNone;
  Shape shape = g.shape(labels), column = shape;
  column.insert(column.begin() + 1, 1);
  DType type = b.dtype(dy), label_type = b.dtype(labels);
  TensorId ignored = kNone;
  if (find_attribute(g.node, "ignore_index")) {
    double index = static_cast<double>(attribute(g.node, "ignore_index", int64_t{0}));
    ignored = b.compare("Equal", labels, b.scalar(index, label_type));
    labels = b.where(ignored, b.scalar(0, label_type), labels);
  }
  if (g.input(2) != kNone) weight = b.emit("Gather", {g.input(2), labels}, shape);
  if (ignored != kNone) weight = b.clear_where(ignored, weight == kNone ? b.scalar(1, type) : weight);

  TensorId factor = dy;  // [] or, without a reduction, of the labels' shape
  if (attribute(g.node, "reduction", "mean") == "mean") {
    std::vector<int64_t> axes;
    for (size_t i = 0; i < shape.size(); ++i) axes.push_back(static_cast<int64_t>(i));
    factor = weight == kNone ? b.scaled(dy, 1 / static_cast<double>(elements(shape)))
                             : b.div(dy, b.reduce("ReduceSum", weight, axes, false));
  }
  if (weight != kNone) factor = b.mul(factor, weight);
  return {b.reshape(labels, column), b.reshape(b.expand(factor, shape), column)};
}

// `into` with the negated factors added at the labels.
TensorId subtract_at_labels(Builder& b, TensorId into, const LabelTerms& terms) {
  return b.emit("ScatterElements", {into, terms.index, b.unary("Neg", terms.factor)}, b.shape(into),
                {{"axis", int64_t{1}}, {"reduction", std::string("add")}});
}

}  // namespace

// dX = factor * (softmax(X) - onehot(label)), from the log-probabilities as in PyTorch; what flows into the second
// output, the log-probabilities, comes on top as for LogSoftmax.
void softmax_cross_entropy_loss_gradient(Backward& g) {
  if (!labels_fit(g)) return;
  Builder& b = g.b;
  Shape x = g.shape(g.input(0));
  TensorId log_probabilities = g.saved_output(1, b.dtype(g.input(0)), x);
  TensorId probabilities = b.unary("Exp", log_probabilities), dx = kNone;
  if (g.gradient() != kNone) {
    LabelTerms terms = label_terms(g);
    dx = subtract_at_labels(b, b.mul(probabilities, terms.factor), terms);
  }
  if (TensorId dy = g.gradient(1); dy != kNone) {
    TensorId through = b.sub(dy, b.mul(probabilities, b.reduce("ReduceSum", dy, {1}, true)));
    dx = dx == kNone ? through : b.add(dx, through);
  }
  g.give(0, dx);
}

void negative_log_likelihood_loss_gradient(Backward& g) {
  if (!labels_fit(g)) return;
  TensorId zeros = g.b.filled(g.shape(g.input(0)), 0, g.b.dtype(g.input(0)));
  g.give(0, subtract_at_labels(g.b, zeros, label_terms(g)));
}

}  // namespace monet
