#include "engine/training/selection.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace monet {

// Greedy with one point of return, the last star: linear for ordinary patterns, quadratic at worst, no recursion.
bool glob_match(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == std::string_view::npos;
}

std::vector<std::string> layers_of(const Graph& graph) {
  std::vector<std::string> layers(graph.tensors.size());
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id)
    for (TensorId t : graph.nodes[id].inputs) {
      if (t == kNone || !layers[t].empty()) continue;
      const std::string& name = graph.tensors[t].name;
      size_t dot = name.rfind('.');
      layers[t] = dot == std::string::npos ? label(graph, id) : name.substr(0, dot);
    }
  return layers;
}

std::vector<bool> biases(const Graph& graph) {
  static const std::map<std::string, size_t> kOperand = {{"Conv", 2},
                                                         {"ConvTranspose", 2},
                                                         {"Gemm", 2},
                                                         {"LSTM", 3},
                                                         {"GRU", 3},
                                                         {"RNN", 3},
                                                         {"BatchNormalization", 2},
                                                         {"LayerNormalization", 2},
                                                         {"GroupNormalization", 2},
                                                         {"InstanceNormalization", 2}};
  std::vector<bool> result(graph.tensors.size());
  for (const Node& node : graph.nodes) {
    if (!node.domain.empty()) continue;
    if (auto at = kOperand.find(node.op); at != kOperand.end() && at->second < node.inputs.size()) {
      if (node.inputs[at->second] != kNone) result[node.inputs[at->second]] = true;
    } else if (node.op == "Add") {
      for (TensorId t : node.inputs) {
        // A vector, broadcast: all its elements along one axis.
        const Shape& shape = graph.tensors[t].shape;
        bool vector = std::count_if(shape.begin(), shape.end(), [](int64_t d) { return d != 1; }) <= 1;
        if (vector && graph.tensors[node.outputs[0]].shape != shape) result[t] = true;
      }
    }
  }
  return result;
}

namespace {

// The ones in the last layers, counted by layers that have one of `chosen`.
std::vector<TensorId> in_last_layers(const Graph& graph, const std::vector<TensorId>& chosen, int64_t count) {
  std::vector<std::string> layers = layers_of(graph);
  std::vector<std::string> order;  // of first use, which is the order of `chosen`
  std::set<std::string> seen;
  for (TensorId t : chosen)
    if (seen.insert(layers[t]).second) order.push_back(layers[t]);
  int64_t dropped = std::max<int64_t>(0, static_cast<int64_t>(order.size()) - count);
  std::set<std::string> last(order.begin() + dropped, order.end());
  std::vector<TensorId> kept;
  std::copy_if(chosen.begin(), chosen.end(), std::back_inserter(kept),
               [&](TensorId t) { return last.count(layers[t]) > 0; });
  return kept;
}

}  // namespace

std::vector<TensorId> select_parameters(const Graph& graph, const std::vector<TensorId>& parameters,
                                        const TrainingOptions& options, std::vector<Diagnostic>& problems) {
  auto matches = [&](const std::string& pattern, TensorId t) { return glob_match(pattern, graph.tensors[t].name); };
  auto check = [&](const std::vector<std::string>& patterns, const char* setting) {
    for (const std::string& pattern : patterns) {
      if (std::any_of(parameters.begin(), parameters.end(), [&](TensorId t) { return matches(pattern, t); })) continue;
      std::string example = parameters.empty() ? "" : "; a parameter here is " + graph.tensors[parameters[0]].name;
      problems.push_back({"unmatched-pattern",
                          "pattern \"" + pattern + "\" of " + setting + " matches no parameter of the model", setting,
                          "", "patterns are matched against whole names, * standing for any text" + example});
    }
  };
  check(options.train, "train");
  check(options.freeze, "freeze");
  std::vector<bool> is_bias;
  if (options.biases_only) is_bias = biases(graph);
  std::vector<TensorId> selected;
  for (TensorId t : parameters) {
    auto hit = [&](const std::string& pattern) { return matches(pattern, t); };
    if (!options.train.empty() && std::none_of(options.train.begin(), options.train.end(), hit)) continue;
    if (std::any_of(options.freeze.begin(), options.freeze.end(), hit)) continue;
    if (options.biases_only && !is_bias[t]) continue;
    selected.push_back(t);
  }
  if (options.biases_only && selected.empty())
    problems.push_back({"no-bias", "no bias is among the parameters chosen to train", "biases", "",
                        "train all parameters of the layers instead"});
  return options.last_layers ? in_last_layers(graph, selected, *options.last_layers) : selected;
}

}  // namespace monet
