#include <gtest/gtest.h>

#include "engine/ir/einsum.h"
#include "engine/ir/graph.h"

namespace monet {
namespace {

TEST(Tensor, BytesAtEveryWidth) {
  Tensor t;
  t.shape = {3, 5};
  t.dtype = DType::float32;
  EXPECT_EQ(bytes(t), 60);
  t.dtype = DType::bfloat16;
  EXPECT_EQ(bytes(t), 30);
  t.dtype = DType::int4;
  EXPECT_EQ(bytes(t), 8);  // 15 elements of 4 bits: 7.5 bytes, rounded up
  t.dtype = DType::boolean;
  EXPECT_EQ(bytes(t), 15);
  t.shape = {};
  t.dtype = DType::int64;
  EXPECT_EQ(bytes(t), 8);
  t.shape = {0, 7};
  EXPECT_EQ(bytes(t), 0);
}

TEST(Tensor, HostileShapesSaturate) {
  Tensor t;
  t.dtype = DType::float64;
  t.shape = {INT64_MAX, INT64_MAX, 3};
  EXPECT_EQ(elements(t.shape), INT64_MAX);
  EXPECT_EQ(bytes(t), INT64_MAX);
}

TEST(Node, LabelFallsBackToOutputThenIndex) {
  Graph g;
  TensorId out = g.add(Tensor{.name = "y"});
  g.add(Node{.name = "conv", .outputs = {out}});
  g.add(Node{.outputs = {kNone, out}});
  g.add(Node{});
  EXPECT_EQ(label(g, 0), "conv");
  EXPECT_EQ(label(g, 1), "y");
  EXPECT_EQ(label(g, 2), "#2");
}

TEST(Einsum, Equations) {
  auto show = [](const char* text) -> std::string {
    std::optional<EinsumEquation> e = parse_einsum(text);
    if (!e) return "none";
    std::string all;
    for (const std::string& term : e->inputs) all += term + ",";
    return all + ">" + e->output;
  };
  EXPECT_EQ(show("ij, jk -> ik"), "ij,jk,>ik");
  EXPECT_EQ(show("ij,jk"), "ij,jk,>ik");
  EXPECT_EQ(show("bA,b..."), "bA,b.,>.A");  // capitals first
  EXPECT_EQ(show("ii"), "ii,>");
  EXPECT_EQ(show(",i->"), ",i,>");
  for (const char* bad : {"i.j->ij", "i->j1", "......->i", "i-j", "i->j->k"}) EXPECT_EQ(show(bad), "none") << bad;
}

TEST(Einsum, ProductsOfMatrices) {
  auto is_product = [](const char* text) { return is_matrix_product(*parse_einsum(text)); };
  for (const char* yes : {"ij,jk->ik", "bij,bkj->bki", "...ij,...jk->...ik", "...i,oi->...o", "abc,cd->abd"})
    EXPECT_TRUE(is_product(yes)) << yes;
  // A vector, an outer product, a sum inside an operand, elementwise, a diagonal, one and three operands.
  for (const char* no : {"ij,j->i", "i,j->ij", "ijl,jk->ik", "ij,ij->ij", "iij,jk->ik", "ij->ji", "ij,jk,kl->il"})
    EXPECT_FALSE(is_product(no)) << no;
}

TEST(Einsum, TermsFitTheirShapes) {
  auto terms = [](const char* equation, const std::vector<Shape>& shapes) {
    Graph graph;
    Node node{.op = "Einsum"};
    for (const Shape& shape : shapes) node.inputs.push_back(graph.add(Tensor{.shape = shape}));
    node.attributes = {{"equation", std::string(equation)}};
    return einsum_terms(graph, node);
  };
  auto found = terms("...ij,...jk->...ik", {{2, 1, 3, 4}, {5, 4, 6}});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->inputs, (std::vector<std::string>{"abij", "bjk"}));
  EXPECT_EQ(found->output, "abik");
  EXPECT_EQ(found->sizes, (std::map<char, int64_t>{{'a', 2}, {'b', 5}, {'i', 3}, {'j', 4}, {'k', 6}}));
  EXPECT_FALSE(terms("ij,jk->ik", {{2, 3}, {4, 5}}));
  EXPECT_FALSE(terms("ij,jk->ik", {{2, 3}, {1, 5}}));  // only ellipses broadcast
  EXPECT_FALSE(terms("ij,jk->ik", {{2, 3}}));
  EXPECT_FALSE(terms("ij->ik", {{2, 3}}));
  EXPECT_FALSE(terms("ij->i", {{2, 3, 4}}));
}

}  // namespace
}  // namespace monet
