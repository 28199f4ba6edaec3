#include "engine/training/optimizers.h"

#include <map>
#include <numeric>
#include <set>

namespace monet {

namespace {

const char* display_name(Optimizer optimizer) {
  constexpr const char* kNames[] = {"SGD", "Momentum", "Nesterov", "Adam", "AdamW", "Adagrad", "RMSprop", "Lion"};
  return kNames[static_cast<size_t>(optimizer)];
}

// The tensor's new value, a graph output that takes the place of `old`; named after the parameter.
TensorId replace(Builder& b, TensorId next, TensorId old, const std::string& suffix) {
  Graph& graph = b.mutable_graph();
  TensorId parameter = graph.tensors[old].kind == TensorKind::parameter ? old : graph.tensors[old].of;
  graph.tensors[next].of = old;
  graph.tensors[next].name = graph.tensors[parameter].name + "_" + suffix;
  return next;
}

constexpr double kAdamBeta1 = 0.9, kAdamBeta2 = 0.999, kAdamEpsilon = 1e-8;

class Updates {
 public:
  Updates(Builder& b, const TrainingOptions& options)
      : b_(b),
        options_(options),
        decay_(options.weight_decay.value_or(options.optimizer == Optimizer::adamw ? 0.01 : 0)) {}
  std::vector<TensorId> outputs;

  // The factor that brings the norm of all gradients together down to options.clip_norm, 1 when it is not above
  // (Pascanu et al., ICML 2013; epsilon as in torch.nn.utils.clip_grad_norm_).
  void clip(const std::vector<TensorId>& gradients) {
    constexpr double kEpsilon = 1e-6;
    b_.begin_unit({.op = "ClipGradients", .role = Role::update, .phase = Phase::optimizer});
    std::vector<TensorId> squares;
    for (TensorId gradient : gradients) {
      std::vector<int64_t> axes(b_.shape(gradient).size());
      std::iota(axes.begin(), axes.end(), 0);
      squares.push_back(cast(b_.reduce("ReduceSumSquare", gradient, axes, false), DType::float32));
    }
    TensorId norm = mean(b_.unary("Sqrt", squares.size() == 1 ? squares[0] : b_.emit("Sum", squares, {})));
    TensorId limit = b_.scalar(*options_.clip_norm, DType::float32);
    TensorId factor = b_.div(limit, b_.add(norm, b_.scalar(kEpsilon, DType::float32)));
    clip_ = b_.binary("Min", factor, b_.scalar(1, DType::float32));
  }

  // What the updates of all parameters of these types share: the learning rate, Adam's corrections for the step. A unit
  // of its own, so that no update waits for another one.
  void share_scalars(const std::set<DType>& types) {
    b_.begin_unit({.op = "StepScalars", .role = Role::update, .phase = Phase::optimizer});
    for (DType type : types) {
      learning_rate(type);
      if (options_.optimizer == Optimizer::adam || options_.optimizer == Optimizer::adamw) correct(type);
    }
  }

  void update(TensorId parameter, TensorId gradient) {
    gradient = mean(gradient);
    if (clip_ != kNone) gradient = b_.mul(gradient, cast(clip_, b_.dtype(gradient)));
    // Decoupled decay (Loshchilov and Hutter, arXiv 1711.05101) is part of AdamW and Lion; elsewhere it is L2's
    // gradient.
    bool decoupled = options_.optimizer == Optimizer::adamw || options_.optimizer == Optimizer::lion;
    if (decay_ != 0 && !decoupled) gradient = b_.add(gradient, b_.scaled(parameter, decay_));
    switch (options_.optimizer) {
      case Optimizer::sgd:
        return descend(parameter, b_.mul(gradient, learning_rate(b_.dtype(parameter))));
      case Optimizer::momentum:
      case Optimizer::nesterov:
        return momentum(parameter, gradient);
      case Optimizer::adam:
      case Optimizer::adamw:
        return adam(parameter, gradient);
      case Optimizer::adagrad:
        return adagrad(parameter, gradient);
      case Optimizer::rmsprop:
        return rmsprop(parameter, gradient);
      case Optimizer::lion:
        return lion(parameter, gradient);
    }
  }

 private:
  // v' = mu * v + g, p' = p - lr * v' (Polyak 1964, as PyTorch writes it: Sutskever et al., ICML 2013, scale the
  // gradient instead). Nesterov steps along g + mu * v'. A state of zeros makes the first step PyTorch's, whose buffer
  // starts as the gradient.
  void momentum(TensorId parameter, TensorId gradient) {
    constexpr double kMomentum = 0.9;
    TensorId velocity = state(parameter, "momentum");
    TensorId next = keep(b_.add(b_.scaled(velocity, kMomentum), gradient), velocity, "momentum_next");
    bool nesterov = options_.optimizer == Optimizer::nesterov;
    TensorId direction = nesterov ? b_.add(gradient, b_.scaled(next, kMomentum)) : next;
    descend(parameter, b_.mul(direction, learning_rate(b_.dtype(parameter))));
  }

  // Algorithm 1 of Kingma and Ba, arXiv 1412.6980, with their constants; `step` counts from 1.
  //   m' = b1 m + (1 - b1) g,  v' = b2 v + (1 - b2) g^2
  //   p' = p - lr / (1 - b1^t) * m' / (sqrt(v') / sqrt(1 - b2^t) + epsilon)
  void adam(TensorId parameter, TensorId gradient) {
    DType type = b_.dtype(parameter);
    const Correction& correction = corrections_.at(type);
    TensorId first = state(parameter, "adam_m"), second = state(parameter, "adam_v");
    TensorId m = keep(average(first, gradient, kAdamBeta1), first, "adam_m_next");
    TensorId v = keep(average(second, b_.mul(gradient, gradient), kAdamBeta2), second, "adam_v_next");
    TensorId root = b_.div(b_.unary("Sqrt", v), correction.second);
    TensorId direction = b_.div(m, b_.add(root, b_.scalar(kAdamEpsilon, type)));
    descend(options_.optimizer == Optimizer::adamw ? decayed(parameter) : parameter, b_.mul(direction, correction.rate),
            parameter);
  }

  // Duchi et al., JMLR 12, 2011: s' = s + g^2, p' = p - lr * g / (sqrt(s') + epsilon).
  void adagrad(TensorId parameter, TensorId gradient) {
    constexpr double kEpsilon = 1e-10;
    TensorId sum = state(parameter, "adagrad_sum");
    TensorId next = keep(b_.add(sum, b_.mul(gradient, gradient)), sum, "adagrad_sum_next");
    descend_by_root(parameter, gradient, next, kEpsilon);
  }

  // Hinton's lecture 6e, 2012: v' = a v + (1 - a) g^2, p' = p - lr * g / (sqrt(v') + epsilon).
  void rmsprop(TensorId parameter, TensorId gradient) {
    constexpr double kAlpha = 0.99, kEpsilon = 1e-8;
    TensorId squares = state(parameter, "rmsprop_v");
    TensorId next = keep(average(squares, b_.mul(gradient, gradient), kAlpha), squares, "rmsprop_v_next");
    descend_by_root(parameter, gradient, next, kEpsilon);
  }

  // Algorithm 2 of Chen et al., arXiv 2302.06675: p' = p - lr * (sign(b1 m + (1 - b1) g) + decay p),
  // m' = b2 m + (1 - b2) g.
  void lion(TensorId parameter, TensorId gradient) {
    constexpr double kBeta1 = 0.9, kBeta2 = 0.99;
    TensorId m = state(parameter, "lion_m");
    TensorId direction = b_.unary("Sign", average(m, gradient, kBeta1));
    keep(average(m, gradient, kBeta2), m, "lion_m_next");
    descend(decayed(parameter), b_.mul(direction, learning_rate(b_.dtype(parameter))), parameter);
  }

  // factor * old + (1 - factor) * value.
  TensorId average(TensorId old, TensorId value, double factor) {
    return b_.add(b_.scaled(old, factor), b_.scaled(value, 1 - factor));
  }

  // p - lr * decay * p.
  TensorId decayed(TensorId parameter) {
    if (decay_ == 0) return parameter;
    TensorId rate = b_.scaled(learning_rate(b_.dtype(parameter)), decay_);
    return b_.sub(parameter, b_.mul(parameter, rate));
  }

  void descend_by_root(TensorId parameter, TensorId gradient, TensorId squares, double epsilon) {
    DType type = b_.dtype(parameter);
    TensorId direction = b_.div(gradient, b_.add(b_.unary("Sqrt", squares), b_.scalar(epsilon, type)));
    descend(parameter, b_.mul(direction, learning_rate(type)));
  }

  // From a sum over micro-batches.
  TensorId mean(TensorId sum) { return b_.scaled(sum, 1.0 / static_cast<double>(options_.micro_batches)); }

  struct Correction {
    TensorId rate = kNone;    // lr / (1 - b1^t)
    TensorId second = kNone;  // sqrt(1 - b2^t)
  };

  void correct(DType type) {
    if (step_ == kNone)
      step_ = b_.add_tensor({.name = "step", .dtype = DType::int64, .shape = {}, .kind = TensorKind::scalar});
    Correction& correction = corrections_[type];
    correction.rate = b_.div(learning_rate(type), one_minus_power(kAdamBeta1, type));
    correction.second = b_.unary("Sqrt", one_minus_power(kAdamBeta2, type));
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

  TensorId keep(TensorId next, TensorId old, const std::string& suffix) {
    outputs.push_back(replace(b_, next, old, suffix));
    return next;
  }

  void descend(TensorId from, TensorId change, TensorId parameter) { keep(b_.sub(from, change), parameter, "next"); }
  void descend(TensorId parameter, TensorId change) { descend(parameter, change, parameter); }

  Builder& b_;
  const TrainingOptions& options_;
  double decay_;
  TensorId rate_ = kNone, step_ = kNone, clip_ = kNone;
  std::map<DType, TensorId> rates_;  // by parameter type
  std::map<DType, Correction> corrections_;
};

}  // namespace

TensorId add_to_sum(Builder& b, TensorId parameter, TensorId gradient) {
  const Tensor& p = b.graph().tensors[parameter];
  b.begin_unit({.op = "Sum", .role = Role::accumulate, .phase = Phase::backward, .target = parameter});
  TensorId sum = b.add_tensor(
      {.name = p.name + "_grad_sum", .dtype = p.dtype, .shape = p.shape, .kind = TensorKind::sum, .of = parameter});
  return replace(b, b.add(sum, gradient), sum, "grad_sum_next");
}

std::vector<TensorId> add_updates(Builder& b, const TrainingOptions& options, const std::vector<TensorId>& parameters,
                                  const std::vector<TensorId>& gradients) {
  Updates updates(b, options);
  std::set<DType> types;
  for (TensorId parameter : parameters) types.insert(b.dtype(parameter));
  updates.share_scalars(types);
  if (options.clip_norm) updates.clip(gradients);
  for (size_t i = 0; i < parameters.size(); ++i) {
    b.begin_unit({.op = display_name(options.optimizer),
                  .role = Role::update,
                  .phase = Phase::optimizer,
                  .target = parameters[i]});
    updates.update(parameters[i], gradients[i]);
  }
  return std::move(updates.outputs);
}

}  // namespace monet
