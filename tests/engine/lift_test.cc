// Lifting of what exporters decompose: each pattern is recognised, computes what its pieces compute (both graphs are
// evaluated here in double precision), and near misses are left alone.
#include "engine/onnx/lift.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "tests/engine/onnx_builder.h"

namespace monet {
namespace {

using test::attr;
using test::bind;
using test::operators;
using Make = std::function<void(test::Builder&)>;

// ---- a small interpreter --------------------------------------------------------------------------------------------

struct Array {
  Shape shape;
  std::vector<double> at;
};

Array constant(const Tensor& t) {
  Array a{t.shape, {}};
  if (t.dtype == DType::int64)
    for (int64_t v : integers(t)) a.at.push_back(static_cast<double>(v));
  for (size_t i = 0; t.dtype == DType::float32 && i + 4 <= t.data.size(); i += 4) {
    float v;
    std::memcpy(&v, t.data.data() + i, 4);
    a.at.push_back(v);
  }
  return a;
}

double element(const Array& a, const Shape& at) {  // with numpy broadcasting
  size_t index = 0;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    int64_t where = a.shape[i] == 1 ? 0 : at[at.size() - a.shape.size() + i];
    index = index * static_cast<size_t>(a.shape[i]) + static_cast<size_t>(where);
  }
  return a.at.at(index);
}

template <typename F>
Array generate(const Shape& shape, F f) {
  Array out{shape, {}};
  Shape at(shape.size(), 0);
  for (int64_t i = 0; i < elements(shape); ++i) {
    int64_t rest = i;
    for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) at[d] = rest % shape[d];
    out.at.push_back(f(at));
  }
  return out;
}

Array map(const Array& a, double (*f)(double)) {
  Array out = a;
  for (double& v : out.at) v = f(v);
  return out;
}
Array zip(const Array& a, const Array& b, const Shape& shape, double (*f)(double, double)) {
  return generate(shape, [&](const Shape& at) { return f(element(a, at), element(b, at)); });
}
Array reduce(const Array& a, std::vector<int64_t> axes, double start, double (*f)(double, double), bool mean) {
  Array out{a.shape, {}};
  for (int64_t axis : axes)
    out.shape[static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(a.shape.size()) : axis)] = 1;
  out.at.assign(static_cast<size_t>(elements(out.shape)), start);
  Array position = generate(a.shape, [&](const Shape& at) {
    int64_t index = 0;
    for (size_t d = 0; d < at.size(); ++d) index = index * out.shape[d] + (out.shape[d] == 1 ? 0 : at[d]);
    return static_cast<double>(index);
  });
  for (size_t i = 0; i < a.at.size(); ++i) {
    double& to = out.at[static_cast<size_t>(position.at[i])];
    to = f(to, a.at[i]);
  }
  double count = static_cast<double>(a.at.size()) / static_cast<double>(out.at.size());
  for (double& v : out.at) v = mean ? v / count : v;
  return out;
}
// Each row of `length` elements with mean 0 and variance 1.
Array standardised(const Array& a, int64_t length, double epsilon) {
  Array out = a;
  for (size_t from = 0; from < a.at.size(); from += static_cast<size_t>(length)) {
    auto first = out.at.begin() + static_cast<std::ptrdiff_t>(from), last = first + length;
    double mean = std::accumulate(first, last, 0.0) / static_cast<double>(length), square = 0;
    for (auto v = first; v != last; ++v) square += (*v - mean) * (*v - mean);
    for (auto v = first; v != last; ++v) *v = (*v - mean) / std::sqrt(square / static_cast<double>(length) + epsilon);
  }
  return out;
}
Array per_channel(const Array& a, const Array& scale, const Array& bias) {
  return generate(a.shape, [&](const Shape& at) {
    size_t c = static_cast<size_t>(at[1]);
    return element(a, at) * scale.at[c] + bias.at[c];
  });
}

double add(double a, double b) { return a + b; }
double softplus(double v) { return std::log(std::exp(v) + 1); }
double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }

Array evaluate(const Graph& g, const std::map<std::string, Array>& given) {
  std::vector<Array> value(g.tensors.size());
  for (size_t t = 0; t < value.size(); ++t) {
    auto found = given.find(g.tensors[t].name);
    if (found != given.end()) value[t] = found->second;
    if (!g.tensors[t].data.empty()) value[t] = constant(g.tensors[t]);
  }
  for (const Node& n : g.nodes) {
    auto in = [&](size_t i) -> const Array& { return value[static_cast<size_t>(n.inputs.at(i))]; };
    const Shape& shape = g.tensors[static_cast<size_t>(n.outputs[0])].shape;
    Array& out = value[static_cast<size_t>(n.outputs[0])];
    float epsilon = attribute(n, "epsilon", 1e-5f);
    auto axes = [&] {
      std::vector<int64_t> list;
      for (double v : in(1).at) list.push_back(static_cast<int64_t>(v));
      return list;
    };
    if (n.op == "Add")
      out = zip(in(0), in(1), shape, add);
    else if (n.op == "Sub")
      out = zip(in(0), in(1), shape, [](double a, double b) { return a - b; });
    else if (n.op == "Mul")
      out = zip(in(0), in(1), shape, [](double a, double b) { return a * b; });
    else if (n.op == "Div")
      out = zip(in(0), in(1), shape, [](double a, double b) { return a / b; });
    else if (n.op == "Pow")
      out = zip(in(0), in(1), shape, [](double a, double b) { return std::pow(a, b); });
    else if (n.op == "Sqrt")
      out = map(in(0), std::sqrt);
    else if (n.op == "Reciprocal")
      out = map(in(0), [](double v) { return 1 / v; });
    else if (n.op == "Exp")
      out = map(in(0), std::exp);
    else if (n.op == "Log")
      out = map(in(0), std::log);
    else if (n.op == "Erf")
      out = map(in(0), std::erf);
    else if (n.op == "Tanh")
      out = map(in(0), std::tanh);
    else if (n.op == "Sigmoid")
      out = map(in(0), sigmoid);
    else if (n.op == "Softplus")
      out = map(in(0), softplus);
    else if (n.op == "Mish")
      out = map(in(0), [](double v) { return v * std::tanh(softplus(v)); });
    else if (n.op == "HardSwish")
      out = map(in(0), [](double v) { return v * std::min(1.0, std::max(0.0, v / 6 + 0.5)); });
    else if (n.op == "HardSigmoid") {
      out = in(0);
      for (double& v : out.at)
        v = std::min(1.0, std::max(0.0, attribute(n, "alpha", 0.2f) * v + double{attribute(n, "beta", 0.5f)}));
    } else if (n.op == "Gelu") {
      out = attribute(n, "approximate", "none") == "tanh"
                ? map(in(0),
                      [](double v) {
                        return 0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
                      })
                : map(in(0), [](double v) { return 0.5 * v * (1 + std::erf(v / std::sqrt(2.0))); });
    } else if (n.op == "Clip") {
      out = in(0);
      for (double& v : out.at) v = std::min(in(2).at[0], std::max(in(1).at[0], v));
    } else if (n.op == "ReduceMean")
      out = reduce(in(0), axes(), 0, add, true);
    else if (n.op == "ReduceSum")
      out = reduce(in(0), axes(), 0, add, false);
    else if (n.op == "ReduceMax")
      out = reduce(
          in(0), axes(), -1e300, [](double a, double b) { return std::max(a, b); }, false);
    else if (n.op == "Softmax") {
      std::vector<int64_t> axis{attribute(n, "axis", int64_t{-1})};
      Array e = map(in(0), std::exp);
      out = zip(e, reduce(e, axis, 0, add, false), shape, [](double a, double b) { return a / b; });
    } else if (n.op == "Reshape" || n.op == "Unsqueeze" || n.op == "Identity" || n.op == "Dropout") {
      out = in(0);
      out.shape = shape;
    } else if (n.op == "InstanceNormalization") {
      out = per_channel(standardised(in(0), elements(shape) / shape[0] / shape[1], double{epsilon}), in(1), in(2));
    } else if (n.op == "GroupNormalization") {
      int64_t length = elements(shape) / shape[0] / attribute(n, "num_groups", int64_t{0});
      out = per_channel(standardised(in(0), length, double{epsilon}), in(1), in(2));
    } else if (n.op == "LayerNormalization") {
      int64_t length = 1;
      for (int64_t i = attribute(n, "axis", int64_t{-1}); i < 0; ++i)
        length *= shape[static_cast<size_t>(i + static_cast<int64_t>(shape.size()))];
      out = zip(standardised(in(0), length, double{epsilon}), in(1), shape, [](double a, double b) { return a * b; });
      if (n.inputs.size() > 2) out = zip(out, in(2), shape, add);
    } else {
      ADD_FAILURE() << "no evaluation of " << n.op;
    }
  }
  return value[static_cast<size_t>(g.outputs[0])];
}

// ---- models ---------------------------------------------------------------------------------------------------------

test::Message scalar(const char* name, float value) {
  return test::tensor_proto(name, DType::float32, {}, test::raw<float>({value}));
}
void value(test::Builder& b, const char* name, float v) { b.constant(name, scalar("", v)); }
void axes(test::Builder& b, const char* name, std::initializer_list<int64_t> list) {
  b.constant(name, test::tensor_proto("", DType::int64, {static_cast<int64_t>(list.size())}, test::raw(list)));
}

BindOptions with_rules() {
  BindOptions options;
  options.has_rule = [](const std::string&, const std::string&) { return true; };
  return options;
}

test::Builder model(const std::vector<test::Dim>& x, const Make& make) {
  test::Builder b;
  b.input("x", x).output("y");
  make(b);
  return b;
}

const std::vector<test::Dim> kX = {2, 4, 6};

// What remains of the model when everything has a rule.
std::string lifted(const Make& make, const std::vector<test::Dim>& x = kX) {
  return operators(bind(model(x, make), with_rules()).graph);
}

// Expects `operators` after lifting, the output's name unchanged, and the same numbers as before.
void expect_same(const std::string& expected, const Make& make, const std::vector<test::Dim>& x = kX) {
  test::Builder b = model(x, make);
  Graph before = bind(b).graph, after = bind(b, with_rules()).graph;
  EXPECT_EQ(operators(after), expected);
  EXPECT_EQ(after.tensors[static_cast<size_t>(after.outputs[0])].name, "y");
  EXPECT_EQ(after.units.size(), after.nodes.size());
  std::map<std::string, Array> given;
  for (const Tensor& t : before.tensors) {
    if (t.kind == TensorKind::computed || !t.data.empty()) continue;
    double seed = static_cast<double>(t.name.size()) + t.name[0];
    given[t.name] = generate(t.shape, [&](const Shape&) {
      seed = std::fmod(seed * 7.13 + 3.7, 8.0);
      return seed - 4;
    });
  }
  Array a = evaluate(before, given), b_ = evaluate(after, given);
  ASSERT_EQ(a.shape, b_.shape);
  ASSERT_EQ(a.at.size(), b_.at.size());
  // Constants of the decomposed form are rounded to float32.
  for (size_t i = 0; i < a.at.size(); ++i) EXPECT_NEAR(a.at[i], b_.at[i], 2e-6 * (1 + std::fabs(a.at[i]))) << i;
}

void gelu_constants(test::Builder& b) {
  value(b, "root2", 1.41421356f);
  value(b, "one", 1);
  value(b, "half", 0.5f);
}

TEST(Lift, GeluAsPyTorchExportsIt) {
  expect_same("Gelu", [](test::Builder& b) {
    gelu_constants(b);
    b.op("Div", {"x", "root2"}, {"d"}).op("Erf", {"d"}, {"e"}).op("Add", {"e", "one"}, {"a"});
    b.op("Mul", {"x", "a"}, {"m"}).op("Mul", {"m", "half"}, {"y"});
  });
}

TEST(Lift, GeluInOtherOrders) {
  expect_same("Gelu", [](test::Builder& b) {  // (0.5 x) (1 + erf(x * 0.7071))
    gelu_constants(b);
    value(b, "root", 0.70710678f);
    b.op("Mul", {"root", "x"}, {"d"}).op("Erf", {"d"}, {"e"}).op("Add", {"one", "e"}, {"a"});
    b.op("Mul", {"half", "x"}, {"h"}).op("Mul", {"h", "a"}, {"y"});
  });
  expect_same("Gelu", [](test::Builder& b) {  // x (0.5 (1 + erf))
    gelu_constants(b);
    b.op("Div", {"x", "root2"}, {"d"}).op("Erf", {"d"}, {"e"}).op("Add", {"e", "one"}, {"a"});
    b.op("Mul", {"a", "half"}, {"h"}).op("Mul", {"h", "x"}, {"y"});
  });
}

TEST(Lift, GeluKeepsItsPlaceInTheModel) {
  test::Builder b = model(kX, [](test::Builder& m) {
    gelu_constants(m);
    m.op("Relu", {"x"}, {"r"});
    m.op("Div", {"r", "root2"}, {"d"}, {}, "/h/mlp/Div").op("Erf", {"d"}, {"e"}).op("Add", {"e", "one"}, {"a"});
    m.op("Mul", {"r", "a"}, {"m"}, {}, "/h/mlp/Mul").op("Mul", {"m", "half"}, {"g"}, {}, "/h/mlp/Mul_1");
    m.op("Tanh", {"g"}, {"y"});
  });
  BoundModel bound = bind(b, with_rules());
  EXPECT_EQ(operators(bound.graph), "Relu Gelu Tanh");
  EXPECT_EQ(bound.graph.nodes[1].name, "/h/mlp/Gelu");
  EXPECT_EQ(attribute(bound.graph.nodes[1], "approximate", ""), "none");
  EXPECT_EQ(bound.lifted, (std::map<std::string, int>{{"Gelu", 1}}));
  for (const Tensor& t : bound.graph.tensors) EXPECT_NE(t.kind, TensorKind::constant) << t.name;
}

TEST(Lift, GeluNearMisses) {
  auto gelu = [](float root, float one, float half, bool shared, bool other) {
    return [=](test::Builder& b) {
      value(b, "root2", root);
      value(b, "one", one);
      value(b, "half", half);
      b.op("Div", {"x", "root2"}, {"d"}).op("Erf", {"d"}, {"e"}).op("Add", {"e", "one"}, {"a"});
      if (other) b.op("Neg", {"x"}, {"z"});
      b.op("Mul", {other ? "z" : "x", "a"}, {"m"}).op("Mul", {"m", "half"}, {"y"});
      if (shared) b.op("Neg", {"a"}, {"second"}).output("second");
    };
  };
  EXPECT_EQ(lifted(gelu(1.41421356f, 1, 0.5f, false, false)), "Gelu");
  EXPECT_EQ(lifted(gelu(1.4f, 1, 0.5f, false, false)), "Div Erf Add Mul Mul");
  EXPECT_EQ(lifted(gelu(1.41421356f, 2, 0.5f, false, false)), "Div Erf Add Mul Mul");
  EXPECT_EQ(lifted(gelu(1.41421356f, 1, 1, false, false)), "Div Erf Add Mul Mul");
  EXPECT_EQ(lifted(gelu(1.41421356f, 1, 0.5f, true, false)), "Div Erf Add Mul Mul Neg");
  EXPECT_EQ(lifted(gelu(1.41421356f, 1, 0.5f, false, true)), "Div Erf Add Neg Mul Mul");
}

TEST(Lift, NothingIsLiftedWithoutARule) {
  BindOptions options;
  options.has_rule = [](const std::string&, const std::string& op) { return op != "Gelu"; };
  test::Builder b = model(kX, [](test::Builder& m) {
    gelu_constants(m);
    m.op("Div", {"x", "root2"}, {"d"}).op("Erf", {"d"}, {"e"}).op("Add", {"e", "one"}, {"a"});
    m.op("Mul", {"x", "a"}, {"m"}).op("Mul", {"m", "half"}, {"y"});
  });
  EXPECT_EQ(operators(bind(b, options).graph), "Div Erf Add Mul Mul");
}

TEST(Lift, AnOutputInsideAPatternStays) {
  EXPECT_EQ(lifted([](test::Builder& b) {
              gelu_constants(b);
              b.op("Div", {"x", "root2"}, {"d"}).op("Erf", {"d"}, {"e"}).op("Add", {"e", "one"}, {"a"});
              b.op("Mul", {"x", "a"}, {"m"}).op("Mul", {"m", "half"}, {"y"}).output("m");
            }),
            "Div Erf Add Mul Mul");
}

void new_gelu_constants(test::Builder& b) {
  value(b, "one", 1);
  value(b, "half", 0.5f);
  value(b, "three", 3);
  value(b, "cubic", 0.044715f);
  value(b, "root", 0.79788456f);
}

TEST(Lift, TanhGelu) {
  expect_same("Gelu", [](test::Builder& b) {  // PyTorch: half (x (1 + tanh(root (x + cubic (x (x x))))))
    new_gelu_constants(b);
    b.op("Mul", {"x", "x"}, {"s"}).op("Mul", {"x", "s"}, {"c"}).op("Mul", {"cubic", "c"}, {"k"});
    b.op("Add", {"x", "k"}, {"i"}).op("Mul", {"root", "i"}, {"r"}).op("Tanh", {"r"}, {"t"});
    b.op("Add", {"one", "t"}, {"a"}).op("Mul", {"x", "a"}, {"m"}).op("Mul", {"half", "m"}, {"y"});
  });
  expect_same("Gelu", [](test::Builder& b) {  // GPT-2: (0.5 x) (1 + tanh(root (x + cubic x^3)))
    new_gelu_constants(b);
    b.op("Mul", {"x", "half"}, {"h"}).op("Pow", {"x", "three"}, {"c"}).op("Mul", {"c", "cubic"}, {"k"});
    b.op("Add", {"x", "k"}, {"i"}).op("Mul", {"i", "root"}, {"r"}).op("Tanh", {"r"}, {"t"});
    b.op("Add", {"t", "one"}, {"a"}).op("Mul", {"h", "a"}, {"y"});
  });
  expect_same("Gelu", [](test::Builder& b) {  // "fast": 0.5 x (1 + tanh((x root) (1 + (cubic x) x)))
    new_gelu_constants(b);
    b.op("Mul", {"x", "half"}, {"h"}).op("Mul", {"x", "root"}, {"r"}).op("Mul", {"x", "cubic"}, {"k"});
    b.op("Mul", {"k", "x"}, {"s"}).op("Add", {"s", "one"}, {"i"}).op("Mul", {"r", "i"}, {"n"}).op("Tanh", {"n"}, {"t"});
    b.op("Add", {"t", "one"}, {"a"}).op("Mul", {"h", "a"}, {"y"});
  });
}

TEST(Lift, TanhGeluNearMisses) {
  auto gelu = [](float cubic, float power) {
    return [=](test::Builder& b) {
      value(b, "one", 1);
      value(b, "half", 0.5f);
      value(b, "three", power);
      value(b, "cubic", cubic);
      value(b, "root", 0.79788456f);
      b.op("Mul", {"x", "half"}, {"h"}).op("Pow", {"x", "three"}, {"c"}).op("Mul", {"c", "cubic"}, {"k"});
      b.op("Add", {"x", "k"}, {"i"}).op("Mul", {"i", "root"}, {"r"}).op("Tanh", {"r"}, {"t"});
      b.op("Add", {"t", "one"}, {"a"}).op("Mul", {"h", "a"}, {"y"});
    };
  };
  EXPECT_EQ(lifted(gelu(0.044715f, 3)), "Gelu");
  EXPECT_EQ(lifted(gelu(0.0447f, 3)), "Mul Pow Mul Add Mul Tanh Add Mul");
  EXPECT_EQ(lifted(gelu(0.044715f, 2)), "Mul Pow Mul Add Mul Tanh Add Mul");
}

struct Norm {
  std::initializer_list<int64_t> mean = {-1}, variance = {-1};
  Shape weight = {6};
  bool affine = true, shared = false;
  int keepdims = 1;
};

Make layer_norm(const Norm& n) {
  return [=](test::Builder& b) {
    value(b, "two", 2);
    value(b, "eps", 1e-5f);
    axes(b, "ma", n.mean);
    axes(b, "va", n.variance);
    b.op("ReduceMean", {"x", "ma"}, {"m"}, {attr("keepdims", n.keepdims)}).op("Sub", {"x", "m"}, {"d"});
    b.op("Pow", {"d", "two"}, {"s"}).op("ReduceMean", {"s", "va"}, {"v"}).op("Add", {"v", "eps"}, {"e"});
    b.op("Sqrt", {"e"}, {"r"}).op("Div", {"d", "r"}, {n.affine ? "n" : "y"});
    if (n.affine)
      b.weight("w", n.weight).weight("bias", {6}).op("Mul", {"n", "w"}, {"p"}).op("Add", {"p", "bias"}, {"y"});
    if (n.shared) b.op("Neg", {"d"}, {"second"}).output("second");
  };
}

TEST(Lift, LayerNormalization) {
  expect_same("LayerNormalization", layer_norm({}));
  expect_same("LayerNormalization", layer_norm({.affine = false}));
  expect_same("LayerNormalization", layer_norm({.mean = {2}, .variance = {-1}}));
  expect_same("LayerNormalization", [](test::Builder& b) {  // over two axes, with products and a reciprocal
    value(b, "eps", 1e-6f);
    axes(b, "a", {1, 2});
    b.weight("w", {4, 6}).weight("b", {4, 6});
    b.op("ReduceMean", {"x", "a"}, {"m"}).op("Sub", {"x", "m"}, {"d"}).op("Mul", {"d", "d"}, {"s"});
    b.op("ReduceMean", {"s", "a"}, {"v"}).op("Add", {"v", "eps"}, {"e"}).op("Sqrt", {"e"}, {"r"});
    b.op("Reciprocal", {"r"}, {"i"})
        .op("Mul", {"d", "i"}, {"n"})
        .op("Mul", {"w", "n"}, {"p"})
        .op("Add", {"b", "p"}, {"y"});
  });
  expect_same("LayerNormalization", [](test::Builder& b) {  // Keras: x s + (b - m s)
    value(b, "eps", 1e-3f);
    axes(b, "a", {2});
    b.weight("w", {6}).weight("b", {6});
    b.op("ReduceMean", {"x", "a"}, {"m"}).op("Sub", {"x", "m"}, {"d"}).op("Mul", {"d", "d"}, {"q"});
    b.op("ReduceMean", {"q", "a"}, {"v"}).op("Add", {"v", "eps"}, {"e"}).op("Sqrt", {"e"}, {"r"});
    b.op("Reciprocal", {"r"}, {"i"}).op("Mul", {"i", "w"}, {"s"}).op("Mul", {"x", "s"}, {"p"});
    b.op("Mul", {"m", "s"}, {"t"}).op("Sub", {"b", "t"}, {"u"}).op("Add", {"p", "u"}, {"y"});
  });
}

TEST(Lift, LayerNormalizationAttributes) {
  Graph g = bind(model(kX, layer_norm({})), with_rules()).graph;
  EXPECT_EQ(attribute(g.nodes[0], "axis", int64_t{0}), -1);
  EXPECT_FLOAT_EQ(attribute(g.nodes[0], "epsilon", 0.0f), 1e-5f);
  ASSERT_EQ(g.nodes[0].inputs.size(), 3u);
  EXPECT_EQ(g.tensors[static_cast<size_t>(g.nodes[0].inputs[1])].name, "w");
  EXPECT_EQ(g.tensors[static_cast<size_t>(g.nodes[0].inputs[2])].name, "bias");
  EXPECT_EQ(g.tensors[static_cast<size_t>(g.nodes[0].inputs[1])].kind, TensorKind::parameter);
}

TEST(Lift, LayerNormalizationNearMisses) {
  const std::string whole = "ReduceMean Sub Pow ReduceMean Add Sqrt Div Mul Add";
  EXPECT_EQ(lifted(layer_norm({.mean = {1}, .variance = {1}})), whole);   // not the last axis
  EXPECT_EQ(lifted(layer_norm({.mean = {-1}, .variance = {1}})), whole);  // two different axes
  EXPECT_EQ(lifted(layer_norm({.mean = {-1}, .variance = {-1}, .shared = true})), whole + " Neg");
  // A scale of another shape: the normalisation is lifted, its scale is not.
  EXPECT_EQ(lifted(layer_norm({.weight = {1}})), "LayerNormalization Mul Add");
}

TEST(Lift, LayerNormalizationOfDoublesStays) {
  test::Builder b;
  b.input("x", kX, DType::float64).output("y");
  b.constant("two", test::tensor_proto("", DType::float64, {}, test::raw<double>({2})));
  b.constant("eps", test::tensor_proto("", DType::float64, {}, test::raw<double>({1e-5})));
  axes(b, "a", {-1});
  b.op("ReduceMean", {"x", "a"}, {"m"}).op("Sub", {"x", "m"}, {"d"}).op("Pow", {"d", "two"}, {"s"});
  b.op("ReduceMean", {"s", "a"}, {"v"}).op("Add", {"v", "eps"}, {"e"}).op("Sqrt", {"e"}, {"r"});
  b.op("Div", {"d", "r"}, {"y"});
  EXPECT_EQ(operators(bind(b, with_rules()).graph), "ReduceMean Sub Pow ReduceMean Add Sqrt Div");
}

// As PyTorch exports GroupNorm(2, 4) on [N, 4, 6].
Make group_norm(float one, Shape weight, bool unsqueezed, std::initializer_list<int64_t> back = {2, 4, 6}) {
  return [=](test::Builder& b) {
    axes(b, "to", {0, 2, -1});
    axes(b, "back", back);
    axes(b, "spatial", {1});
    b.constant("ones", test::tensor_proto("", DType::float32, {2}, test::raw<float>({one, one})));
    b.constant("zeros", test::tensor_proto("", DType::float32, {2}, test::raw<float>({0, 0})));
    b.op("Reshape", {"x", "to"}, {"g"});
    b.op("InstanceNormalization", {"g", "ones", "zeros"}, {"i"}, {attr("epsilon", 1e-3f)});
    b.op("Reshape", {"i", "back"}, {"r"});
    b.weight("w", weight).weight("b", weight);
    if (unsqueezed) b.op("Unsqueeze", {"w", "spatial"}, {"wu"}).op("Unsqueeze", {"b", "spatial"}, {"bu"});
    b.op("Mul", {"r", unsqueezed ? "wu" : "w"}, {"p"}).op("Add", {"p", unsqueezed ? "bu" : "b"}, {"y"});
  };
}

TEST(Lift, GroupNormalization) {
  expect_same("GroupNormalization", group_norm(1, {4}, true));
  expect_same("Reshape Reshape GroupNormalization", group_norm(1, {4, 1}, false));
  Graph g = bind(model(kX, group_norm(1, {4}, true)), with_rules()).graph;
  EXPECT_EQ(attribute(g.nodes[0], "num_groups", int64_t{0}), 2);
  EXPECT_FLOAT_EQ(attribute(g.nodes[0], "epsilon", 0.0f), 1e-3f);
  EXPECT_EQ(g.tensors[static_cast<size_t>(g.nodes[0].inputs[1])].shape, (Shape{4}));
}

TEST(Lift, GroupNormalizationNearMisses) {
  EXPECT_EQ(lifted(group_norm(2, {4, 1}, false)), "Reshape InstanceNormalization Reshape Mul Add");
  EXPECT_EQ(lifted(group_norm(1, {6}, false)), "Reshape InstanceNormalization Reshape Mul Add");
  EXPECT_EQ(lifted(group_norm(1, {4}, false, {2, 6, 4})), "Reshape InstanceNormalization Reshape Mul Add");
}

Make clipped(float three, float six, float sixth, bool product) {
  return [=](test::Builder& b) {
    value(b, "three", three);
    value(b, "zero", 0);
    value(b, "six", six);
    value(b, "sixth", sixth);
    b.op("Add", {"x", "three"}, {"a"}).op("Clip", {"a", "zero", "six"}, {"c"});
    b.op("Div", {"c", "sixth"}, {product ? "h" : "y"});
    if (product) b.op("Mul", {"x", "h"}, {"y"});
  };
}

TEST(Lift, HardSigmoidAndHardSwish) {
  expect_same("HardSigmoid", clipped(3, 6, 6, false));
  expect_same("HardSwish", clipped(3, 6, 6, true));
  expect_same("HardSwish", [](test::Builder& b) {
    b.op("HardSigmoid", {"x"}, {"h"}, {attr("alpha", 1.0f / 6)}).op("Mul", {"x", "h"}, {"y"});
  });
  expect_same("HardSwish", [](test::Builder& b) {  // (x clip) / 6
    value(b, "three", 3);
    value(b, "zero", 0);
    value(b, "six", 6);
    b.op("Add", {"x", "three"}, {"a"}).op("Clip", {"a", "zero", "six"}, {"c"});
    b.op("Mul", {"x", "c"}, {"p"}).op("Div", {"p", "six"}, {"y"});
  });
  EXPECT_EQ(lifted(clipped(2, 6, 6, true)), "Add Clip Div Mul");
  EXPECT_EQ(lifted(clipped(3, 5, 6, true)), "Add Clip Div Mul");
  EXPECT_EQ(lifted(clipped(3, 6, 5, true)), "Add Clip Div Mul");
  EXPECT_EQ(lifted([](test::Builder& b) {
              b.op("HardSigmoid", {"x"}, {"h"}).op("Mul", {"x", "h"}, {"y"});
            }),
            "HardSigmoid Mul");
}

TEST(Lift, SoftplusAndMish) {
  auto decomposed = [](float one, bool mish, bool shared) {
    return [=](test::Builder& b) {
      value(b, "one", one);
      b.op("Exp", {"x"}, {"e"}).op("Add", {"e", "one"}, {"a"}).op("Log", {"a"}, {mish ? "l" : "y"});
      if (mish) b.op("Tanh", {"l"}, {"t"}).op("Mul", {"x", "t"}, {"y"});
      if (shared) b.op("Neg", {"e"}, {"second"}).output("second");
    };
  };
  expect_same("Softplus", decomposed(1, false, false));
  expect_same("Mish", decomposed(1, true, false));
  expect_same("Mish", [](test::Builder& b) {
    b.op("Softplus", {"x"}, {"s"}).op("Tanh", {"s"}, {"t"}).op("Mul", {"t", "x"}, {"y"});
  });
  EXPECT_EQ(lifted(decomposed(2, false, false)), "Exp Add Log");
  EXPECT_EQ(lifted(decomposed(1, false, true)), "Exp Add Log Neg");
  EXPECT_EQ(lifted([](test::Builder& b) {
              b.op("Softplus", {"x"}, {"s"}).op("Tanh", {"s"}, {"t"}).op("Mul", {"t", "s"}, {"y"});
            }),
            "Softplus Tanh Mul");
}

TEST(Lift, Softmax) {
  auto decomposed = [](std::initializer_list<int64_t> most, std::initializer_list<int64_t> sum) {
    return [=](test::Builder& b) {
      axes(b, "ma", most);
      axes(b, "sa", sum);
      b.op("ReduceMax", {"x", "ma"}, {"m"}).op("Sub", {"x", "m"}, {"d"}).op("Exp", {"d"}, {"e"});
      b.op("ReduceSum", {"e", "sa"}, {"s"}).op("Div", {"e", "s"}, {"y"});
    };
  };
  expect_same("Softmax", decomposed({-1}, {2}));
  expect_same("Softmax", decomposed({1}, {1}));
  EXPECT_EQ(lifted(decomposed({1}, {2})), "ReduceMax Sub Exp ReduceSum Div");
  EXPECT_EQ(lifted(decomposed({1, 2}, {1, 2})), "ReduceMax Sub Exp ReduceSum Div");
}

TEST(Lift, DropoutThatDropsNothing) {
  auto dropout = [](float ratio, bool mask) {
    return [=](test::Builder& b) {
      value(b, "ratio", ratio);
      b.constant("mode", test::tensor_proto("", DType::boolean, {}, std::string(1, 1)));
      b.op("Dropout", {"x", "ratio", "mode"}, {"y", "mask"});
      if (mask) b.output("mask");
    };
  };
  expect_same("Identity", dropout(0, false));
  EXPECT_EQ(lifted(dropout(0.1f, false)), "Dropout");
  EXPECT_EQ(lifted(dropout(0, true)), "Dropout");
}

// A Loop's body reads what would have been inside a lifted node.
TEST(Lift, WhatASubgraphReadsStays) {
  test::Builder body;
  body.op("Identity", {"a"}, {"inner"}).output("inner");
  test::Builder b = model(kX, [&](test::Builder& m) {
    gelu_constants(m);
    m.input("which", std::vector<test::Dim>{}, DType::boolean);
    m.op("Div", {"x", "root2"}, {"d"}).op("Erf", {"d"}, {"e"}).op("Add", {"e", "one"}, {"a"});
    m.op("Mul", {"x", "a"}, {"m"}).op("Mul", {"m", "half"}, {"y"});
    m.op("If", {"which"}, {"z"},
         {test::attr_graph("then_branch", body.graph()), test::attr_graph("else_branch", body.graph())});
    m.output("z");
  });
  EXPECT_EQ(operators(bind(b, with_rules()).graph), "Div Erf Add Mul Mul If");
}

}  // namespace
}  // namespace monet
