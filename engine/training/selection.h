// Which parameters train: glob patterns on their names, the last layers, biases only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/training/training_graph.h"

namespace monet {

// `*` stands for any text (dots and slashes too), `?` for one character.
bool glob_match(std::string_view pattern, std::string_view text);

// Per tensor, the layer it belongs to: its name up to the last dot ("layer4.1.conv2" of "layer4.1.conv2.weight"), else
// the label of the first node that reads it. Empty for tensors that no node reads.
std::vector<std::string> layers_of(const Graph& graph);

// Per tensor, whether it is added to what its layer computes: the bias operand of a contraction, normalisation or
// recurrent layer, or a vector added to data by an Add. (What BitFit trains; Ben Zaken et al., arXiv 2106.10199.)
std::vector<bool> biases(const Graph& graph);

// The parameters chosen by the options, in their order: those that `train` matches and `freeze` does not; of these the
// biases with `biases_only`; of these the ones in the last `last_layers` layers. Adds a problem for every pattern that
// matches none.
std::vector<TensorId> select_parameters(const Graph& graph, const std::vector<TensorId>& parameters,
                                        const TrainingOptions& options, std::vector<Diagnostic>& problems);

}  // namespace monet
