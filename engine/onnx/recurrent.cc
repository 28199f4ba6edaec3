#include "engine/onnx/recurrent.h"

#include <algorithm>
#include <cctype>
#include <limits>
#include <map>

#include "engine/ir/saturating.h"
#include "engine/onnx/lower.h"

namespace monet {

namespace {

constexpr int64_t kNodesPerStep = 20;  // a peephole LSTM's cell has 19, the largest

// Activations without parameters of their own, by lower-case name.
const std::map<std::string, std::string>& activations() {
  static const std::map<std::string, std::string> table = {
      {"relu", "Relu"}, {"sigmoid", "Sigmoid"}, {"softplus", "Softplus"}, {"softsign", "Softsign"}, {"tanh", "Tanh"}};
  return table;
}

class Recurrent {
 public:
  Recurrent(const ::onnx::GraphProto& graph, const ::onnx::NodeProto& n, const Inferred& inferred, Emitter& e)
      : graph_(graph), n_(n), inferred_(inferred), e_(e) {}

  std::string read(int64_t max_nodes) {
    Shape x, w, r;
    if (!shape_of_input(0, x) || !shape_of_input(1, w) || !shape_of_input(2, r) || x.size() != 3 || w.size() != 3 ||
        r.size() != 3)
      return "the shapes of its inputs are not known";
    batch_first_ = int_of(n_, "layout", 0) != 0;
    steps_ = x[batch_first_ ? 1 : 0];
    batch_ = x[batch_first_ ? 0 : 1];
    inputs_ = x[2];
    hidden_ = r[2];
    gates_ = n_.op_type() == "LSTM" ? 4 : n_.op_type() == "GRU" ? 3 : 1;
    const auto* direction = find_attribute(n_, "direction");
    reverse_ = direction && direction->s() == "reverse";
    directions_ = direction && direction->s() == "bidirectional" ? 2 : 1;
    if (w[0] != directions_ || r[0] != directions_ || w[1] != saturating_multiply(gates_, hidden_) || r[1] != w[1] ||
        w[2] != inputs_ || steps_ < 1 || saturating_multiply(steps_, batch_) > std::numeric_limits<int32_t>::max())
      return "its weights do not fit its input";
    if (find_attribute(n_, "clip")) return "it clips its gates";
    if (!input(4).empty()) {
      auto lengths = known_value(graph_, inferred_, input(4));
      if (!lengths) return "its sequence_lens are not constant";
      if (!std::all_of(lengths->ints.begin(), lengths->ints.end(), [&](int64_t length) { return length == steps_; }))
        return "its sequences (sequence_lens) are not all of full length";
    }
    std::string problem = read_activations();
    if (!problem.empty()) return problem;
    if (saturating_multiply(steps_, directions_) > max_nodes / kNodesPerStep)
      return "its " + std::to_string(steps_) + " steps would become too many nodes";
    return "";
  }

  void run() {
    std::string x = input(0);
    if (batch_first_) x = e_.op("Transpose", {x}, {ints_attribute("perm", {1, 0, 2})});
    x = e_.reshape(x, {steps_ * batch_, inputs_});
    std::vector<std::string> w = per_direction(input(1)), r = per_direction(input(2)), b = per_direction(input(3));
    std::vector<std::string> h = states(5), c = gates_ == 4 ? states(6) : h, p = per_direction(input(7));
    std::vector<std::string> all, last_h, last_c;
    for (int64_t d = 0; d < directions_; ++d) {
      direction_ = d;
      bool backwards = reverse_ || d == 1;
      std::string side = backwards ? "reverse" : "forward";
      e_.set_place(side);
      recurrent_ = r[d];
      std::string input_bias;
      prepare(b[d], p[d], input_bias);
      std::vector<std::string> projected =
          e_.split(e_.op("Gemm", {x, w[d], input_bias}, {int_attribute("transB", 1)}), 0, steps_);
      h_ = h[d];
      c_ = c[d];
      std::vector<std::string> outputs(static_cast<size_t>(steps_));
      for (int64_t i = 0; i < steps_; ++i) {
        int64_t t = backwards ? steps_ - 1 - i : i;
        e_.set_place(side + "/" + std::to_string(t));
        step(projected[t]);
        outputs[t] = h_;
      }
      e_.set_place(side);
      if (wanted(0)) all.push_back(e_.reshape(e_.concat(outputs, 0), {steps_, 1, batch_, hidden_}));
      if (wanted(1)) last_h.push_back(e_.reshape(h_, {1, batch_, hidden_}));
      if (wanted(2)) last_c.push_back(e_.reshape(c_, {1, batch_, hidden_}));
    }
    e_.set_place("");
    finish(0, all, 1, {2, 0, 1, 3});
    finish(1, last_h, 0, {1, 0, 2});
    finish(2, last_c, 0, {1, 0, 2});
  }

 private:
  std::string input(int i) const { return i < n_.input_size() ? n_.input(i) : std::string(); }
  bool wanted(int i) const { return i < n_.output_size() && !n_.output(i).empty(); }

  bool shape_of_input(int i, Shape& shape) const {
    auto type = inferred_.types.find(input(i));
    return type != inferred_.types.end() && known_shape(type->second, shape);
  }

  std::string read_activations() {
    size_t each = gates_ == 4 ? 3 : gates_ == 3 ? 2 : 1;
    const auto* given = find_attribute(n_, "activations");
    if (!given || given->strings().empty()) {
      std::vector<std::string> defaults =
          gates_ == 1 ? std::vector<std::string>{"Tanh"} : std::vector<std::string>{"Sigmoid", "Tanh", "Tanh"};
      defaults.resize(each);
      for (int64_t d = 0; d < directions_; ++d) activations_.push_back(defaults);
      return "";
    }
    if (given->strings_size() != static_cast<int>(each) * directions_) return "its activations do not fit it";
    for (int64_t d = 0; d < directions_; ++d) {
      activations_.emplace_back();
      for (size_t i = 0; i < each; ++i) {
        std::string name = given->strings(static_cast<int>(d * static_cast<int64_t>(each) + static_cast<int64_t>(i)));
        std::string lower = name;
        std::transform(lower.begin(), lower.end(), lower.begin(),
                       [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
        auto found = activations().find(lower);
        if (found == activations().end()) return "its activation " + name + " takes parameters";
        activations_.back().push_back(found->second);
      }
    }
    return "";
  }

  // [directions, ...] -> one tensor without that dimension for each; empty names when absent.
  std::vector<std::string> per_direction(const std::string& tensor) {
    if (tensor.empty()) return std::vector<std::string>(static_cast<size_t>(directions_));
    std::vector<std::string> parts = e_.split(tensor, 0, directions_);
    for (std::string& part : parts) part = e_.squeeze(part, 0);
    return parts;
  }

  // Initial states [batch, hidden]; zeros when absent.
  std::vector<std::string> states(int i) {
    std::string given = input(i);
    if (!given.empty()) {
      if (batch_first_) given = e_.op("Transpose", {given}, {ints_attribute("perm", {1, 0, 2})});
      return per_direction(given);
    }
    std::string zeros = e_.op("ConstantOfShape", {e_.ints({batch_, hidden_})}, {zero()});
    return std::vector<std::string>(static_cast<size_t>(directions_), zeros);
  }

  ::onnx::AttributeProto zero() const {
    ::onnx::AttributeProto value;
    value.set_name("value");
    value.set_type(::onnx::AttributeProto::TENSOR);
    int32_t type = inferred_.types.at(input(0)).tensor_type().elem_type();
    value.mutable_t()->set_data_type(type);
    value.mutable_t()->add_dims(1);
    value.mutable_t()->set_raw_data(std::string(static_cast<size_t>(bits(dtype_of(type)) / 8), '\0'));
    return value;
  }

  // What all steps of a direction share. The two biases are one wherever they are only added.
  void prepare(const std::string& bias, const std::string& peepholes, std::string& input_bias) {
    peepholes_ = peepholes.empty() ? std::vector<std::string>() : e_.split(peepholes, 0, 3);
    reset_inside_ = gates_ == 3 && int_of(n_, "linear_before_reset", 0) != 0;
    recurrent_bias_.clear();
    if (!bias.empty()) {
      std::vector<std::string> halves = e_.split(bias, 0, 2);
      input_bias = reset_inside_ ? halves[0] : e_.op("Add", {halves[0], halves[1]});
      if (reset_inside_) recurrent_bias_ = halves[1];
    }
    if (gates_ == 3 && !reset_inside_) {
      std::vector<std::string> parts =
          e_.ops("Split", {recurrent_, e_.ints({2 * hidden_, hidden_})}, 2, {int_attribute("axis", 0)});
      recurrent_ = parts[0];
      recurrent_candidate_ = parts[1];
    }
  }

  std::string times_recurrent(const std::string& a, const std::string& weight, const std::string& addend) {
    return e_.op("Gemm", {a, weight, addend}, {int_attribute("transB", 1)});
  }
  std::string activate(size_t which, const std::string& a) { return e_.op(activations_[direction_][which], {a}); }
  std::string mul(const std::string& a, const std::string& b) { return e_.op("Mul", {a, b}); }
  std::string add(const std::string& a, const std::string& b) { return e_.op("Add", {a, b}); }

  // h_ and c_ become those after the step. `x`: the step's input times W, biases added.
  void step(const std::string& x) {
    if (gates_ == 4) {
      lstm(x);
    } else if (gates_ == 3) {
      gru(x);
    } else {
      h_ = activate(0, times_recurrent(h_, recurrent_, x));
    }
  }

  // i = f(..), o = f(.. + Po C'), f = f(..), c = g(..);  C' = f C + i c,  H' = o h(C')
  void lstm(const std::string& x) {
    std::vector<std::string> gates = e_.split(times_recurrent(h_, recurrent_, x), 1, 4);
    auto peep = [&](const std::string& gate, size_t which) {
      return peepholes_.empty() ? gate : add(gate, mul(peepholes_[which], c_));
    };
    std::string in = activate(0, peep(gates[0], 0)), candidate = activate(1, gates[3]);
    if (int_of(n_, "input_forget", 0) != 0) {  // f = 1 - i: C' = C + i (c - C)
      c_ = add(c_, mul(in, e_.op("Sub", {candidate, c_})));
    } else {
      std::string forget = activate(0, peep(gates[2], 2));
      c_ = add(mul(forget, c_), mul(in, candidate));
    }
    h_ = mul(activate(0, peep(gates[1], 1)), activate(2, c_));
  }

  // z = f(..), r = f(..), h = g(Wx + R(r H) + b) or g(Wx + b + r (R H + b'));  H' = (1 - z) h + z H = h + z (H - h)
  void gru(const std::string& x) {
    std::string update, candidate;
    if (reset_inside_) {
      std::vector<std::string> own = e_.split(x, 1, 3);
      std::vector<std::string> fed = e_.split(times_recurrent(h_, recurrent_, recurrent_bias_), 1, 3);
      update = activate(0, add(own[0], fed[0]));
      std::string reset = activate(0, add(own[1], fed[1]));
      candidate = activate(1, add(own[2], mul(reset, fed[2])));
    } else {
      std::vector<std::string> own =
          e_.ops("Split", {x, e_.ints({2 * hidden_, hidden_})}, 2, {int_attribute("axis", 1)});
      std::vector<std::string> gates = e_.split(activate(0, times_recurrent(h_, recurrent_, own[0])), 1, 2);
      update = gates[0];
      candidate = activate(1, times_recurrent(mul(gates[1], h_), recurrent_candidate_, own[1]));
    }
    h_ = add(candidate, mul(update, e_.op("Sub", {h_, candidate})));
  }

  void finish(int output, const std::vector<std::string>& parts, int64_t axis, const std::vector<int64_t>& perm) {
    if (!wanted(output)) return;
    std::string value = e_.concat(parts, axis);
    if (batch_first_) value = e_.op("Transpose", {value}, {ints_attribute("perm", perm)});
    e_.op("Identity", {value}, {}, n_.output(output));
  }

  const ::onnx::GraphProto& graph_;
  const ::onnx::NodeProto& n_;
  const Inferred& inferred_;
  Emitter& e_;
  int64_t steps_ = 0, batch_ = 0, inputs_ = 0, hidden_ = 0, gates_ = 0, directions_ = 1, direction_ = 0;
  bool batch_first_ = false, reverse_ = false, reset_inside_ = false;
  std::vector<std::vector<std::string>> activations_;  // per direction
  std::vector<std::string> peepholes_;                 // of i, o, f
  std::string recurrent_, recurrent_candidate_, recurrent_bias_, h_, c_;
};

}  // namespace

bool is_recurrent(const ::onnx::NodeProto& n) {
  return n.domain().empty() && (n.op_type() == "LSTM" || n.op_type() == "GRU" || n.op_type() == "RNN");
}

std::string unroll_recurrent(const ::onnx::GraphProto& graph, const ::onnx::NodeProto& n, const Inferred& inferred,
                             int64_t max_nodes, Emitter& e) {
  Recurrent recurrent(graph, n, inferred, e);
  std::string reason = recurrent.read(max_nodes);
  if (reason.empty()) recurrent.run();
  return reason;
}

}  // namespace monet
