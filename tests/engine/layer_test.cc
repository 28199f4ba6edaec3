// Layers of graphs and of workload files: which loops index which operand, and what is refused.
#include "engine/workload/layer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

namespace monet {
namespace {

using Json = nlohmann::ordered_json;

// "I[K G | ox:1*OX+2*FX<=5]" of every operand, and the loops.
std::string show(const Layer& layer) {
  std::string text;
  for (const Loop& loop : layer.loops) text += loop.dim + "=" + std::to_string(loop.size) + " ";
  for (const LayerOperand& operand : layer.operands) {
    text += operand.name + std::to_string(operand.bits) + "[";
    for (size_t i = 0; i < operand.loops.size(); ++i) text += (i ? " " : "") + layer.loops[operand.loops[i]].dim;
    for (const WindowedAxis& axis : operand.windows)
      text += " " + std::to_string(axis.stride) + layer.loops[axis.point].dim + "+" + std::to_string(axis.dilation) +
              layer.loops[axis.tap].dim + "<" + std::to_string(axis.size);
    text += "] ";
  }
  text += "sums";
  for (size_t i = 0; i < layer.loops.size(); ++i)
    if (layer.reduces(static_cast<int>(i))) text += " " + layer.loops[i].dim;
  return text;
}

// A contraction of operands and result of these shapes; its units in the three roles.
struct Contraction {
  Graph graph;
  std::vector<Unit> units;  // forward, gradient of the first operand, of the second

  Contraction(const std::string& op, const std::vector<Shape>& shapes, std::vector<Attribute> attributes = {}) {
    std::vector<TensorId> tensors;
    for (size_t i = 0; i < 3; ++i) {
      Tensor tensor;
      tensor.name = std::string("aby").substr(i, 1);
      tensor.dtype = DType::float32;
      tensor.shape = shapes[i];
      tensors.push_back(graph.add(std::move(tensor)));
    }
    Node node;
    node.name = "the_node";
    node.op = op;
    node.inputs = {tensors[0], tensors[1]};
    node.outputs = {tensors[2]};
    node.attributes = std::move(attributes);
    NodeId id = graph.add(std::move(node));
    for (Role role : {Role::forward, Role::input_gradient, Role::weight_gradient}) {
      Unit unit;
      unit.op = op;
      unit.role = role;
      unit.origin = id;
      unit.nodes = {id};
      if (is_contraction(graph.nodes[id])) unit.contraction = id;
      if (role == Role::input_gradient) unit.target = tensors[0];
      if (role == Role::weight_gradient) unit.target = tensors[1];
      units.push_back(unit);
    }
  }
  std::string show(size_t role) const { return monet::show(layer_of(graph, units[role]).value()); }
};

Attribute ints(const char* name, std::vector<int64_t> values) { return {name, std::move(values)}; }

TEST(Layer, ConvolutionInItsThreeRoles) {
  Contraction conv(
      "Conv", {{2, 6, 9, 11}, {8, 3, 3, 5}, {2, 8, 5, 4}},
      {ints("strides", {2, 3}), ints("dilations", {1, 2}), ints("pads", {1, 4, 1, 4}), {"group", int64_t{2}}});
  EXPECT_EQ(conv.show(0),
            "B=2 K=4 G=2 OX=4 OY=5 C=3 FX=5 FY=3 "
            "I8[B G C 3OX+2FX<11 2OY+1FY<9] W8[K G C FX FY] O8[B K G OX OY] sums C FX FY");
  EXPECT_EQ(conv.show(1),
            "B=2 K=3 G=2 OX=4 OY=5 C=4 FX=5 FY=3 "
            "I8[B G OX OY C] W8[K G C FX FY] O8[B K G 3OX+2FX<11 2OY+1FY<9] sums C FX FY");
  EXPECT_EQ(conv.show(2),
            "B=3 K=4 G=2 OX=5 OY=3 C=2 FX=4 FY=5 "
            "I8[B G C 2OX+3FX<11 1OY+2FY<9] W8[K G C FX FY] O8[B K G OX OY] sums C FX FY");
}

TEST(Layer, TransposedConvolutionIsTheGradientOfOne) {
  Contraction conv("ConvTranspose", {{1, 8, 4, 4}, {8, 3, 2, 2}, {1, 3, 8, 8}}, {ints("strides", {2, 2})});
  EXPECT_EQ(conv.show(0),
            "B=1 K=3 G=1 OX=4 OY=4 C=8 FX=2 FY=2 "
            "I8[B G OX OY C] W8[K G C FX FY] O8[B K G 2OX+1FX<8 2OY+1FY<8] sums C FX FY");
  EXPECT_EQ(conv.show(1),
            "B=1 K=8 G=1 OX=4 OY=4 C=3 FX=2 FY=2 "
            "I8[B G C 2OX+1FX<8 2OY+1FY<8] W8[K G C FX FY] O8[B K G OX OY] sums C FX FY");
  EXPECT_EQ(conv.show(2),
            "B=3 K=8 G=1 OX=2 OY=2 C=1 FX=4 FY=4 "
            "I8[B G C 1OX+2FX<8 1OY+2FY<8] W8[K G C FX FY] O8[B K G OX OY] sums C FX FY");
}

TEST(Layer, OneAndThreeSpatialAxes) {
  Contraction one("Conv", {{1, 2, 10}, {3, 2, 4}, {1, 3, 4}}, {ints("strides", {2})});
  EXPECT_EQ(one.show(0), "B=1 K=3 G=1 OY=4 C=2 FY=4 I8[B G C 2OY+1FY<10] W8[K G C FY] O8[B K G OY] sums C FY");
  Contraction three("Conv", {{1, 2, 5, 6, 7}, {3, 2, 1, 2, 3}, {1, 3, 5, 5, 5}});
  EXPECT_EQ(three.show(0),
            "B=1 K=3 G=1 OX=5 OY=5 OZ=5 C=2 FX=3 FY=2 FZ=1 I8[B G C 1OX+1FX<7 1OY+1FY<6 1OZ+1FZ<5] "
            "W8[K G C FX FY FZ] O8[B K G OX OY OZ] sums C FX FY FZ");
}

TEST(Layer, ProductsOfMatrices) {
  Contraction gemm("Gemm", {{7, 5}, {5, 3}, {7, 3}});
  EXPECT_EQ(gemm.show(0), "B=1 C=5 D=7 K=3 I8[B C D] W8[B C K] O8[B D K] sums C");
  EXPECT_EQ(gemm.show(1), "B=1 C=3 D=7 K=5 I8[B C D] W8[B C K] O8[B D K] sums C");
  EXPECT_EQ(gemm.show(2), "B=1 C=7 D=5 K=3 I8[B C D] W8[B C K] O8[B D K] sums C");
  Contraction matmul("MatMul", {{4, 7, 5}, {4, 5, 3}, {4, 7, 3}});
  EXPECT_EQ(matmul.show(0), "B=4 D=7 C=5 K=3 I8[B D C] W8[B C K] O8[B D K] sums C");
}

TEST(Layer, NameOperatorAndPrecision) {
  Contraction gemm("Gemm", {{7, 5}, {5, 3}, {7, 3}});
  gemm.graph.tensors[1].kind = TensorKind::parameter;
  Precision precision;
  precision.parameters = DType::bfloat16;
  Layer layer = layer_of(gemm.graph, gemm.units[0], precision).value();
  EXPECT_EQ(layer.name, "the_node");
  EXPECT_EQ(layer.op, "Gemm");
  EXPECT_EQ(layer.operands[0].bits, 32);  // as the model
  EXPECT_EQ(layer.operands[1].bits, 16);
  EXPECT_EQ(layer.operands[1].dtype, DType::float32);
  EXPECT_EQ(layer.output().bits, 32);
  EXPECT_EQ(layer.partial_bits, 32);
  EXPECT_EQ(layer.macs(), 105);
  // The gradient of a parameter has a type of its own, and its incomplete sums have twice the width.
  precision.gradients = DType::float16;
  layer = layer_of(gemm.graph, gemm.units[2], precision).value();
  EXPECT_EQ(layer.operands[0].bits, 32);
  EXPECT_EQ(layer.output().bits, 16);
  EXPECT_EQ(layer.partial_bits, 32);
  layer = layer_of(gemm.graph, gemm.units[2]).value();  // ZigZag's
  EXPECT_EQ(layer.output().bits, 8);
  EXPECT_EQ(layer.partial_bits, 16);
}

// "I W O" of those operands that are read or written across their stored layout, in the three roles.
TEST(Layer, GradientsReadWhatForwardStored) {
  auto crossed = [](const Contraction& c, size_t role) {
    std::string names;
    Layer layer = layer_of(c.graph, c.units[role]).value();
    for (const LayerOperand& operand : layer.operands)
      if (operand.transposed) names += operand.name;
    return names;
  };
  auto roles = [&](const Contraction& c) { return crossed(c, 0) + "," + crossed(c, 1) + "," + crossed(c, 2); };
  // y = x w; dx = dy w^T; dw = x^T dy.
  EXPECT_EQ(roles(Contraction("MatMul", {{7, 5}, {5, 3}, {7, 3}})), ",W,I");
  EXPECT_EQ(roles(Contraction("Gemm", {{7, 5}, {5, 3}, {7, 3}})), ",W,I");
  // A linear layer of PyTorch: y = x w^T; dx = dy w; dw = dy^T x is written as its transpose.
  EXPECT_EQ(roles(Contraction("Gemm", {{7, 5}, {3, 5}, {7, 3}}, {Attribute{"transB", int64_t{1}}})), "W,,IO");
  EXPECT_EQ(roles(Contraction("Gemm", {{5, 7}, {5, 3}, {7, 3}}, {Attribute{"transA", int64_t{1}}})), "I,WO,");
  EXPECT_EQ(roles(Contraction("Einsum", {{7, 5}, {5, 3}, {7, 3}}, {Attribute{"equation", std::string("dc,ck->dk")}})),
            ",W,I");
  EXPECT_EQ(roles(Contraction("Einsum", {{5, 7}, {3, 5}, {3, 7}}, {Attribute{"equation", std::string("cd,kc->kd")}})),
            "IWO,IO,WO");
  EXPECT_EQ(roles(Contraction("Einsum", {{2, 7, 5}, {2, 3, 5}, {2, 7, 3}},
                              {Attribute{"equation", std::string("bdc,bkc->bdk")}})),
            "W,,IO");
  // A convolution's weight is [K, C]; its gradient is a convolution over swapped axes.
  EXPECT_EQ(roles(Contraction("Conv", {{1, 2, 5, 5}, {3, 2, 3, 3}, {1, 3, 3, 3}})), ",W,IWO");
}

TEST(Layer, UnitsThatAreNoContractionHaveNone) {
  Contraction relu("Relu", {{7, 5}, {5, 3}, {7, 5}});
  EXPECT_FALSE(layer_of(relu.graph, relu.units[0]).has_value());
}

// Elements that windows touch, counted. (With a dilation that few points step over, the formula counts holes too.)
TEST(Layer, WindowSpanCountsElements) {
  for (int64_t stride = 1; stride <= 4; ++stride)
    for (int64_t points = 1; points <= 6; ++points)
      for (int64_t taps = 1; taps <= 5; ++taps) {
        WindowedAxis axis;
        axis.stride = stride;
        axis.size = 1000;
        std::set<int64_t> touched;
        for (int64_t p = 0; p < points; ++p)
          for (int64_t t = 0; t < taps; ++t) touched.insert(p * stride + t);
        EXPECT_EQ(window_span(axis, points, taps), static_cast<int64_t>(touched.size())) << stride << points << taps;
        axis.size = 7;
        EXPECT_EQ(window_span(axis, points, taps), std::min<int64_t>(7, static_cast<int64_t>(touched.size())));
      }
}

// --- workload files

Json conv_layer() {
  return Json::parse(
      R"({"id": 3, "operator_type": "Conv", "equation": "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]",
    "dimension_relations": ["ix=2*ox+1*fx", "iy=oy+2*fy"], "loop_dims": ["B", "K", "C", "OY", "OX", "FY", "FX"],
    "loop_sizes": [1, 8, 4, 6, 5, 3, 2], "operand_precision": {"W": 4, "I": 6, "O": 16, "O_final": 10},
    "operand_source": {"I": 3, "W": 3}})");
}

std::vector<Diagnostic> problems_of(const std::string& text) {
  try {
    parse_workload(text);
  } catch (const Refusal& refusal) {
    return refusal.problems();
  }
  return {};
}

std::vector<Diagnostic> problems_of(const Json& layer) { return problems_of(Json::array({layer}).dump()); }

TEST(Workload, FieldsAreKept) {
  Workload workload = parse_workload(Json::array({conv_layer()}).dump());
  EXPECT_TRUE(workload.warnings.empty());
  ASSERT_EQ(workload.layers.size(), 1u);
  const Layer& layer = workload.layers[0];
  EXPECT_EQ(layer.name, "Layer3");
  EXPECT_EQ(layer.op, "Conv");
  EXPECT_EQ(layer.partial_bits, 16);
  EXPECT_EQ(layer.sources.at("I"), 3);
  EXPECT_EQ(show(layer),
            "B=1 K=8 C=4 OY=6 OX=5 FY=3 FX=2 W4[K C FY FX] I6[B C 1OY+2FY<10 2OX+1FX<10] O10[B K OY OX] sums C FY FX");
}

TEST(Workload, PaddingAndGivenSizesClipTheInput) {
  Json layer = conv_layer();
  layer["pr_loop_dims"] = {"IX", "IY"};
  layer["padding"] = Json::parse("[[1, 0], [2, 1]]");
  EXPECT_NE(show(parse_workload(Json::array({layer}).dump()).layers[0]).find("1OY+2FY<7 2OX+1FX<9"), std::string::npos);
  layer["pr_loop_sizes"] = {8, 100};
  EXPECT_NE(show(parse_workload(Json::array({layer}).dump()).layers[0]).find("1OY+2FY<10 2OX+1FX<8"),
            std::string::npos);
}

TEST(Workload, SumsScalarsAndSingleInputs) {
  auto shown = [](const char* equation) {
    Json layer = Json::parse(R"({"id": 0, "operator_type": "Add", "loop_dims": ["B", "G"], "loop_sizes": [2, 3]})");
    layer["equation"] = equation;
    return show(parse_workload(Json::array({layer}).dump()).layers[0]);
  };
  EXPECT_EQ(shown("O[b][g]=W[b][g]+I[b][g]"), "B=2 G=3 W8[B G] I8[B G] O8[B G] sums");
  EXPECT_EQ(shown(" O [b] += I[b][g] "), "B=2 G=3 I8[B G] O8[B] sums G");
  EXPECT_EQ(shown("O[b][g]+=W[]*I[b][g]"), "B=2 G=3 W8[] I8[B G] O8[B G] sums");
}

TEST(Workload, EveryProblemNamesItsField) {
  Json layer = conv_layer();
  layer["loop_sizes"][3] = -5;
  layer["dimension_relations"][0] = "ix=2*ox";
  layer["operand_precision"]["I"] = "eight";
  layer["operand_source"]["W"] = 1.5;
  layer.erase("operator_type");
  layer["operand_precission"] = 3;
  std::vector<std::string> found;
  for (const Diagnostic& problem : problems_of(layer)) found.push_back(problem.node);
  EXPECT_EQ(found, (std::vector<std::string>{"0.operator_type", "0.loop_sizes.3", "0.dimension_relations.0",
                                             "0.equation", "0.operand_precision.I", "0.operand_source.W"}));
}

TEST(Workload, WhatDoesNotFitTogetherIsRefused) {
  struct Change {
    const char* field;
    const char* value;
    const char* node;
  };
  for (const Change& change : std::vector<Change>{
           {"loop_sizes", "[1, 2]", "0.loop_sizes"},
           {"loop_dims", R"(["B", "K", "C", "OY", "OX", "FY", "B"])", "0.loop_dims.6"},
           {"dimension_relations", R"(["ix=2*ox+1*q", "iy=oy+2*fy"])", "0.dimension_relations.0"},
           {"dimension_relations", R"(["ix=2*ox+fx", "ix=oy+2*fy"])", "0.dimension_relations.1"},
           {"equation", R"("O[b][k]+=W[k][c]*I[b][z]")", "0.equation"},
           {"equation", R"("O[b][k]+=W[k][c]*I[b][c]*J[b]")", "0.equation"},
           {"equation", R"("O[b][k]+=O[k][c]*I[b][c]")", "0.equation"},
           {"equation", R"("O[b][b]+=W[k][c]*I[b][c]")", "0.equation"},
           {"equation", R"("")", "0.equation"},
           {"pr_loop_dims", R"(["IZ"])", "0.pr_loop_dims.0"},
           {"operand_source", R"({"I": 77})", "0.operand_source.I"},
           {"operand_precision", R"({"W": -1})", "0.operand_precision.W"},
       }) {
    Json layer = conv_layer();
    layer[change.field] = Json::parse(change.value);
    std::vector<Diagnostic> found = problems_of(layer);
    ASSERT_FALSE(found.empty()) << change.field << change.value;
    EXPECT_EQ(found[0].node, change.node) << change.value << ": " << found[0].message;
  }
  Json twice = Json::array({conv_layer(), conv_layer()});
  EXPECT_EQ(problems_of(twice.dump())[0].node, "1.id");
}

TEST(Workload, UnknownFieldsAreWarnedAbout) {
  Json layer = conv_layer();
  layer["operand_sourc"] = 1;
  Workload workload = parse_workload(Json::array({layer}).dump());
  ASSERT_EQ(workload.warnings.size(), 1u);
  EXPECT_EQ(workload.warnings[0].node, "0.operand_sourc");
}

TEST(Workload, AnythingElseIsRefused) {
  for (const char* text : {"", "{}", "[]", "[1]", "null", "[{}]", "[{\"id\": 1}]", "\xff", "[[[["})
    EXPECT_FALSE(problems_of(std::string(text)).empty()) << text;
  std::string text = Json::array({conv_layer()}).dump();
  for (size_t length = 0; length < text.size(); ++length) EXPECT_FALSE(problems_of(text.substr(0, length)).empty());
  for (size_t at = 0; at < text.size(); ++at) {
    std::string changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 0x15);
    problems_of(changed);  // anything but Refusal would escape and fail the test
  }
}

}  // namespace
}  // namespace monet
