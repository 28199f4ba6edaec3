#include "engine/training/optimizers.h"

#include <map>

namespace monet {

namespace {

const char* display_name(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd:
      return "SGD";
    case Optimizer::momentum:
      return "Momentum";
    case Optimizer::adam:
      return "Adam";
  }
  return "";
}

class Updates {
 public:
  explicit Updates(Builder& b) : b_(b) {}
  std::vector<TensorId> outputs;

  // p' = p - lr * g (Robbins and Monro, 1951).
  void sgd(TensorId parameter, TensorId gradient) {
    descend(parameter, b_.mul(gradient, learning_rate(b_.dtype(parameter))));
  }

  // v' = mu * v + g, p' = p - lr * v' (Polyak 1964, as PyTorch writes it: Sutskever et al., ICML 2013, scale the
  // gradient instead). A state of zeros makes the first step PyTorch's, whose buffer starts as the gradient.
  void momentum(TensorId parameter, TensorId gradient) {
    constexpr double kMomentum = 0.9;
    TensorId velocity = state(parameter, "momentum");
    TensorId next = keep(b_.add(b_.scaled(velocity, kMomentum), gradient), velocity, "momentum_next");
    descend(parameter, b_.mul(next, learning_rate(b_.dtype(parameter))));
  }

  // Algorithm 1 of Kingma and Ba, arXiv 1412.6980, with their constants; `step` counts from 1.
  //   m' = b1 m + (1 - b1) g,  v' = b2 v + (1 - b2) g^2
  //   p' = p - lr / (1 - b1^t) * m' / (sqrt(v') / sqrt(1 - b2^t) + epsilon)
  void adam(TensorId parameter, TensorId gradient) {
    constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kEpsilon = 1e-8;
    DType type = b_.dtype(parameter);
    const Correction& correction = adam_correction(type, kBeta1, kBeta2);
    TensorId first = state(parameter, "adam_m"), second = state(parameter, "adam_v");
    TensorId m = keep(b_.add(b_.scaled(first, kBeta1), b_.scaled(gradient, 1 - kBeta1)), first, "adam_m_next");
    TensorId squares = b_.scaled(b_.mul(gradient, gradient), 1 - kBeta2);
    TensorId v = keep(b_.add(b_.scaled(second, kBeta2), squares), second, "adam_v_next");
    TensorId root = b_.div(b_.unary("Sqrt", v), correction.second);
    TensorId direction = b_.div(m, b_.add(root, b_.scalar(kEpsilon, type)));
    descend(parameter, b_.mul(direction, correction.rate));
  }

 private:
  struct Correction {
    TensorId rate = kNone;    // lr / (1 - b1^t)
    TensorId second = kNone;  // sqrt(1 - b2^t)
  };

  // The same for all parameters of a type: computed once, by scalar nodes in the first one's unit.
  const Correction& adam_correction(DType type, double beta1, double beta2) {
    auto [at, added] = corrections_.try_emplace(type);
    if (added) {
      if (step_ == kNone) {
        step_ = b_.add_tensor({.name = "step", .dtype = DType::int64, .shape = {}, .kind = TensorKind::scalar});
      }
      at->second.rate = b_.div(learning_rate(type), one_minus_power(beta1, type));
      at->second.second = b_.unary("Sqrt", one_minus_power(beta2, type));
    }
    return at->second;
  }

  // 1 - beta^t in double precision: near t = 1 float32 would lose digits to the subtraction.
  TensorId one_minus_power(double beta, DType type) {
    TensorId t = b_.emit_as(DType::float64, "Cast", {step_}, {}, {{"to", static_cast<int64_t>(DType::float64)}});
    TensorId power = b_.emit("Pow", {b_.scalar(beta, DType::float64), t}, {});
    return cast(b_.sub(b_.scalar(1, DType::float64), power), type);
  }

  TensorId cast(TensorId t, DType type) {
    if (b_.dtype(t) == type) return t;
    return b_.emit_as(type, "Cast", {t}, b_.shape(t), {{"to", static_cast<int64_t>(type)}});
  }

  TensorId learning_rate(DType type) {
    if (rate_ == kNone) {
      rate_ =
          b_.add_tensor({.name = "learning_rate", .dtype = DType::float32, .shape = {}, .kind = TensorKind::scalar});
    }
    auto [at, added] = rates_.try_emplace(type, kNone);
    if (added) at->second = cast(rate_, type);
    return at->second;
  }

  TensorId state(TensorId parameter, const std::string& what) {
    const Tensor& p = b_.graph().tensors[parameter];
    return b_.add_tensor(
        {.name = p.name + "_" + what, .dtype = p.dtype, .shape = p.shape, .kind = TensorKind::state, .of = parameter});
  }

  // Makes `next` the graph output that replaces `old`.
  TensorId keep(TensorId next, TensorId old, const std::string& suffix) {
    Graph& graph = b_.mutable_graph();
    TensorId parameter = graph.tensors[old].kind == TensorKind::state ? graph.tensors[old].of : old;
    graph.tensors[next].of = old;
    graph.tensors[next].name = graph.tensors[parameter].name + "_" + suffix;
    outputs.push_back(next);
    return next;
  }

  void descend(TensorId parameter, TensorId change) { keep(b_.sub(parameter, change), parameter, "next"); }

  Builder& b_;
  TensorId rate_ = kNone, step_ = kNone;
  std::map<DType, TensorId> rates_;  // by parameter type
  std::map<DType, Correction> corrections_;
};

}  // namespace

std::vector<TensorId> add_updates(Builder& b, Optimizer optimizer, const std::vector<TensorId>& parameters,
                                  const std::vector<TensorId>& gradients) {
  Updates updates(b);
  for (size_t i = 0; i < parameters.size(); ++i) {
    b.begin_unit(
        {.op = display_name(optimizer), .role = Role::update, .phase = Phase::optimizer, .target = parameters[i]});
    switch (optimizer) {
      case Optimizer::sgd:
        updates.sgd(parameters[i], gradients[i]);
        break;
      case Optimizer::momentum:
        updates.momentum(parameters[i], gradients[i]);
        break;
      case Optimizer::adam:
        updates.adam(parameters[i], gradients[i]);
        break;
    }
  }
  return updates.outputs;
}

}  // namespace monet
