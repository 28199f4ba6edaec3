#include "engine/onnx/lift.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <unordered_set>

#include "engine/onnx/pattern.h"
#include "engine/onnx/proto.h"
#include "engine/onnx/value.h"

namespace monet {

namespace {

// What the checks of a rule see: the graph, what the pattern bound, and the node to be completed.
class Site {
 public:
  Site(Graph& graph, const Match& match, Node& lifted) : graph(graph), node(lifted), match_(match) {}

  bool has(const char* name) const { return match_.tensors.count(name) > 0; }
  TensorId id(const char* name) const { return match_.tensors.at(name); }
  const Tensor& tensor(const char* name) const { return graph.tensors[id(name)]; }
  const Node& made(const char* name) const { return graph.nodes[tensor(name).producer]; }

  Graph& graph;
  Node& node;
  std::vector<Node> before;  // to be put before the lifted node; their outputs are tensors of the graph

 private:
  const Match& match_;
};

using Make = bool (*)(Site&);

// ---- what stands behind the patterns ------------------------------------------------------------------------------

bool unary(Site& s) {
  s.node.inputs = {s.id("x")};
  return true;
}

bool gelu_erf(Site& s) {
  s.node.attributes.push_back({"approximate", std::string("none")});
  return unary(s);
}
bool gelu_tanh(Site& s) {
  s.node.attributes.push_back({"approximate", std::string("tanh")});
  return unary(s);
}

constexpr float kSixth = 1.0f / 6, kHalf = 0.5f;

bool hard_sigmoid(Site& s) {
  s.node.attributes.push_back({"alpha", kSixth});
  s.node.attributes.push_back({"beta", kHalf});
  return unary(s);
}

// HardSwish is x * HardSigmoid(x) with slope 1/6 and offset 1/2.
bool hard_swish_of_sigmoid(Site& s) {
  constexpr float kDefaultAlpha = 0.2f;  // ONNX's
  float alpha = attribute(s.made("h"), "alpha", kDefaultAlpha), beta = attribute(s.made("h"), "beta", kHalf);
  return std::abs(alpha - kSixth) <= 1e-5f * kSixth && beta == kHalf && unary(s);
}

// The axes of a reduction that keeps its dimensions, ascending and counted from the front; nothing for any other.
std::optional<std::vector<int64_t>> kept_axes(const Site& s, const char* reduction, size_t rank) {
  const Node& node = s.made(reduction);
  if (attribute(node, "keepdims", int64_t{1}) == 0) return std::nullopt;
  std::vector<int64_t> axes = integers(s.graph.tensors[node.inputs[1]]);
  for (int64_t& axis : axes) {
    if (axis < 0) axis += static_cast<int64_t>(rank);
    if (axis < 0 || axis >= static_cast<int64_t>(rank)) return std::nullopt;
  }
  std::sort(axes.begin(), axes.end());
  if (axes.empty()) return std::nullopt;
  return axes;
}

// ONNX's normalisations compute in float32: of float64 they would not be the same function.
bool exact_in_float32(const Tensor& t) {
  return t.dtype == DType::float32 || t.dtype == DType::float16 || t.dtype == DType::bfloat16;
}

std::optional<float> known_epsilon(const Tensor& t) {
  auto value = elements(t.shape) == 1 ? known_elements(t) : std::nullopt;
  if (!value || !((*value)[0] >= 0)) return std::nullopt;
  return static_cast<float>((*value)[0]);
}

bool layer_normalization(Site& s) {
  const Tensor& x = s.tensor("x");
  size_t rank = x.shape.size();
  auto axes = kept_axes(s, "m", rank), again = kept_axes(s, "v", rank);
  auto epsilon = known_epsilon(s.tensor("eps"));
  if (!axes || axes != again || !epsilon || !exact_in_float32(x)) return false;
  for (size_t i = 0; i < axes->size(); ++i)  // the last axes, all of them
    if ((*axes)[i] != static_cast<int64_t>(rank - axes->size() + i)) return false;
  Shape normalised(x.shape.end() - static_cast<std::ptrdiff_t>(axes->size()), x.shape.end());
  for (const char* affine : {"w", "b"})
    if (s.has(affine) && (s.tensor(affine).shape != normalised || s.tensor(affine).dtype != x.dtype)) return false;
  s.node.inputs = {s.id("x")};
  if (s.has("w")) {
    s.node.inputs.push_back(s.id("w"));
  } else {  // the operator has no default scale
    if (elements(normalised) > kMaxFolded) return false;
    Value ones{.dtype = x.dtype, .shape = normalised};
    ones.floats.assign(static_cast<size_t>(elements(normalised)), 1);
    Tensor constant{.name = s.graph.tensors[s.node.outputs[0]].name + "_scale",
                    .dtype = x.dtype,
                    .shape = normalised,
                    .kind = TensorKind::constant,
                    .data = encode(ones, "").raw_data()};
    s.node.inputs.push_back(s.graph.add(std::move(constant)));
  }
  if (s.has("b")) s.node.inputs.push_back(s.id("b"));
  s.node.attributes.push_back({"axis", -static_cast<int64_t>(axes->size())});
  s.node.attributes.push_back({"epsilon", *epsilon});
  return true;
}

bool is_all(const Tensor& t, double value) {
  auto known = known_elements(t);
  return known && std::all_of(known->begin(), known->end(), [&](double e) { return e == value; });
}

// A tensor that broadcasts along the channels of [N, C, ...], as a vector [C]; kNone if it is none.
TensorId channel_vector(Site& s, const char* name, size_t rank, int64_t channels) {
  TensorId t = s.id(name);
  const Shape& shape = s.graph.tensors[t].shape;
  size_t axis = rank - 2 + 1;  // of the channels, from the end
  if (elements(shape) != channels || shape.size() < axis || shape[shape.size() - axis] != channels ||
      shape.size() > rank)
    return kNone;
  if (shape.size() == 1) return t;
  NodeId producer = s.graph.tensors[t].producer;
  if (producer != kNone && (s.graph.nodes[producer].op == "Unsqueeze" || s.graph.nodes[producer].op == "Reshape")) {
    TensorId source = s.graph.nodes[producer].inputs[0];
    if (source != kNone && s.graph.tensors[source].shape == Shape{channels}) return source;
  }
  std::string base = s.graph.tensors[s.node.outputs[0]].name + "_" + (std::string(name) == "w" ? "scale" : "bias");
  DType dtype = s.graph.tensors[t].dtype;
  Value target{.dtype = DType::int64, .shape = {1}, .ints = {channels}};
  TensorId to = s.graph.add(Tensor{.name = base + "_shape",
                                   .dtype = DType::int64,
                                   .shape = {1},
                                   .kind = TensorKind::constant,
                                   .data = encode(target, "").raw_data()});
  TensorId vector = s.graph.add(Tensor{.name = base, .dtype = dtype, .shape = {channels}});
  s.before.push_back(Node{.name = base, .op = "Reshape", .inputs = {t, to}, .outputs = {vector}});
  return vector;
}

// PyTorch: the groups of [N, C, ...] as channels of [N, G, M], normalised without scale, then scaled per channel.
bool group_normalization(Site& s) {
  const Tensor& x = s.tensor("x");
  const Tensor& out = s.graph.tensors[s.node.outputs[0]];
  const Node norm = s.made("n");
  Shape grouped = s.graph.tensors[norm.inputs[0]].shape, shape = x.shape;
  size_t rank = shape.size();
  if (rank < 2 || out.shape != shape || s.made("r").inputs.empty() || s.tensor("r").shape != shape ||
      !exact_in_float32(x) || grouped.size() != 3 || grouped[0] != shape[0] || grouped[1] < 1 ||
      shape[1] % grouped[1] != 0 || !is_all(s.tensor("one"), 1) || !is_all(s.tensor("zero"), 0))
    return false;
  constexpr float kDefaultEpsilon = 1e-5f;  // ONNX's
  DType dtype = x.dtype;
  TensorId scale = channel_vector(s, "w", rank, shape[1]);
  TensorId bias = scale == kNone ? kNone : channel_vector(s, "b", rank, shape[1]);
  if (bias == kNone || s.graph.tensors[scale].dtype != dtype || s.graph.tensors[bias].dtype != dtype) return false;
  s.node.inputs = {s.id("x"), scale, bias};
  s.node.attributes.push_back({"num_groups", grouped[1]});
  s.node.attributes.push_back({"epsilon", attribute(norm, "epsilon", kDefaultEpsilon)});
  return true;
}

bool softmax(Site& s) {
  size_t rank = s.tensor("x").shape.size();
  auto axes = kept_axes(s, "m", rank), again = kept_axes(s, "v", rank);
  if (!axes || axes != again || axes->size() != 1) return false;
  s.node.attributes.push_back({"axis", (*axes)[0]});
  return unary(s);
}

// ---- the table ----------------------------------------------------------------------------------------------------

// x times `factor` times a half, in any order.
std::string half_of(const std::string& factor) {
  return "(Scale(Mul(x, " + factor + "), 0.5) | Mul(Scale(x, 0.5), " + factor + ") | Mul(x, Scale(" + factor +
         ", 0.5)))";
}

// Of x: m is the mean, v the variance; x minus its mean, over the standard deviation.
const char* const kInverse =
    "(Reciprocal(Sqrt(Add(v:ReduceMean(Square(Sub(x, m:ReduceMean(x, ma))), va), eps))) | "
    "Div(1, Sqrt(Add(v:ReduceMean(Square(Sub(x, m:ReduceMean(x, ma))), va), eps))) | "
    "Pow(Add(v:ReduceMean(Square(Sub(x, m:ReduceMean(x, ma))), va), eps), -0.5))";
std::string normalised() {
  return std::string(
             "(Div(Sub(x, m:ReduceMean(x, ma)), Sqrt(Add(v:ReduceMean(Square(Sub(x, m)), va), eps))) | "
             "Mul(Sub(x, m:ReduceMean(x, ma)), ") +
         kInverse + "))";
}

struct Rule {
  const char* op;
  std::string pattern;
  Make make;
};

// In the order they are tried: the larger before what it contains, what is built on before what builds on it.
const std::vector<Rule>& rules() {
  static const std::vector<Rule> table = {
      {"Identity", "Dropout(x, 0, mode)", unary},
      {"Gelu", half_of("Add(Erf(Scale(x, 0.7071067811865476)), 1)"), gelu_erf},
      // sqrt(2 / pi) (x + 0.044715 x^3), the cube alone or x taken out
      {"Gelu",
       half_of("Add(Tanh((Scale(Add(x, Scale(Cube(x), 0.044715)), 0.7978845608028654) | "
               "Mul(Scale(x, 0.7978845608028654), Add((Scale(Square(x), 0.044715) | Mul(x, Scale(x, 0.044715))), 1)) | "
               "Scale(Mul(x, Add(Scale(Square(x), 0.044715), 1)), 0.7978845608028654))), 1)"),
       gelu_tanh},
      {"HardSwish", "Scale(Mul(x, Clip(Add(x, 3), 0, 6)), 0.16666666666666667)", unary},
      {"HardSwish", "Mul(x, Scale(Clip(Add(x, 3), 0, 6), 0.16666666666666667))", unary},
      {"HardSwish", "Mul(x, h:HardSigmoid(x))", hard_swish_of_sigmoid},
      {"HardSigmoid", "Scale(Clip(Add(x, 3), 0, 6), 0.16666666666666667)", hard_sigmoid},
      {"Mish", "Mul(x, Tanh((Softplus(x) | Log(Add(Exp(x), 1)))))", unary},
      {"Softplus", "Log(Add(Exp(x), 1))", unary},
      {"Softmax", "Div(e:Exp(Sub(x, m:ReduceMax(x, ma))), v:ReduceSum(e, va))", softmax},
      {"GroupNormalization", "Add(Mul(r:Reshape(n:InstanceNormalization(Reshape(x, to), one, zero), back), w), b)",
       group_normalization},
      // As Keras writes it: x s + (b - m s) with s = w / deviation
      {"LayerNormalization", std::string("Add(Mul(x, s:Mul(") + kInverse + ", w)), Sub(b, Mul(m, s)))",
       layer_normalization},
      {"LayerNormalization", "Add(Mul(" + normalised() + ", w), b)", layer_normalization},
      {"LayerNormalization", "Mul(" + normalised() + ", w)", layer_normalization},
      {"LayerNormalization", normalised(), layer_normalization},
  };
  return table;
}

// ---- rewriting ----------------------------------------------------------------------------------------------------

class Lifter {
 public:
  explicit Lifter(Graph& graph) : graph_(graph), readers_(graph.tensors.size()), shared_(graph.tensors.size()) {
    for (NodeId id = 0; id < size(); ++id)
      for (TensorId t : graph_.nodes[id].inputs)
        if (t != kNone) readers_[t].push_back(id);
    for (TensorId t : graph_.outputs) shared_[t] = true;
    captured_ = captured();
    for (TensorId t : captured_) shared_[t] = true;
    gone_.resize(graph_.nodes.size());
    before_.resize(graph_.nodes.size());
  }

  int apply(const Rule& rule) {
    PatternTerm pattern = parse_pattern(rule.pattern);
    std::set<std::string> roots = root_operators(pattern);
    int count = 0;
    for (NodeId id = 0; id < size(); ++id)
      if (!gone_[id] && roots.count(graph_.nodes[id].op) && lift(rule, pattern, id)) ++count;
    return count;
  }

  void compact();

 private:
  NodeId size() const { return static_cast<NodeId>(graph_.nodes.size()); }

  // Tensors that the bodies of If, Loop and Scan read from outside.
  std::vector<TensorId> captured() const {
    std::unordered_set<std::string> names;
    for (const Node& node : graph_.nodes)
      for (const Attribute& a : node.attributes) {
        const auto* opaque = std::get_if<OpaqueAttribute>(&a.value);
        ::onnx::NodeProto holder;
        if (opaque && holder.add_attribute()->ParseFromString(opaque->bytes))
          for_each_read(holder, [&](const std::string& name) { names.insert(name); });
      }
    std::vector<TensorId> result;
    for (TensorId t = 0; t < static_cast<TensorId>(graph_.tensors.size()); ++t)
      if (names.count(graph_.tensors[t].name)) result.push_back(t);
    return result;
  }

  bool lift(const Rule& rule, const PatternTerm& pattern, NodeId root) {
    std::optional<Match> found = match(pattern, graph_, root);
    if (!found) return false;
    std::unordered_set<NodeId> inside(found->nodes.begin(), found->nodes.end());
    for (NodeId id : found->nodes)
      for (TensorId t : graph_.nodes[id].outputs) {
        if (t == kNone || t == graph_.nodes[root].outputs[0]) continue;
        if (shared_[t]) return false;
        for (NodeId reader : readers_[t])
          if (!inside.count(reader)) return false;
      }
    Node lifted{.name = named_after(graph_.nodes[root].name, rule.op), .op = rule.op};
    lifted.outputs = {graph_.nodes[root].outputs[0]};
    size_t tensors = graph_.tensors.size();
    Site site(graph_, *found, lifted);
    if (!rule.make(site)) {
      graph_.tensors.resize(tensors);
      return false;
    }
    for (NodeId id : inside) {
      for (TensorId t : graph_.nodes[id].inputs)
        if (t != kNone) readers_[t].erase(std::remove(readers_[t].begin(), readers_[t].end(), id), readers_[t].end());
      gone_[id] = id != root;
    }
    readers_.resize(graph_.tensors.size());
    shared_.resize(graph_.tensors.size());
    for (TensorId t : lifted.inputs) readers_[t].push_back(root);
    before_[root] = std::move(site.before);
    graph_.nodes[root] = std::move(lifted);
    return true;
  }

  // "/encoder/mlp/1/Mul_1" becomes "/encoder/mlp/1/Gelu".
  static std::string named_after(const std::string& name, const char* op) {
    size_t slash = name.rfind('/');
    return slash == std::string::npos ? name : name.substr(0, slash + 1) + op;
  }

  Graph& graph_;
  std::vector<std::vector<NodeId>> readers_;  // of each tensor
  std::vector<bool> shared_;                  // graph outputs, and what subgraphs capture
  std::vector<TensorId> captured_;
  std::vector<bool> gone_;                 // nodes inside a lifted one
  std::vector<std::vector<Node>> before_;  // nodes to be put before each
};

// Leaves out nodes that outputs no longer need, and tensors that no node names.
void Lifter::compact() {
  std::vector<Node> nodes;
  for (NodeId id = 0; id < size(); ++id) {
    if (gone_[id]) continue;
    for (Node& node : before_[id]) nodes.push_back(std::move(node));
    nodes.push_back(std::move(graph_.nodes[id]));
  }
  std::vector<bool> needed(graph_.tensors.size());
  for (TensorId t : graph_.outputs) needed[t] = true;
  for (TensorId t : captured_) needed[t] = true;
  std::vector<bool> live(nodes.size());
  for (size_t i = nodes.size(); i-- > 0;) {
    for (TensorId t : nodes[i].outputs) live[i] = live[i] || (t != kNone && needed[t]);
    if (!live[i]) continue;
    for (TensorId t : nodes[i].inputs)
      if (t != kNone) needed[t] = true;
    for (TensorId t : nodes[i].outputs)
      if (t != kNone) needed[t] = true;
  }
  for (TensorId t : graph_.inputs)
    if (graph_.tensors[t].kind == TensorKind::input) needed[t] = true;

  Graph result;
  result.name = std::move(graph_.name);
  result.opset = graph_.opset;
  result.opsets = std::move(graph_.opsets);
  std::vector<TensorId> moved(graph_.tensors.size(), kNone);
  Names names;
  for (TensorId t = 0; t < static_cast<TensorId>(graph_.tensors.size()); ++t) {
    if (!needed[t]) continue;
    Tensor tensor = std::move(graph_.tensors[t]);
    tensor.producer = kNone;
    tensor.name = names.unique(tensor.name);
    moved[t] = result.add(std::move(tensor));
  }
  auto rename = [&](std::vector<TensorId>& list) {
    for (TensorId& t : list) t = t == kNone ? kNone : moved[t];
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!live[i]) continue;
    rename(nodes[i].inputs);
    rename(nodes[i].outputs);
    nodes[i].unit = kNone;
    result.add(std::move(nodes[i]));
  }
  for (TensorId t : graph_.inputs)
    if (moved[t] != kNone) result.inputs.push_back(moved[t]);
  result.outputs = graph_.outputs;
  rename(result.outputs);
  assign_single_units(result);
  graph_ = std::move(result);
}

}  // namespace

std::map<std::string, int> lift(Graph& graph,
                                const std::function<bool(const std::string& domain, const std::string& op)>& has_rule) {
  std::map<std::string, int> lifted;
  if (!has_rule) return lifted;
  Lifter lifter(graph);
  for (const Rule& rule : rules()) {
    if (!has_rule("", rule.op)) continue;
    int count = lifter.apply(rule);
    if (count > 0) lifted[rule.op] += count;
  }
  if (!lifted.empty()) lifter.compact();
  return lifted;
}

}  // namespace monet
