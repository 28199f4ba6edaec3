// Which parameters train: glob patterns on their names.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/training/training_graph.h"

namespace monet {

// `*` stands for any text (dots and slashes too), `?` for one character.
bool glob_match(std::string_view pattern, std::string_view text);

// The parameters chosen by options.train and options.freeze, in their order. Adds a problem for every pattern that
// matches none.
std::vector<TensorId> select_parameters(const Graph& graph, const std::vector<TensorId>& parameters,
                                        const TrainingOptions& options, std::vector<Diagnostic>& problems);

}  // namespace monet
