#include "engine/training/unsupported.h"

#include <algorithm>

namespace monet {

namespace {

struct Group {
  std::string op, reason, hint;
  NodeId first = kNone;  // in execution order
  int64_t count = 0;
};

// In the order given.
std::vector<Group> grouped(const Graph& graph, const std::vector<MissingRule>& missing) {
  std::vector<Group> groups;
  for (const MissingRule& m : missing) {
    const Node& node = graph.nodes[m.node];
    std::string op = node.domain.empty() ? node.op : node.domain + "." + node.op;
    auto group =
        std::find_if(groups.begin(), groups.end(), [&](const Group& g) { return g.op == op && g.reason == m.reason; });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{op, m.reason, m.hint, m.node, 0});
    group->first = std::min(group->first, m.node);
    ++group->count;
  }
  return groups;
}

std::string nodes_of(const Graph& graph, const Group& group) {
  if (group.count == 1) return "node " + label(graph, group.first);
  return std::to_string(group.count) + " nodes, the first " + label(graph, group.first);
}

std::string without_rule(const Group& group) {
  return "has no gradient rule" + (group.reason.empty() ? "" : ": " + group.reason);
}

}  // namespace

std::vector<Diagnostic> missing_rules(const Graph& graph, const std::vector<MissingRule>& missing) {
  std::vector<Diagnostic> problems;
  for (const Group& g : grouped(graph, missing))
    problems.push_back({"no-gradient", "operator " + g.op + " (" + nodes_of(graph, g) + ") " + without_rule(g),
                        label(graph, g.first), "",
                        g.hint + (g.hint.empty() ? "" : "; or ") +
                            "freeze what comes before it, stop the gradient there (unsupported: stop), or pass it on "
                            "unchanged where shapes allow (unsupported: pass)"});
  return problems;
}

std::vector<Diagnostic> gap_warnings(const Graph& graph, const std::vector<MissingRule>& missing, Unsupported choice) {
  std::vector<Diagnostic> warnings;
  bool pass = choice == Unsupported::pass;
  for (const Group& g : grouped(graph, missing))
    warnings.push_back({pass ? "gradient-passed" : "gradient-stopped",
                        "operator " + g.op + " (" + nodes_of(graph, g) + ") " + without_rule(g) +
                            (pass ? "; assumed: its gradient goes unchanged and at no cost to inputs of its output's "
                                    "shape, and to no other"
                                  : "; no gradient goes through it, and what only it leads to is not trained"),
                        label(graph, g.first), "", g.hint});
  return warnings;
}

void Gaps::add(const Graph& graph, const std::vector<MissingRule>& missing, Unsupported choice) {
  for (const MissingRule& m : missing) {
    opaque.insert(m.node);
    const Node& node = graph.nodes[m.node];
    TensorId out = node.outputs.empty() ? kNone : node.outputs[0];
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNone) continue;
      const Tensor& input = graph.tensors[node.inputs[i]];
      bool passes = choice == Unsupported::pass && out != kNone && input.shape == graph.tensors[out].shape &&
                    input.dtype == graph.tensors[out].dtype;
      if (!passes) stopped.insert({m.node, i});
    }
  }
}

}  // namespace monet
