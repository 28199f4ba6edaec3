#include "engine/training/selection.h"

#include <algorithm>

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
  std::vector<TensorId> selected;
  for (TensorId t : parameters) {
    auto hit = [&](const std::string& pattern) { return matches(pattern, t); };
    if (!options.train.empty() && std::none_of(options.train.begin(), options.train.end(), hit)) continue;
    if (std::any_of(options.freeze.begin(), options.freeze.end(), hit)) continue;
    selected.push_back(t);
  }
  return selected;
}

}  // namespace monet
