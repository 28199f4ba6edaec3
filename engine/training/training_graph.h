// Forward graph -> training graph: loss, gradients, optimizer updates, all in standard ONNX operators (DESIGN decision
// 4 and section 5). One table of gradient rules (gradient_rules.h), one file per operator family.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/diagnostic.h"
#include "engine/ir/graph.h"

namespace monet {

// What to do about operators without a gradient rule between the loss and a trained parameter.
enum class Unsupported : uint8_t {
  refuse,  // list them all
  stop,    // no gradient goes through them; what is reached only through them is not trained
  pass,    // the gradient goes unchanged, at no cost, to inputs of the output's shape, and stops at the others
};
enum class Loss : uint8_t { automatic, cross_entropy, mse, sum };
enum class Optimizer : uint8_t { sgd, momentum, nesterov, adam, adamw, adagrad, rmsprop, lion };
const char* name(Loss loss);  // "auto", "cross_entropy", "mse", "sum"
const char* name(Unsupported unsupported);
const char* name(Optimizer optimizer);  // as written above
constexpr Optimizer kOptimizers[] = {Optimizer::sgd,   Optimizer::momentum, Optimizer::nesterov, Optimizer::adam,
                                     Optimizer::adamw, Optimizer::adagrad,  Optimizer::rmsprop,  Optimizer::lion};

struct TrainingOptions {
  Optimizer optimizer = Optimizer::sgd;
  std::optional<double> weight_decay;  // absent: the optimizer's own default (AdamW 0.01, all others 0)
  std::optional<double> clip_norm;     // the norm of all gradients together is kept to this
  int64_t micro_batches = 1;           // their gradients are summed, then one update with the mean follows
  Loss loss = Loss::automatic;
  std::string output;                  // the output to put the loss on; empty: the first float one
  bool frozen_batch_norm = false;      // use and keep the running statistics instead of the batch's
  std::vector<std::string> train;      // glob patterns on parameter names; empty: all
  std::vector<std::string> freeze;     // glob patterns on parameter names, applied after `train`
  std::optional<int64_t> last_layers;  // only the parameters of the last so many layers (selection.h)
  bool biases_only = false;            // only what is added: biases of layers and normalisations (selection.h)
  // Low-rank adapters on the chosen weights of Conv, Gemm and MatMul, and only these train (lora.h); 0: none.
  int64_t lora_rank = 0;
  std::vector<std::string> recompute;  // names of saved tensors that the backward pass computes again (recompute.h)
  Unsupported unsupported = Unsupported::refuse;
};

// What the graph holds beside the forward nodes:
// - inputs: "labels" (int64, cross entropy) or "target" (mse); optimizer states ("<parameter>_momentum",
//   "<parameter>_adam_m", "<parameter>_adam_v", ...; optimizers.cc), zeros before the first step; with several
//   micro-batches "<parameter>_grad_sum", zeros before the first of each step; scalars "learning_rate" (float32) and
//   "step" (int64, from 1; Adam and AdamW only). A number is appended where the model uses such a name itself.
// - outputs: the loss, updated running statistics, sums, parameters and states ("<name>_next"), each with `of` naming
//   what it replaces. With several micro-batches the graph is run for each, and the updates of the last run are taken.
//   The forward outputs are no outputs here: a step needs them only until the loss has been taken.
//   Gradients ("<parameter>_grad") are freed by the update that reads them.
// - the loss and its gradient with respect to the output are two units of Phase::loss without origin.
struct TrainingGraph {
  // Forward nodes first (at their old indices unless adapters were added), then loss, backward with what it recomputes,
  // optimizer.
  Graph graph;
  Loss loss = Loss::cross_entropy;  // the one chosen when `automatic` was asked for
  TensorId loss_output = kNone;     // the forward tensor that the loss reads
  TensorId loss_value = kNone;
  std::vector<TensorId> parameters;  // trained, in order of first use
  std::vector<TensorId> gradients;   // parallel to `parameters`
  std::vector<Diagnostic> warnings;
};

// Throws Refusal listing every operator on the path without a gradient rule, every unmatched pattern, a missing output.
TrainingGraph build_training_graph(const Graph& model, const TrainingOptions& options);

// Whether training knows what to do with the operator: it has a gradient rule, or stops the gradient by definition.
bool has_gradient_rule(const std::string& domain, const std::string& op);

// Parameters of a forward graph whether or not its training graph can be built: float parameters, running statistics of
// BatchNormalization and operands that no gradient reaches by definition (Clip's bounds, ...) excepted.
std::vector<TensorId> parameters(const Graph& forward);

// Forward tensors (inputs and computed; not parameters, buffers or constants) that loss, backward or optimizer nodes
// read, views resolved to the tensor whose bytes they share; ascending, each once. What autograd frameworks call saved
// for backward.
std::vector<TensorId> saved_for_backward(const Graph& training);

}  // namespace monet
