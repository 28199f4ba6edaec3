// Forward graph -> training graph: loss, gradients, optimizer updates, all in standard ONNX operators (DESIGN decision
// 4 and section 5). One table of gradient rules (gradient_rules.h), one file per operator family.
#pragma once

#include <map>
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
enum class Optimizer : uint8_t { sgd, momentum, adam };
const char* name(Loss loss);                // "auto", "cross_entropy", "mse", "sum"
const char* name(Unsupported unsupported);  // "refuse", "stop", "pass"
const char* name(Optimizer optimizer);      // "sgd", "momentum", "adam"

struct TrainingOptions {
  Optimizer optimizer = Optimizer::sgd;
  Loss loss = Loss::automatic;
  std::string output;               // the output to put the loss on; empty: the first float one
  bool frozen_batch_norm = false;   // use and keep the running statistics instead of the batch's
  std::vector<std::string> train;   // glob patterns on parameter names; empty: all
  std::vector<std::string> freeze;  // glob patterns on parameter names, applied after `train`
  Unsupported unsupported = Unsupported::refuse;
};

// What the graph holds beside the forward nodes:
// - inputs: "labels" (int64, cross entropy) or "target" (mse); optimizer states "<parameter>_momentum",
// "<parameter>_adam_m"
//   and "<parameter>_adam_v", zeros before the first step; scalars "learning_rate" (float32) and "step" (int64, from 1;
//   Adam only). A number is appended where the model uses such a name itself.
// - outputs: the loss, updated running statistics, updated parameters and states ("<name>_next"), each with `of` naming
//   what it replaces. The forward outputs are no outputs here: a step needs them only until the loss has been taken.
//   Gradients ("<parameter>_grad") are freed by the update that reads them.
// - the loss and its gradient with respect to the output are two units of Phase::loss without origin.
struct TrainingGraph {
  Graph graph;                      // forward nodes first, at their old indices, then loss, backward, optimizer
  Loss loss = Loss::cross_entropy;  // the one chosen when `automatic` was asked for
  TensorId loss_output = kNone;     // the forward tensor that the loss reads
  TensorId loss_value = kNone;
  std::vector<TensorId> parameters;  // trained, in order of first use
  std::vector<TensorId> gradients;   // parallel to `parameters`
  std::vector<Diagnostic> warnings;
};

// Throws Refusal listing every operator on the path without a gradient rule, every unmatched pattern, a missing output.
TrainingGraph build_training_graph(const Graph& forward, const TrainingOptions& options);

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
