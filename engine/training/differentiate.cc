#include "engine/training/differentiate.h"

#include "engine/training/gradient_rules.h"

namespace monet {

namespace {

class Differentiator {
 public:
  Differentiator(Builder& builder, const BackwardPass& pass, std::vector<MissingRule>& missing)
      : builder_(builder), pass_(pass), missing_(missing), forward_tensors_(builder.graph().tensors.size()) {
    const Graph& graph = builder.graph();
    wanted_ = reached_forward(graph, pass.parameters, pass.stopped);
    std::vector<bool> reached = reached_backward(graph, {pass.from}, pass.stopped);
    for (size_t t = 0; t < wanted_.size(); ++t) wanted_[t] = wanted_[t] && reached[t];
    from_data_ = depends_on_data(graph);
    trained_.resize(forward_tensors_);
    for (TensorId t : pass.parameters) trained_[t] = true;
    gradients_.assign(forward_tensors_, kNone);
  }

  std::vector<TensorId> run() {
    builder_.mutable_graph().tensors[pass_.gradient].of = pass_.from;
    gradients_[pass_.from] = pass_.gradient;
    std::vector<std::vector<TensorId>> first_read = parameters_first_read();
    for (size_t id = pass_.forward_nodes; id-- > 0;) {
      visit(static_cast<NodeId>(id));
      if (!missing_.empty() || !pass_.complete) continue;
      for (TensorId t : first_read[id]) pass_.complete(t, gradients_[t]);
    }
    std::vector<TensorId> result;
    for (TensorId t : pass_.parameters) result.push_back(gradients_[t]);
    return result;
  }

 private:
  struct Contribution {
    TensorId to;
    TensorId gradient;
  };

  // By forward node, the trained parameters that no node before it reads.
  std::vector<std::vector<TensorId>> parameters_first_read() const {
    std::vector<std::vector<TensorId>> result(pass_.forward_nodes);
    std::vector<bool> seen(forward_tensors_);
    for (size_t id = 0; id < pass_.forward_nodes; ++id)
      for (TensorId t : builder_.graph().nodes[id].inputs) {
        if (t == kNone || seen[t] || !trained_[t]) continue;
        seen[t] = true;
        result[id].push_back(t);
      }
    return result;
  }

  class View : public Backward {
   public:
    View(Differentiator& owner, NodeId id) : Backward(owner.builder_, id), owner_(owner) {}

    TensorId gradient(size_t i) const override {
      TensorId t = output(i);
      return t == kNone ? kNone : owner_.gradients_[t];
    }
    bool wants(size_t i) const override {
      return input(i) != kNone && owner_.wanted_[input(i)] && differentiable_input(b.graph(), node, i) &&
             !owner_.pass_.stopped.count({id, i});
    }
    bool from_data(size_t i) const override { return owner_.from_data_[input(i)]; }
    void give(size_t i, TensorId gradient) override {
      Tensor& given = b.mutable_graph().tensors[gradient];
      if (given.of == kNone) {
        given.of = input(i);
      } else if (owner_.trained_[input(i)] && given.of != input(i)) {
        // Passed on unchanged. Still a parameter's gradient is a tensor of its own, so that it can be told apart.
        gradient = b.unary("Identity", gradient);
        b.mutable_graph().tensors[gradient].of = input(i);
      }
      owner_.contributions_.push_back({input(i), gradient});
    }
    void begin_operand(size_t i) override {
      b.begin_unit({.op = node.op,
                    .role = from_data(i) ? Role::input_gradient : Role::weight_gradient,
                    .phase = Phase::backward,
                    .origin = id,
                    .target = input(i)});
    }
    TensorId saved_output(size_t i, DType type, const Shape& shape) override {
      if (output(i) != kNone) return output(i);
      Graph& graph = b.mutable_graph();
      TensorId added = graph.add(Tensor{.name = graph.tensors[output(0)].name + "_" + std::to_string(i),
                                        .dtype = type,
                                        .shape = shape,
                                        .producer = id});
      std::vector<TensorId>& outputs = graph.nodes[id].outputs;
      if (outputs.size() <= i) outputs.resize(i + 1, kNone);
      outputs[i] = added;
      return added;
    }
    void refuse(const std::string& reason, const std::string& hint) override {
      owner_.missing_.push_back({id, reason, hint});
    }
    bool frozen_batch_norm() const override { return owner_.pass_.frozen_batch_norm; }

   private:
    Differentiator& owner_;
  };

  void visit(NodeId id) {
    View view(*this, id);
    bool reached = false, wanted = false;
    for (size_t i = 0; i < view.node.outputs.size(); ++i)
      reached = reached || (view.gradient(i) != kNone && differentiable_output(builder_.graph(), view.node, i));
    for (size_t i = 0; i < view.node.inputs.size(); ++i) wanted = wanted || view.wants(i);
    if (!reached || !wanted) return;
    contributions_.clear();
    if (pass_.opaque.count(id)) {
      for (size_t i = 0; i < view.node.inputs.size(); ++i)
        if (view.wants(i)) view.give(i, view.gradient(0));
    } else if (const GradientRule* rule = find_gradient_rule(view.node.domain, view.node.op)) {
      builder_.begin_unit({.op = view.node.op, .role = Role::gradient, .phase = Phase::backward, .origin = id});
      rule->function(view);
    } else {
      missing_.push_back({id, "", "replace it in the model"});
    }
    if (!missing_.empty()) return stand_in(view);
    // Collected first: a sum is a unit of its own and must not split the rule's.
    for (const Contribution& c : contributions_) accumulate(c, id);
  }

  // Something is refused, so the graph will be thrown away; the walk goes on to find all other problems.
  void stand_in(const View& view) {
    for (size_t i = 0; i < view.node.inputs.size(); ++i) {
      if (!view.wants(i) || gradients_[view.input(i)] != kNone) continue;
      const Tensor& input = builder_.graph().tensors[view.input(i)];
      Tensor any{.dtype = input.dtype, .shape = input.shape, .of = view.input(i)};
      gradients_[view.input(i)] = builder_.add_tensor(std::move(any));
    }
  }

  // Pairwise, as soon as a second gradient arrives: at most two are held, where one sum of all would hold every
  // reader's until the last (a DenseNet block has dozens).
  void accumulate(const Contribution& c, NodeId reader) {
    TensorId& total = gradients_[c.to];
    if (total == kNone) {
      total = c.gradient;
      return;
    }
    NodeId producer = builder_.graph().tensors[c.to].producer;
    builder_.begin_unit({.op = "Sum",
                         .role = Role::accumulate,
                         .phase = Phase::backward,
                         .origin = producer == kNone ? reader : producer});
    total = builder_.emit("Sum", {total, c.gradient}, builder_.shape(c.to));
    builder_.mutable_graph().tensors[total].of = c.to;
  }

  Builder& builder_;
  const BackwardPass& pass_;
  std::vector<MissingRule>& missing_;
  size_t forward_tensors_;
  std::vector<bool> wanted_, from_data_, trained_;
  std::vector<TensorId> gradients_;  // per forward tensor: the sum of what has been given so far
  std::vector<Contribution> contributions_;
};

}  // namespace

std::vector<TensorId> differentiate(Builder& builder, const BackwardPass& pass, std::vector<MissingRule>& missing) {
  return Differentiator(builder, pass, missing).run();
}

}  // namespace monet
