// Import on small models: order of stages, kinds of tensors, folding, refusals. Numbers in comments are rows of the
// project's list of what real ONNX files contain.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "onnx_builder.h"

namespace monet::test {
namespace {

const Node& node_named(const Graph& graph, const std::string& op) {
  for (const Node& n : graph.nodes)
    if (n.op == op) return n;
  throw std::runtime_error("no " + op);
}

std::vector<std::string> names(const Graph& graph, TensorKind kind) {
  std::vector<std::string> all;
  for (const Tensor& t : graph.tensors)
    if (t.kind == kind) all.push_back(t.name);
  return all;
}

bool warns(const BoundModel& bound, const std::string& code) {
  return std::any_of(bound.warnings.begin(), bound.warnings.end(), [&](const Diagnostic& d) { return d.code == code; });
}

// ---- dimensions (case 1) ------------------------------------------------------------------------------------------

TEST(OnnxImport, BindsDimensionsByNameAndDefaultsTheRest) {  // case 1
  Model model = open(Builder().input("x", {"batch", 4, "sequence"}).op("Flatten", {"x"}, {"y"}).output("y"));
  BindOptions options;
  options.dims = {{"sequence", 5}};
  BoundModel bound = model.bind(options);
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{1, 20}));
  ASSERT_EQ(bound.dims.size(), 2u);
  EXPECT_EQ(bound.dims[0].name, "batch");
  EXPECT_TRUE(bound.dims[0].defaulted);
  EXPECT_EQ(bound.dims[1].name, "sequence");
  EXPECT_EQ(bound.dims[1].value, 5);
  EXPECT_EQ(bound.dims[1].axis, 2);
  EXPECT_FALSE(bound.dims[1].defaulted);
  options.batch = 7;
  EXPECT_EQ(tensor(model.bind(options).graph, "y").shape, (Shape{7, 20}));
}

TEST(OnnxImport, UnnamedDimensionsAreCalledByTensorAndAxis) {
  BindOptions options;
  options.dims = {{"x_1", 6}};
  BoundModel bound = bind(Builder().input("x", {2, "", -1}).op("Relu", {"x"}, {"y"}).output("y"), options);
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{2, 6, 1}));
  ASSERT_EQ(bound.dims.size(), 2u);
  EXPECT_EQ(bound.dims[1].name, "x_2");
}

TEST(OnnxImport, ANameHasOneValueInAllInputs) {
  Builder b = Builder().input("a", {"n", 2}).input("b", {2, "n"}).op("MatMul", {"a", "b"}, {"y"}).output("y");
  BindOptions options;
  options.dims = {{"n", 3}};
  BoundModel bound = bind(b, options);
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{3, 3}));
  ASSERT_EQ(bound.dims.size(), 1u);
  EXPECT_EQ(bound.dims[0].tensor, "a");
}

TEST(OnnxImport, RefusesDimensionsThatDoNotExistOrCannotBe) {
  Builder b = Builder().input("x", {"n", 2}).op("Relu", {"x"}, {"y"}).output("y");
  BindOptions options;
  options.dims = {{"m", 2}, {"n", 0}};
  auto problems = refusal(b, options);
  EXPECT_EQ(codes(problems), "bad-dim unknown-dim");
  EXPECT_NE(problems[1].hint.find("n"), std::string::npos);
  options.dims = {{"n", 4}};
  options.batch = 2;
  EXPECT_EQ(codes(refusal(b, options)), "bad-dim");
}

TEST(OnnxImport, RefusesInputsWithoutShape) {
  auto problems = refusal(Builder()
                              .input("x", Message().message(1, Message().number(1, 1)))
                              .input("s", Message().message(4, Message().message(1, tensor_type(DType::float32, {1}))))
                              .op("Relu", {"x"}, {"y"})
                              .output("y"));
  EXPECT_EQ(codes(problems), "missing-shape unsupported-type");
  EXPECT_EQ(problems[0].tensor, "x");
}

// ---- kinds of tensors ---------------------------------------------------------------------------------------------

TEST(OnnxImport, StoredTensorsBecomeParametersBuffersAndConstants) {  // cases 2, 7
  BoundModel bound = bind(Builder(22, 3)
                              .input("x", {1, 3, 8, 8})
                              .input("w", {4, 3, 3, 3})  // IR 3: initializers are listed as inputs, too
                              .weight("w", {4, 3, 3, 3})
                              .floats("scale", {1, 1, 1, 1})
                              .weight("bias", {4})
                              .weight("mean", {4})
                              .weight("var", {4})
                              .weight("table", {5000}, DType::int64)
                              .ints("shape", {1, -1})
                              .floats("low", {0})
                              .op("Conv", {"x", "w"}, {"c"})
                              .op("BatchNormalization", {"c", "scale", "bias", "mean", "var"}, {"b"})
                              .op("Clip", {"b", "low_scalar"}, {"k"})
                              .initializer(tensor_proto("low_scalar", DType::float32, {}, raw({0.0f})))
                              .op("Reshape", {"k", "shape"}, {"y"})
                              .op("Gather", {"table", "index"}, {"z"})
                              .input("index", {2}, DType::int64)
                              .output("y")
                              .output("z"));
  EXPECT_EQ(names(bound.graph, TensorKind::input), (std::vector<std::string>{"x", "index"}));
  EXPECT_EQ(names(bound.graph, TensorKind::parameter), (std::vector<std::string>{"w", "scale", "bias"}));
  EXPECT_EQ(names(bound.graph, TensorKind::buffer), (std::vector<std::string>{"mean", "var", "table"}));
  EXPECT_EQ(names(bound.graph, TensorKind::constant), (std::vector<std::string>{"low_scalar", "shape"}));
  EXPECT_EQ(tensor(bound.graph, "scale").data.size(), 16u);  // small values are kept
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{1, 144}));
  EXPECT_EQ(bytes(tensor(bound.graph, "table")), 40000);
  EXPECT_FALSE(has_tensor(bound.graph, "low"));  // nobody reads it
}

TEST(OnnxImport, SizesFollowFromElementTypes) {  // case 7
  struct Case {
    DType dtype;
    int64_t bytes;  // of 1001 elements
  };
  for (Case c : {Case{DType::bfloat16, 2002}, Case{DType::float16, 2002}, Case{DType::int8, 1001},
                 Case{DType::int4, 501}, Case{DType::uint4, 501}, Case{DType::float8e4m3fn, 1001},
                 Case{DType::float64, 8008}, Case{DType::boolean, 1001}}) {
    BoundModel bound =
        bind(Builder().input("x", {1}).weight("w", {1001}, c.dtype).op("Identity", {"w"}, {"y"}).output("y"));
    EXPECT_EQ(bytes(tensor(bound.graph, "w")), c.bytes) << name(c.dtype);
    EXPECT_EQ(tensor(bound.graph, "w").kind, is_float(c.dtype) ? TensorKind::parameter : TensorKind::buffer);
  }
}

TEST(OnnxImport, ExternalDataIsNeitherNeededNorRead) {  // case 5
  Message external = tensor_proto("w", DType::float32, {30, 4}, "", false);
  external.message(13, Message().bytes(1, "location").bytes(2, "missing.bin")).number(14, 1);
  BoundModel bound =
      bind(Builder().input("x", {2, 30}).initializer(external).op("MatMul", {"x", "w"}, {"y"}).output("y"));
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{2, 4}));
  EXPECT_EQ(tensor(bound.graph, "w").kind, TensorKind::parameter);
}

TEST(OnnxImport, LargeConstantNodesAreStoredTensors) {
  BoundModel bound = bind(Builder()
                              .input("x", {4, 300})
                              .constant("w", tensor_proto("", DType::float32, {300, 2}, std::string(2400, '\0')))
                              .constant("half", tensor_proto("", DType::float32, {}, raw({0.5f})))
                              .op("MatMul", {"x", "w"}, {"m"})
                              .op("Mul", {"m", "half"}, {"y"})
                              .output("y"));
  EXPECT_EQ(operators(bound.graph), "MatMul Mul");
  EXPECT_EQ(tensor(bound.graph, "w").kind, TensorKind::parameter);
  EXPECT_EQ(tensor(bound.graph, "half").kind, TensorKind::constant);
  EXPECT_EQ(tensor(bound.graph, "half").data, raw({0.5f}));
}

TEST(OnnxImport, SharedTensorIsOneParameter) {  // case 22
  BoundModel bound = bind(Builder()
                              .input("x", {2}, DType::int64)
                              .weight("table", {50, 8})
                              .op("Gather", {"table", "x"}, {"e"})
                              .op("Transpose", {"table"}, {"t"})
                              .op("MatMul", {"e", "t"}, {"y"})
                              .output("y"));
  EXPECT_EQ(names(bound.graph, TensorKind::parameter), (std::vector<std::string>{"table"}));
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{2, 50}));
}

TEST(OnnxImport, AbsentOptionalInputsAreAbsent) {  // case 9
  BoundModel bound = bind(Builder()
                              .input("x", {1, 2, 4, 4})
                              .floats("scales", {1, 1, 2, 2})
                              .op("Resize", {"x", "", "scales", ""}, {"y"})
                              .output("y"));
  const Node& resize = node_named(bound.graph, "Resize");
  ASSERT_EQ(resize.inputs.size(), 3u);  // trailing absent ones are dropped
  EXPECT_EQ(resize.inputs[1], kNone);
  EXPECT_EQ(tensor(bound.graph, "scales").kind, TensorKind::constant);
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{1, 2, 8, 8}));
}

// ---- folding (cases 3, 4) -----------------------------------------------------------------------------------------

TEST(OnnxImport, FoldsShapeArithmetic) {  // case 3
  // y = reshape(x, [shape(x)[0] * shape(x)[1], -1]), as exporters write it.
  BoundModel bound = bind(Builder()
                              .input("x", {"n", 6, 5})
                              .constant("zero", tensor_proto("", DType::int64, {}, raw<int64_t>({0})))
                              .constant("one", tensor_proto("", DType::int64, {}, raw<int64_t>({1})))
                              .ints("axes", {0})
                              .ints("rest", {-1})
                              .op("Shape", {"x"}, {"s"})
                              .op("Gather", {"s", "zero"}, {"d0"})
                              .op("Gather", {"s", "one"}, {"d1"})
                              .op("Mul", {"d0", "d1"}, {"p"})
                              .op("Unsqueeze", {"p", "axes"}, {"pu"})
                              .op("Concat", {"pu", "rest"}, {"target"}, {attr("axis", 0)})
                              .op("Reshape", {"x", "target"}, {"y"})
                              .output("y"),
                          BindOptions{{}, 4, nullptr, false});
  EXPECT_EQ(operators(bound.graph), "Reshape");
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{24, 5}));
  EXPECT_EQ(integers(tensor(bound.graph, "target")), (std::vector<int64_t>{24, -1}));
}

TEST(OnnxImport, FoldsWhatPropagationAloneStopsAt) {  // case 4
  // Expand to where(equal(shape, -1), ones, shape), the target PyTorch writes for x.expand(-1, 3).
  BoundModel bound = bind(Builder()
                              .input("x", {2, 1})
                              .ints("wanted", {-1, 3})
                              .ints("minus", {-1})
                              .ints("rank", {2})
                              .op("ConstantOfShape", {"rank"}, {"ones"},
                                  {attr_tensor("value", tensor_proto("", DType::int64, {1}, raw<int64_t>({1})))})
                              .op("Equal", {"wanted", "minus"}, {"open"})
                              .op("Where", {"open", "ones", "wanted"}, {"target"})
                              .op("Expand", {"x", "target"}, {"y"})
                              .output("y"));
  EXPECT_EQ(operators(bound.graph), "Expand");
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{2, 3}));
}

TEST(OnnxImport, FoldsFloatsBesideShapes) {
  // Resize to floor(shape * scale), scale a float initializer: folding may read it, but never turns weights to
  // constants.
  BoundModel bound = bind(Builder()
                              .input("x", {1, 1, 5, 5})
                              .floats("factor", {1, 1, 1.5f, 2.5f})
                              .weight("w", {1, 1, 7, 12})
                              .floats("bias", {2})
                              .op("Shape", {"x"}, {"s"})
                              .op("Cast", {"s"}, {"f"}, {attr("to", 1)})
                              .op("Mul", {"f", "factor"}, {"m"})
                              .op("Floor", {"m"}, {"fl"})
                              .op("Cast", {"fl"}, {"sizes"}, {attr("to", 7)})
                              .op("Resize", {"x", "", "", "sizes"}, {"r"})
                              .op("Add", {"bias", "bias"}, {"b2"})
                              .op("Add", {"r", "b2"}, {"y"})
                              .output("y"));
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{1, 1, 7, 12}));
  EXPECT_EQ(operators(bound.graph), "Resize Add Add");
}

TEST(OnnxImport, ConstantOutputsKeepTheirNode) {
  BoundModel bound =
      bind(Builder().input("x", {3, 4}).op("Shape", {"x"}, {"s"}).op("Relu", {"x"}, {"y"}).output("s").output("y"));
  EXPECT_EQ(operators(bound.graph), "Shape Relu");
  EXPECT_EQ(tensor(bound.graph, "s").kind, TensorKind::computed);
}

TEST(OnnxImport, SplitWithAndWithoutSizes) {  // case 8
  for (int opset : {11, 13, 18, 22}) {
    Builder b(opset);
    b.input("x", {6, 4});
    if (opset < 13) {
      b.op("Split", {"x"}, {"a", "b"}, {attr("axis", 0), attr("split", std::vector<int64_t>{2, 4})});
    } else {
      b.ints("sizes", {2, 4}).op("Split", {"x", "sizes"}, {"a", "b"}, {attr("axis", 0)});
    }
    std::vector<Message> halves = {attr("axis", 1)};
    if (opset >= 18) halves.push_back(attr("num_outputs", 2));
    b.op("Split", {"x"}, {"c", "d"}, halves);
    for (const char* y : {"a", "b", "c", "d"}) b.output(y);
    BoundModel bound = bind(b);
    EXPECT_EQ(tensor(bound.graph, "a").shape, (Shape{2, 4})) << opset;
    EXPECT_EQ(tensor(bound.graph, "b").shape, (Shape{4, 4})) << opset;
    EXPECT_EQ(tensor(bound.graph, "d").shape, (Shape{6, 2})) << opset;
  }
}

TEST(OnnxImport, UpsampleBecomesResize) {  // case 10
  BoundModel bound =
      bind(Builder(9).input("x", {1, 2, 3, 3}).floats("s", {1, 1, 2, 3}).op("Upsample", {"x", "s"}, {"y"}).output("y"));
  EXPECT_EQ(operators(bound.graph), "Resize");
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{1, 2, 6, 9}));
}

// ONNX's converter gets a long model in pieces: a constant serves several of them, tensors cross from one to another,
// and what adapters add (axes as inputs) has names of its own, though the converter counts from 0 in each.
TEST(OnnxImport, LongModelsAreConvertedInPieces) {
  constexpr int kLayers = 200;
  Builder b(9);
  b.input("x", {1, 2, 3, 3}).floats("stored", {1, 1, 1, 1});
  b.constant("made", tensor_proto("", DType::float32, {4}, raw<float>({1, 1, 1, 1})));
  std::string h = "x";
  for (int i = 0; i < kLayers; ++i) {
    std::string n = std::to_string(i);
    b.op("Upsample", {h, i % 2 ? "made" : "stored"}, {"up" + n});
    b.op("Unsqueeze", {"up" + n}, {n}, {attr("axes", std::vector<int64_t>{0})});
    b.op("Squeeze", {n}, {"h" + n}, {attr("axes", std::vector<int64_t>{0})});
    h = "h" + n;
  }
  b.op("Add", {h, "up0"}, {"y"}).output("y").output("up100");
  Graph graph = bind(b).graph;
  std::map<std::string, int> operators;
  for (const Node& n : graph.nodes) ++operators[n.op];
  EXPECT_EQ(operators, (std::map<std::string, int>{
                           {"Resize", kLayers}, {"Unsqueeze", kLayers}, {"Squeeze", kLayers}, {"Add", 1}}));
  std::set<std::string> names;
  for (const Tensor& t : graph.tensors) EXPECT_TRUE(names.insert(t.name).second) << t.name;
  for (int i : {0, 42, 43, 100, 199}) {
    EXPECT_EQ(tensor(graph, "up" + std::to_string(i)).shape, (Shape{1, 2, 3, 3}));
    EXPECT_EQ(tensor(graph, std::to_string(i)).shape, (Shape{1, 1, 2, 3, 3}));
  }
  EXPECT_EQ(graph.tensors[graph.nodes.back().inputs[1]].name, "up0");
  ASSERT_EQ(graph.outputs.size(), 2u);
  EXPECT_EQ(graph.tensors[graph.outputs[1]].name, "up100");
  EXPECT_NO_THROW(export_model(graph));
}

// ---- BatchNormalization of all opsets (case 11) -------------------------------------------------------------------

Builder batch_norm(int opset, bool training) {
  Builder b(opset);
  b.input("x", {2, 3, 4, 4});
  for (const char* n : {"scale", "bias", "mean", "var"}) b.weight(n, {3});
  std::vector<Message> attributes;
  if (opset < 6) attributes.push_back(attr("consumed_inputs", std::vector<int64_t>{0, 0, 0, 1, 1}));
  if (opset < 7) attributes.push_back(attr("is_test", training ? 0 : 1));
  if (opset < 9) attributes.push_back(attr("spatial", 1));
  if (opset >= 14) attributes.push_back(attr("training_mode", training ? 1 : 0));
  std::vector<std::string> outputs = {"y"};
  if (training && opset < 14) outputs = {"y", "m", "v", "sm", "sv"};
  if (training && opset >= 14) outputs = {"y", "m", "v"};
  return b.op("BatchNormalization", {"x", "scale", "bias", "mean", "var"}, outputs, attributes).output("y");
}

TEST(OnnxImport, BatchNormalizationOfEveryOpset) {  // case 11
  for (int opset : {1, 5, 6, 7, 8, 9, 13, 14, 15, 22})
    for (bool training : {false, true}) {
      BoundModel bound = bind(batch_norm(opset, training));
      ASSERT_EQ(operators(bound.graph), "BatchNormalization") << opset;
      const Node& n = bound.graph.nodes[0];
      EXPECT_EQ(attribute(n, "training_mode", int64_t{0}), training) << opset;
      EXPECT_EQ(n.outputs.size(), training ? 3u : 1u) << opset;
      EXPECT_EQ(find_attribute(n, "spatial"), nullptr);
      EXPECT_EQ(find_attribute(n, "is_test"), nullptr);
      EXPECT_EQ(bound.graph.opset, 22);
      if (training) {
        EXPECT_EQ(tensor(bound.graph, "v").shape, (Shape{3})) << opset;
      }
    }
}

// ---- order and names (cases 12, 13) -------------------------------------------------------------------------------

TEST(OnnxImport, SortsUnsortedNodesAndSaysSo) {  // case 12
  BoundModel bound = bind(Builder().input("x", {2}).op("Relu", {"a"}, {"y"}).op("Sigmoid", {"x"}, {"a"}).output("y"));
  EXPECT_EQ(operators(bound.graph), "Sigmoid Relu");
  EXPECT_TRUE(warns(bound, "unsorted"));
  EXPECT_FALSE(warns(bind(Builder().input("x", {2}).op("Relu", {"x"}, {"y"}).output("y")), "unsorted"));
}

TEST(OnnxImport, DuplicateAndEmptyNodeNamesAreLegal) {  // case 13
  BoundModel bound = bind(Builder()
                              .input("x", {2})
                              .op("Relu", {"x"}, {"a"}, {}, "same")
                              .op("Relu", {"a"}, {"b"}, {}, "same")
                              .op("Relu", {"b"}, {"y"})
                              .output("y"));
  EXPECT_EQ(label(bound.graph, 0), "same");
  EXPECT_EQ(label(bound.graph, 1), "same");
  EXPECT_EQ(label(bound.graph, 2), "y");
}

TEST(OnnxImport, StructuralFaultsAreReportedTogether) {
  auto problems = refusal(Builder()
                              .input("x", {2})
                              .op("Relu", {"c2"}, {"c1"}, {}, "first")
                              .op("Relu", {"c1"}, {"c2"}, {}, "second")
                              .op("Relu", {"x"}, {"t"}, {}, "third")
                              .op("Relu", {"x"}, {"t"}, {}, "fourth")
                              .op("Relu", {"nowhere"}, {"u"}, {}, "fifth")
                              .op("Frobnicate", {"x"}, {"v"}, {}, "sixth")
                              .op("Fused", {"x"}, {"w"}, {}, "seventh", "com.example")
                              .output("t")
                              .output("z"));
  EXPECT_EQ(codes(problems), "unknown-operator unknown-operator not-ssa missing-output missing-input cycle");
  EXPECT_EQ(problems[0].node, "sixth");
  EXPECT_NE(problems[1].message.find("com.example.Fused"), std::string::npos);
  EXPECT_EQ(problems[2].tensor, "t");
  EXPECT_EQ(problems[3].tensor, "z");
  EXPECT_EQ(problems[4].node, "fifth");
  EXPECT_NE(problems[5].message.find("first"), std::string::npos);
  EXPECT_NE(problems[5].message.find("second"), std::string::npos);
}

TEST(OnnxImport, ADomainIsImportedInOneVersion) {
  BindOptions options;  // expansion once never ended here: one of the two imports was converted, the other read
  options.has_rule = [](const std::string&, const std::string&) { return false; };
  auto twice = [](int first, const std::string& domain, int second) {
    return Builder(first).import(domain, second).input("x", {3, 4}).op("Softplus", {"x"}, {"y"}).output("y");
  };
  EXPECT_EQ(tensor(bind(twice(1, "", 1), options).graph, "y").shape, (Shape{3, 4}));
  EXPECT_EQ(tensor(bind(twice(18, "ai.onnx", 18), options).graph, "y").shape, (Shape{3, 4}));
  auto problems = refusal(twice(1, "ai.onnx", 18));
  ASSERT_EQ(codes(problems), "bad-model");
  EXPECT_NE(problems[0].message.find("versions 1 and 18"), std::string::npos) << problems[0].message;
}

TEST(OnnxImport, SaysWhichOperatorCannotBeConverted) {
  auto problems =
      refusal(Builder(1, 3).input("x", {2, 2}).op("Pad", {"x"}, {"y"}, {attr("paddings", {0, 1, 0, 1})}).output("y"));
  ASSERT_EQ(codes(problems), "not-convertible");
  EXPECT_EQ(problems[0].message, "the model cannot be brought from opset 1 to 22: No Adapter From Version $1 for Pad");
}

// ONNX's inference reads beyond the weight's dimensions here, in the old opset while converting and in the new one.
TEST(OnnxImport, WeightsOfAnotherRankAreRefusedBeforeOnnxSeesThem) {
  for (int opset : {11, 22})
    for (const char* op : {"Conv", "ConvTranspose"}) {
      auto problems = refusal(
          Builder(opset).input("x", {1, 2, 5, 5, 5}).input("w", {2, 2, 3}).op(op, {"x", "w"}, {"y"}).output("y"));
      ASSERT_EQ(codes(problems), "shape-error") << op << opset;
      EXPECT_EQ(problems[0].message, std::string(op) + " \"y\" has a weight of 3 dimensions for an input of 5");
    }
}

// ONNX's inference divides by the strides.
TEST(OnnxImport, StridesBelowOneAreRefusedBeforeOnnxSeesThem) {
  using Ints = std::vector<int64_t>;
  auto problems =
      refusal(Builder()
                  .input("x", {1, 2, 5, 5})
                  .op("MaxPool", {"x"}, {"y"},
                      {attr("kernel_shape", Ints{2, 2}), attr("strides", Ints{1, 0}), attr("auto_pad", "SAME_UPPER")})
                  .output("y"));
  EXPECT_EQ(codes(problems), "bad-attribute");
}

TEST(OnnxImport, BadNodesAreRefusedByName) {
  auto problems = refusal(Builder()
                              .input("x", {2, 3})
                              .op("Transpose", {"x"}, {"a"}, {attr("perm", 1.5f)}, "wrong-type")
                              .op("Relu", {"x", "x"}, {"b"}, {}, "too-many")
                              .op("Concat", {"x"}, {"c"}, {}, "no-axis")
                              .op("Relu", {"x"}, {"d"}, {attr("alpha", 1)}, "unknown-attribute")
                              .output("a"));
  EXPECT_EQ(codes(problems), "bad-node bad-node bad-node bad-node");
  EXPECT_EQ(problems[0].node, "wrong-type");
  EXPECT_EQ(problems[3].node, "unknown-attribute");
}

TEST(OnnxImport, ShapesThatDoNotFitAreAllNamed) {
  auto problems = refusal(Builder()
                              .input("x", {2, 3})
                              .input("c", {5}, DType::int64)
                              .weight("w", {4, 5})
                              .ints("shape", {7, -1})
                              .op("MatMul", {"x", "w"}, {"m"}, {}, "mm")
                              .op("Relu", {"m"}, {"r"}, {}, "after")  // follows from mm: not reported again
                              .op("Reshape", {"x", "shape"}, {"s"}, {}, "rs")
                              .op("NonZero", {"x"}, {"z"}, {}, "nz")
                              .output("r")
                              .output("s")
                              .output("z"));
  EXPECT_EQ(codes(problems), "shape-error shape-error unknown-shape");
  EXPECT_EQ(problems[0].node, "mm");
  EXPECT_EQ(problems[1].node, "rs");
  EXPECT_EQ(problems[2].node, "nz");
  EXPECT_EQ(problems[2].tensor, "z");
}

// ---- control flow, functions --------------------------------------------------------------------------------------

TEST(OnnxImport, SubgraphsKeepTheirCapturedNames) {  // case 14
  auto branch = [](const char* op, const char* weight) {
    std::string out = std::string("out_") + op;
    Message g;
    g.message(1, node(op, {"h", weight}, {out})).bytes(2, op);
    g.message(5, tensor_proto(weight, DType::float32, {300}, "", false));
    g.message(12, Message().bytes(1, out));
    return g;
  };
  BoundModel bound =
      bind(Builder()
               .input("x", {300})
               .input("flag", {}, DType::boolean)
               .op("Relu", {"x"}, {"h"})
               .op("If", {"flag"}, {"y"},
                   {attr_graph("then_branch", branch("Add", "w")), attr_graph("else_branch", branch("Mul", "w"))})
               .output("y"));
  EXPECT_EQ(operators(bound.graph), "Relu If");
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{300}));
  // Both branches' weights are hoisted; the second under a name of its own.
  EXPECT_EQ(names(bound.graph, TensorKind::parameter), (std::vector<std::string>{"w_2", "w_3"}));
  EXPECT_NO_THROW(export_model(bound.graph));
}

Message function(const std::string& name, const std::vector<Message>& nodes) {
  Message f;
  f.bytes(1, name).bytes(4, "a").bytes(5, "b");
  for (const Message& n : nodes) f.message(7, n);
  return f.message(9, Message().bytes(1, "").number(2, 22))
      .message(9, Message().bytes(1, "local").number(2, 1))
      .bytes(10, "local");
}

TEST(OnnxImport, InlinesLocalFunctionsWithTheirWeights) {
  Message big = attr_tensor("value", tensor_proto("", DType::float32, {600}, std::string(2400, '\0')));
  BoundModel bound =
      bind(Builder()
               .import("local", 1)
               .input("x", {600})
               .op("Scale", {"x"}, {"h"}, {}, "", "local")
               .op("Scale", {"h"}, {"y"}, {}, "", "local")
               .function(function("Scale", {node("Constant", {}, {"w"}, {big}), node("Mul", {"a", "w"}, {"b"})}))
               .output("y"));
  EXPECT_EQ(operators(bound.graph), "Mul Mul");
  EXPECT_EQ(names(bound.graph, TensorKind::parameter).size(), 2u);
}

TEST(OnnxImport, RefusesRecursiveAndExplodingFunctions) {
  Builder recursive;
  recursive.import("local", 1).input("x", {2}).op("F", {"x"}, {"y"}, {}, "", "local").output("y");
  recursive.function(function("F", {node("F", {"a"}, {"b"}, {}, "", "local")}));
  EXPECT_EQ(codes(refusal(recursive)), "recursive-function");

  Builder doubling;  // F0 calls F1 twice, ... : 2^40 nodes
  doubling.import("local", 1).input("x", {2}).op("F0", {"x"}, {"y"}, {}, "", "local").output("y");
  for (int i = 0; i < 40; ++i) {
    std::string next = "F" + std::to_string(i + 1);
    doubling.function(function("F" + std::to_string(i),
                               {node(next, {"a"}, {"t"}, {}, "", "local"), node(next, {"t"}, {"b"}, {}, "", "local")}));
  }
  doubling.function(function("F40", {node("Relu", {"a"}, {"b"})}));
  EXPECT_EQ(codes(refusal(doubling)), "too-large");
}

TEST(OnnxImport, ExpandsOperatorsWithoutARule) {
  Builder b = Builder().input("x", {2, 5}).op("Celu", {"x"}, {"c"}).op("Softmax", {"c"}, {"y"}).output("y");
  BindOptions options;
  options.has_rule = [](const std::string&, const std::string& op) { return op != "Celu" && op != "Softmax"; };
  BoundModel bound = bind(b, options);
  for (const Node& n : bound.graph.nodes) EXPECT_TRUE(n.op != "Celu" && n.op != "Softmax") << n.op;
  EXPECT_TRUE(warns(bound, "expanded"));
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{2, 5}));
  EXPECT_NO_THROW(export_model(bound.graph));
  options.has_rule = [](const std::string&, const std::string&) { return true; };
  EXPECT_EQ(operators(bind(b, options).graph), "Celu Softmax");
}

TEST(OnnxImport, ExpandsBodiesThatLeaveOptionalOutputsOut) {
  // LayerNormalization's body names Mean and InvStdDev as outputs but makes them only when they are asked for, and it
  // is of opset 17: it must be brought to ours.
  BindOptions options;
  options.has_rule = [](const std::string&, const std::string&) { return false; };
  for (const std::vector<std::string>& outputs :
       {std::vector<std::string>{"y"}, {"y", "mean"}, {"y", "", "deviation"}, {"y", "mean", "deviation"}}) {
    Builder b = Builder().input("x", {2, 3, 8}).weight("scale", {8}).weight("bias", {8});
    b.op("LayerNormalization", {"x", "scale", "bias"}, outputs);
    for (const std::string& output : outputs)
      if (!output.empty()) b.output(output);
    BoundModel bound = bind(b, options);
    for (const Node& n : bound.graph.nodes) EXPECT_NE(n.op, "LayerNormalization");
    EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{2, 3, 8}));
    if (outputs.size() > 1 && !outputs[1].empty()) {
      EXPECT_EQ(tensor(bound.graph, "mean").shape, (Shape{2, 3, 1}));
    }
    EXPECT_NO_THROW(export_model(bound.graph));
  }
  Builder loss = Builder(13).input("x", {3, 5}).input("label", {3}, DType::int64).weight("w", {5});
  loss.op("SoftmaxCrossEntropyLoss", {"x", "label", "w"}, {"y"}, {attr("reduction", "none"), attr("ignore_index", 0)});
  BoundModel bound = bind(loss.output("y"), options);
  for (const Node& n : bound.graph.nodes) EXPECT_NE(n.op, "SoftmaxCrossEntropyLoss");
  EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{3}));
}

// ---- batch --------------------------------------------------------------------------------------------------------

TEST(OnnxImport, RefusesABatchThatIsBuiltIn) {
  BindOptions options;
  options.batch = 4;
  auto flat = [](int64_t batch) {
    return Builder()
        .input("x", {batch, 3, 2})
        .ints("s", {batch, -1})
        .op("Reshape", {"x", "s"}, {"y"}, {}, "flat")
        .output("y");
  };
  auto problems = refusal(flat(1), options);
  EXPECT_EQ(codes(problems), "baked-batch");
  EXPECT_EQ(problems[0].node, "flat");
  EXPECT_NE(problems[0].hint.find("dynamic_axes"), std::string::npos);
  EXPECT_EQ(tensor(bind(flat(4), options).graph, "y").shape, (Shape{4, 6}));  // the exported batch is fine
  Builder free = Builder().input("x", {1, 3, 2}).ints("s", {-1, 6}).op("Reshape", {"x", "s"}, {"y"}).output("y");
  EXPECT_EQ(tensor(bind(free, options).graph, "y").shape, (Shape{4, 6}));
}

TEST(OnnxImport, NamesTheExpandThatHoldsTheBatch) {  // ViT's class token
  BindOptions options;
  options.batch = 4;
  auto problems = refusal(Builder()
                              .input("x", {1, 5, 8})
                              .weight("token", {1, 1, 8})
                              .ints("s", {1, 1, 8})
                              .op("Expand", {"token", "s"}, {"t"}, {}, "class-token")
                              .op("Concat", {"t", "x"}, {"y"}, {attr("axis", 1)}, "join")
                              .output("y"),
                          options);
  EXPECT_EQ(codes(problems), "baked-batch");
  EXPECT_EQ(problems[0].node, "class-token");
}

// ---- inference exports --------------------------------------------------------------------------------------------

Builder convolutions(const std::string& bias) {
  return Builder()
      .input("x", {1, 3, 8, 8})
      .weight("w1", {4, 3, 3, 3})
      .weight(bias, {4})
      .weight("w2", {5, 4, 1, 1})
      .weight(bias + "0", {5})
      .op("Conv", {"x", "w1", bias}, {"a"}, {}, "c1")
      .op("Relu", {"a"}, {"b"})
      .op("Conv", {"b", "w2", bias + "0"}, {"y"}, {}, "c2")
      .output("y");
}

TEST(OnnxImport, RecognisesInferenceExports) {
  BoundModel folded = bind(convolutions("onnx::Conv_12"));
  EXPECT_TRUE(folded.inference_export);
  EXPECT_TRUE(warns(folded, "inference-export"));
  EXPECT_FALSE(bind(convolutions("features.bias")).inference_export);  // LeNet's own biases

  BindOptions options;
  options.assume_batch_norm = true;
  Graph assumed = bind(convolutions("onnx::Conv_12"), options).graph;
  EXPECT_EQ(operators(assumed), "Conv BatchNormalization Relu Conv BatchNormalization");
  int64_t parameters = 0;
  for (const Tensor& t : assumed.tensors) parameters += t.kind == TensorKind::parameter ? elements(t.shape) : 0;
  EXPECT_EQ(parameters,
            4 * 27 + 5 * 4 + 2 * 4 + 2 * 5);  // weights, scales and biases; the convolutions' biases are gone
  EXPECT_EQ(names(assumed, TensorKind::buffer).size(), 4u);
  EXPECT_EQ(tensor(assumed, "y").shape, (Shape{1, 5, 6, 6}));
  EXPECT_EQ(tensor(assumed, "y").producer, 4);
}

// ---- reading back -------------------------------------------------------------------------------------------------

TEST(OnnxImport, StructureReadsBackToTheSameGraph) {
  Builder b = convolutions("bias").op("Flatten", {"y"}, {"z"}).output("z");
  Model model = open(b);
  for (bool shorten : {false, true}) {
    std::string structure = model.structure(shorten);
    Graph was = model.bind({}).graph, is = open(structure).bind({}).graph;
    EXPECT_EQ(operators(was), operators(is));
    EXPECT_EQ(names(was, TensorKind::parameter), names(is, TensorKind::parameter));
    ASSERT_EQ(was.tensors.size(), is.tensors.size());
    for (size_t i = 0; i < was.tensors.size(); ++i) EXPECT_EQ(was.tensors[i].shape, is.tensors[i].shape);
    EXPECT_EQ(has_tensor(is, "b"), true);  // already shortest, or unchanged
    EXPECT_EQ(has_tensor(is, "y") && has_tensor(is, "z"), true);
    EXPECT_EQ(open(structure).structure(shorten), structure);  // a fixed point
  }
}

Graph small_training_graph() {
  Graph g;
  g.name = "step";
  auto add = [&](const char* name, Shape shape, TensorKind kind, TensorId of = kNone) {
    Tensor t;
    t.name = name;
    t.dtype = DType::float32;
    t.shape = std::move(shape);
    t.kind = kind;
    t.of = of;
    return g.add(t);
  };
  TensorId x = add("x", {2, 3}, TensorKind::input), label = add("label", {2, 3}, TensorKind::label),
           w = add("w", {3, 3}, TensorKind::parameter), m = add("w.momentum", {3, 3}, TensorKind::state, 2),
           rate = add("rate", {}, TensorKind::scalar), y = add("y", {2, 3}, TensorKind::computed),
           d = add("d", {2, 3}, TensorKind::computed, 5), xt = add("xt", {3, 2}, TensorKind::computed),
           dw = add("dw", {3, 3}, TensorKind::computed, 2), s = add("s", {3, 3}, TensorKind::computed),
           m2 = add("w.momentum.new", {3, 3}, TensorKind::computed, 3);
  auto op = [&](const char* type, std::vector<TensorId> in, TensorId out, Phase phase, NodeId origin, UnitId unit) {
    Node n;
    n.op = type;
    n.inputs = std::move(in);
    n.outputs = {out};
    n.phase = phase;
    n.origin = origin;
    n.unit = unit;
    g.units[unit].nodes.push_back(g.add(n));
  };
  g.units.resize(4);
  g.units[0] = {"MatMul", Role::forward, Phase::forward, 0, kNone, 0, {}};
  g.units[1] = {"Sub", Role::forward, Phase::loss, kNone, kNone, kNone, {}};
  g.units[2] = {"MatMul", Role::weight_gradient, Phase::backward, 0, w, 3, {}};
  g.units[3] = {"Momentum", Role::update, Phase::optimizer, kNone, w, kNone, {}};
  op("MatMul", {x, w}, y, Phase::forward, kNone, 0);
  op("Sub", {y, label}, d, Phase::loss, kNone, 1);
  op("Transpose", {x}, xt, Phase::backward, 0, 2);
  op("MatMul", {xt, d}, dw, Phase::backward, 0, 2);
  op("Mul", {dw, rate}, s, Phase::optimizer, kNone, 3);
  op("Add", {m, s}, m2, Phase::optimizer, kNone, 3);
  g.inputs = {x, label, w, m, rate};
  g.outputs = {d, m2};
  return g;
}

TEST(OnnxExport, PhasesRolesAndUnitsComeBack) {
  Graph was = small_training_graph();
  std::string bytes = export_model(was);
  for (bool shorten : {false, true}) {
    Graph is = open(open(bytes).structure(shorten)).bind({}).graph;
    ASSERT_EQ(operators(is), operators(was));
    for (size_t i = 0; i < was.nodes.size(); ++i) {
      EXPECT_EQ(is.nodes[i].phase, was.nodes[i].phase) << i;
      EXPECT_EQ(is.nodes[i].origin, was.nodes[i].origin) << i;
      EXPECT_EQ(is.nodes[i].unit, was.nodes[i].unit) << i;
    }
    ASSERT_EQ(is.units.size(), was.units.size());
    for (size_t i = 0; i < was.units.size(); ++i) {
      const Unit &a = is.units[i], &b = was.units[i];
      EXPECT_EQ(a.op, b.op);
      EXPECT_EQ(a.role, b.role);
      EXPECT_EQ(a.phase, b.phase);
      EXPECT_EQ(a.origin, b.origin);
      EXPECT_EQ(a.contraction, b.contraction);
      EXPECT_EQ(a.nodes, b.nodes);
      EXPECT_EQ(a.target == kNone, b.target == kNone);
      if (b.target != kNone) {
        EXPECT_EQ(is.tensors[a.target].name, was.tensors[b.target].name);
      }
    }
    for (const char* name : {"x", "label", "w", "w.momentum", "rate", "w.momentum.new"}) {
      const Tensor &a = tensor(is, name), &b = tensor(was, name);
      EXPECT_EQ(a.kind, b.kind) << name;
      EXPECT_EQ(a.of == kNone, b.of == kNone) << name;
      if (b.of != kNone && a.of != kNone) {
        EXPECT_EQ(is.tensors[a.of].name, was.tensors[b.of].name);
      }
    }
  }
  EXPECT_EQ(export_model(was), bytes);  // deterministic
}

TEST(OnnxExport, RefusesAWrongShape) {
  Graph g = small_training_graph();
  g.tensors[8].shape = {3, 4};  // dw
  auto problems = refusal([&] { export_model(g); });
  ASSERT_FALSE(problems.empty());
  EXPECT_EQ(problems[0].code, "export-shape");
  EXPECT_EQ(problems[0].tensor, "dw");
}

}  // namespace
}  // namespace monet::test
