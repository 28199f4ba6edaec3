// The table of gradient rules: which operators have a gradient, with respect to which inputs, and the function that
// writes it in standard ONNX operators. To add an operator: one entry in gradient_rules.cc, one function in the file
// of its family. Formulas are those of reverse-mode differentiation (Griewank and Walther, Evaluating Derivatives,
// 2008); functions name a paper where theirs is not a textbook derivative.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/ir/diagnostic.h"
#include "engine/ir/graph.h"
#include "engine/training/builder.h"

namespace monet {

// What a rule sees of the backward pass: one forward node, the gradients of its outputs, and which of its inputs want
// one. Tensors are reached by index; shapes come by value, because emitting moves the graph's storage.
class Backward {
 public:
  virtual ~Backward() = default;
  Backward(Builder& builder, NodeId id) : b(builder), id(id), node(builder.graph().nodes[id]) {}

  // The input or output tensor; kNone when absent.
  TensorId input(size_t i) const { return i < node.inputs.size() ? node.inputs[i] : kNone; }
  TensorId output(size_t i) const { return i < node.outputs.size() ? node.outputs[i] : kNone; }
  const Tensor& tensor(TensorId t) const { return b.graph().tensors[t]; }  // valid until the next emit
  Shape shape(TensorId t) const { return b.shape(t); }

  virtual TensorId gradient(size_t output = 0) const = 0;  // kNone when none flows into it
  virtual bool wants(size_t input) const = 0;
  virtual bool from_data(size_t input) const = 0;          // depends on the step's data, not on parameters alone
  virtual void give(size_t input, TensorId gradient) = 0;  // once per wanted input; same shape as the input
  // The same for an operand that was broadcast: the gradient, of the output's shape, is summed over what was repeated.
  void give_reduced(size_t i, TensorId gradient) { give(i, b.reduce_to(gradient, shape(input(i)))); }
  // An operand of a contraction: what is emitted from now on is the unit of its gradient.
  virtual void begin_operand(size_t input) = 0;
  // The output `index` of the forward node, added to it if it has none (saved indices, masks).
  virtual TensorId saved_output(size_t index, DType type, const Shape& shape) = 0;
  // This variant of the operator has no gradient rule: the reason completes "<op> <node> has no gradient rule: ...".
  virtual void refuse(const std::string& reason, const std::string& hint) = 0;
  virtual bool frozen_batch_norm() const = 0;

  // Wanted operands of a two-operand contraction, weights first. With the weight gradient first, the saved input X can
  // be freed before the input gradient (of X's size) is allocated, and the weight gradient's re-laid copies of X and dY
  // are gone by then as well; the other order holds all of them at once.
  std::vector<size_t> operands() const {
    std::vector<size_t> order;
    for (bool data : {false, true})
      for (size_t i : {0, 1})
        if (wants(i) && from_data(i) == data) order.push_back(i);
    return order;
  }

  Builder& b;
  const NodeId id;
  const Node node;  // a copy: emitting moves the graph's storage
};

using GradientFunction = void (*)(Backward&);

// Bit i stands for input (output) i, bit 31 for all from 31 on.
using Positions = uint32_t;
constexpr Positions kAll = ~Positions{0};
constexpr Positions first(int n) { return (Positions{1} << n) - 1; }
constexpr Positions at(int i) { return Positions{1} << i; }
inline bool has(Positions set, size_t i) { return set >> (i < 31 ? i : 31) & 1; }

struct GradientRule {
  const char* domain;  // "" is ai.onnx
  const char* op;
  GradientFunction function;
  Positions inputs;              // those that can have a gradient, if they are floating point
  Positions outputs = first(1);  // those through which a gradient can come
};

// Null when there is none.
const GradientRule* find_gradient_rule(const std::string& domain, const std::string& op);
// Why no gradient flows through an operator by its definition ("its output is an index"); null for other operators.
// Such a path is cut silently, as in every autograd framework.
const char* gradient_stops(const std::string& domain, const std::string& op);
// Whether a gradient can flow from the node's outputs to this input: by the rule, or without one by types alone (so
// that the missing rule is reported rather than the path cut silently).
bool differentiable_input(const Graph& graph, const Node& node, size_t input);
bool differentiable_output(const Graph& graph, const Node& node, size_t output);

// convolution.cc
void conv_gradient(Backward& g);
void conv_transpose_gradient(Backward& g);
// normalization.cc
void batch_normalization_gradient(Backward& g);
// layer_normalization.cc
void layer_normalization_gradient(Backward& g);
void group_normalization_gradient(Backward& g);
void instance_normalization_gradient(Backward& g);
void mean_variance_normalization_gradient(Backward& g);
// local_response_normalization.cc
void lrn_gradient(Backward& g);
// math.cc
void neg_gradient(Backward& g);
void abs_gradient(Backward& g);
void exp_gradient(Backward& g);
void log_gradient(Backward& g);
void sqrt_gradient(Backward& g);
void reciprocal_gradient(Backward& g);
void pow_gradient(Backward& g);
void erf_gradient(Backward& g);
void sin_gradient(Backward& g);
void cos_gradient(Backward& g);
void tan_gradient(Backward& g);
void asin_gradient(Backward& g);
void acos_gradient(Backward& g);
void atan_gradient(Backward& g);
void sinh_gradient(Backward& g);
void cosh_gradient(Backward& g);
void tanh_gradient(Backward& g);
void asinh_gradient(Backward& g);
void acosh_gradient(Backward& g);
void atanh_gradient(Backward& g);
// activations.cc
void relu_gradient(Backward& g);
void clip_gradient(Backward& g);
void sigmoid_gradient(Backward& g);
void gelu_gradient(Backward& g);
void elu_gradient(Backward& g);
void selu_gradient(Backward& g);
void celu_gradient(Backward& g);
void leaky_relu_gradient(Backward& g);
void prelu_gradient(Backward& g);
void hard_sigmoid_gradient(Backward& g);
void hard_swish_gradient(Backward& g);
void mish_gradient(Backward& g);
void softplus_gradient(Backward& g);
void softsign_gradient(Backward& g);
void thresholded_relu_gradient(Backward& g);
void shrink_gradient(Backward& g);
void softmax_gradient(Backward& g);
void log_softmax_gradient(Backward& g);
void dropout_gradient(Backward& g);
// pooling.cc
void max_pool_gradient(Backward& g);
void average_pool_gradient(Backward& g);
void global_average_pool_gradient(Backward& g);
void global_max_pool_gradient(Backward& g);
void lp_pool_gradient(Backward& g);
void max_unpool_gradient(Backward& g);
// affine_grid.cc
void affine_grid_gradient(Backward& g);
// col2im.cc
void col2im_gradient(Backward& g);
// roi_align.cc
void roi_align_gradient(Backward& g);
// fourier.cc
void dft_gradient(Backward& g);
void stft_gradient(Backward& g);
// grid_sample.cc
void grid_sample_gradient(Backward& g);
// resize.cc
void resize_gradient(Backward& g);
// elementwise.cc
void add_gradient(Backward& g);
void sub_gradient(Backward& g);
void mul_gradient(Backward& g);
void div_gradient(Backward& g);
void mod_gradient(Backward& g);
void sum_gradient(Backward& g);
void mean_gradient(Backward& g);
void max_gradient(Backward& g);
void min_gradient(Backward& g);
void where_gradient(Backward& g);
void cast_gradient(Backward& g);
// shape_ops.cc
void identity_gradient(Backward& g);
void reshape_gradient(Backward& g);
void transpose_gradient(Backward& g);
void concat_gradient(Backward& g);
void split_gradient(Backward& g);
void slice_gradient(Backward& g);
void expand_gradient(Backward& g);
void tile_gradient(Backward& g);
void depth_to_space_gradient(Backward& g);
void space_to_depth_gradient(Backward& g);
void trilu_gradient(Backward& g);
void reverse_sequence_gradient(Backward& g);
void pad_gradient(Backward& g);
// indexing.cc
void gather_gradient(Backward& g);
void gather_elements_gradient(Backward& g);
void gather_nd_gradient(Backward& g);
void scatter_elements_gradient(Backward& g);
void scatter_nd_gradient(Backward& g);
void compress_gradient(Backward& g);
void top_k_gradient(Backward& g);
void one_hot_gradient(Backward& g);
// matrix.cc
void gemm_gradient(Backward& g);
void matmul_gradient(Backward& g);
void det_gradient(Backward& g);
// einsum.cc
void einsum_gradient(Backward& g);
// quantization.cc
void quantize_linear_gradient(Backward& g);
void dequantize_linear_gradient(Backward& g);
// loss_operators.cc
void softmax_cross_entropy_loss_gradient(Backward& g);
void negative_log_likelihood_loss_gradient(Backward& g);
// reductions.cc
void reduce_mean_gradient(Backward& g);
void reduce_sum_gradient(Backward& g);
void reduce_max_gradient(Backward& g);  // and ReduceMin
void reduce_prod_gradient(Backward& g);
void reduce_l1_gradient(Backward& g);
void reduce_l2_gradient(Backward& g);
void reduce_log_sum_gradient(Backward& g);
void reduce_log_sum_exp_gradient(Backward& g);
void reduce_sum_square_gradient(Backward& g);
void cum_sum_gradient(Backward& g);
void lp_normalization_gradient(Backward& g);

}  // namespace monet
