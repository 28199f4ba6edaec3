#include "engine/onnx/order.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

namespace monet {

namespace {

constexpr int kStored = -1;  // producer of graph inputs and initializers

class Sorter {
 public:
  Sorter(::onnx::GraphProto& graph, bool nested, std::vector<Diagnostic>& problems)
      : graph_(graph), nested_(nested), problems_(problems) {}

  // Returns the label of the first node that stood too early, or "".
  std::string run() {
    for (auto& n : *graph_.mutable_node())
      for (auto& a : *n.mutable_attribute()) {
        if (a.has_g()) Sorter(*a.mutable_g(), true, problems_).run();
        for (auto& g : *a.mutable_graphs()) Sorter(g, true, problems_).run();
      }
    define();
    std::vector<int> order = sort();
    int count = graph_.node_size();
    if (static_cast<int>(order.size()) < count) {
      report_cycle(order);
      return "";
    }
    auto moved = std::find_if(order.begin(), order.end(), [&, i = 0](int n) mutable { return n != i++; });
    if (moved == order.end()) return "";
    std::string label = describe(graph_.node(static_cast<int>(moved - order.begin())), 0);
    google::protobuf::RepeatedPtrField<::onnx::NodeProto> sorted;
    for (int n : order) sorted.Add()->Swap(graph_.mutable_node(n));
    graph_.mutable_node()->Swap(&sorted);
    return label;
  }

 private:
  void define() {
    for (const auto& v : graph_.input()) define(v.name(), kStored);
    for (const auto& t : graph_.initializer()) define(t.name(), kStored);
    for (int i = 0; i < graph_.node_size(); ++i)
      for (const auto& output : graph_.node(i).output())
        if (!output.empty()) define(output, i);
    if (nested_) return;  // outputs of a body may be names from outside
    for (const auto& v : graph_.output())
      if (!producer_.count(v.name()))
        problems_.push_back({"missing-output", "graph output \"" + v.name() + "\" is produced by no node", "", v.name(),
                             "export the model again"});
  }

  void define(const std::string& name, int node) {
    auto [at, fresh] = producer_.emplace(name, node);
    if (fresh) return;
    auto title = [&](int n) {
      return n == kStored ? std::string("an input or initializer") : describe(graph_.node(n), n);
    };
    problems_.push_back(
        {"not-ssa", "tensor \"" + name + "\" is defined twice: by " + title(at->second) + " and by " + title(node),
         node == kStored ? "" : name_of(graph_.node(node)), name, "give each output a name of its own"});
  }

  std::vector<int> sort() {
    int count = graph_.node_size();
    std::vector<std::vector<int>> readers(count);
    std::vector<int> waiting(count, 0);
    waits_for_.resize(count);
    for (int i = 0; i < count; ++i) {
      std::unordered_set<std::string> seen;
      for_each_read(graph_.node(i), [&](const std::string& name) {
        if (!seen.insert(name).second) return;
        auto found = producer_.find(name);
        if (found == producer_.end()) {
          if (!nested_)
            problems_.push_back({"missing-input",
                                 describe(graph_.node(i), i) + " reads tensor \"" + name + "\", which nothing produces",
                                 name_of(graph_.node(i)), name, "export the model again"});
        } else if (found->second != kStored) {
          readers[found->second].push_back(i);
          waits_for_[i].push_back(found->second);
          ++waiting[i];
        }
      });
    }
    std::priority_queue<int, std::vector<int>, std::greater<int>> ready;
    for (int i = 0; i < count; ++i)
      if (!waiting[i]) ready.push(i);
    std::vector<int> order;
    while (!ready.empty()) {
      int n = ready.top();
      ready.pop();
      order.push_back(n);
      for (int reader : readers[n])
        if (--waiting[reader] == 0) ready.push(reader);
    }
    return order;
  }

  // Walks backwards from a node that could not be placed: the walk must close.
  void report_cycle(const std::vector<int>& order) {
    constexpr size_t kNamed = 6;  // nodes of the cycle that the message lists
    std::vector<bool> placed(graph_.node_size(), false);
    for (int n : order) placed[n] = true;
    int at = static_cast<int>(std::find(placed.begin(), placed.end(), false) - placed.begin());
    std::vector<int> path;
    std::vector<bool> visited(graph_.node_size(), false);
    while (!visited[at]) {
      visited[at] = true;
      path.push_back(at);
      at = *std::find_if(waits_for_[at].begin(), waits_for_[at].end(), [&](int n) { return !placed[n]; });
    }
    path.erase(path.begin(), std::find(path.begin(), path.end(), at));
    std::reverse(path.begin(), path.end());
    std::string names;
    for (size_t i = 0; i < path.size() && i < kNamed; ++i)
      names += (i ? " -> " : "") + describe(graph_.node(path[i]), path[i]);
    if (path.size() > kNamed) names += " -> ...";
    problems_.push_back({"cycle", "the graph has a cycle: " + names, name_of(graph_.node(at)), "",
                         "a loop belongs into a Loop or Scan operator"});
  }

  ::onnx::GraphProto& graph_;
  bool nested_;
  std::vector<Diagnostic>& problems_;
  std::unordered_map<std::string, int> producer_;
  std::vector<std::vector<int>> waits_for_;
};

}  // namespace

void sort_nodes(::onnx::GraphProto& graph, std::vector<Diagnostic>& problems, std::vector<Diagnostic>& warnings) {
  std::string moved = Sorter(graph, false, problems).run();
  if (!moved.empty())
    warnings.push_back({"unsorted",
                        "the file's nodes are not in execution order (" + moved + " stands before its inputs); sorted",
                        "", "", ""});
}

}  // namespace monet
