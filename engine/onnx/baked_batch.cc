#include "engine/onnx/baked_batch.h"

#include <algorithm>
#include <optional>

#include "engine/onnx/value.h"

namespace monet {

namespace {

class Search {
 public:
  Search(const ::onnx::GraphProto& graph, const Inferred& inferred, int64_t exported, int64_t batch)
      : graph_(graph), inferred_(inferred), exported_(exported), batch_(batch) {
    for (const auto& t : graph.initializer()) stored_[t.name()] = &t;
    for (int i = 0; i < graph.node_size(); ++i)
      for (const auto& output : graph.node(i).output()) producer_[output] = i;
  }

  // The node to blame, or -1.
  int run() const {
    int silent = first_silent();
    if (inferred_.failed.empty()) return silent;
    int failed = inferred_.failed.front();
    if (silent >= 0 && silent < failed) return silent;
    if (target_of(failed)) return failed;
    return nearest_baked(failed);
  }

  Diagnostic blame(int index) const {
    const auto& n = graph_.node(index);
    std::string built_in = exported_ ? "batch " + std::to_string(exported_) : "a batch";
    return {"baked-batch",
            describe(n, index) + " has " + built_in + " built in (its target shape is " + to_string(*target_of(index)) +
                "): batch " + std::to_string(batch_) + " cannot be analysed",
            name_of(n), "",
            "export with dynamic axes, e.g. torch.onnx.export(..., dynamic_axes={\"input\": {0: \"batch\"}})" +
                (exported_ ? ", or use batch " + std::to_string(exported_) : std::string())};
  }

 private:
  // The constant shape that a Reshape, Expand or ConstantOfShape goes by, unless it was computed from shapes.
  std::optional<Shape> target_of(int index) const {
    const auto& n = graph_.node(index);
    int at = n.op_type() == "ConstantOfShape" ? 0 : n.op_type() == "Reshape" || n.op_type() == "Expand" ? 1 : -1;
    if (at < 0 || !n.domain().empty() || n.input_size() <= at || inferred_.from_shapes.count(n.input(at))) return {};
    auto folded = inferred_.values.find(n.input(at));
    auto stored = stored_.find(n.input(at));
    const ::onnx::TensorProto* t = folded != inferred_.values.end() ? &folded->second
                                   : stored != stored_.end()        ? stored->second
                                                                    : nullptr;
    auto value = t ? decode(*t) : std::nullopt;
    return value && !value->floating() ? std::optional<Shape>(value->ints) : std::nullopt;
  }

  // First Reshape that takes a batch of N in front and, its target being explicit there, leaves one that N is not in.
  int first_silent() const {
    for (int i = 0; i < graph_.node_size(); ++i) {
      const auto& n = graph_.node(i);
      if (n.op_type() != "Reshape") continue;
      auto target = target_of(i);
      Shape from;
      auto type = inferred_.types.find(n.input(0));
      if (!target || target->empty() || type == inferred_.types.end() || !known_shape(type->second, from)) continue;
      bool batch_in_front = !from.empty() && from[0] == batch_;
      if (batch_in_front && target->front() > 0 && target->front() % batch_ != 0) return i;
    }
    return -1;
  }

  // Nearest ancestor whose explicit target starts with the exported batch.
  int nearest_baked(int from) const {
    std::vector<bool> seen(static_cast<size_t>(graph_.node_size()), false);
    std::vector<int> level = {from};
    while (!level.empty()) {
      std::vector<int> next;
      for (int n : level)
        for_each_read(graph_.node(n), [&](const std::string& name) {
          auto found = producer_.find(name);
          if (found == producer_.end() || seen[found->second]) return;
          seen[found->second] = true;
          next.push_back(found->second);
        });
      std::sort(next.begin(), next.end());
      for (int n : next) {
        auto target = target_of(n);
        if (target && !target->empty() && target->front() == std::max<int64_t>(exported_, 1)) return n;
      }
      level = std::move(next);
    }
    return -1;
  }

  const ::onnx::GraphProto& graph_;
  const Inferred& inferred_;
  int64_t exported_, batch_;
  std::unordered_map<std::string, const ::onnx::TensorProto*> stored_;
  std::unordered_map<std::string, int> producer_;
};

}  // namespace

int64_t exported_batch(const ::onnx::GraphProto& graph, const std::unordered_set<std::string>& stored) {
  for (const auto& v : graph.input()) {
    const auto& shape = v.type().tensor_type().shape();
    if (!stored.count(v.name()) && shape.dim_size() > 0 && shape.dim(0).dim_value() > 0)
      return shape.dim(0).dim_value();
  }
  return 0;
}

void explain_baked_batch(const ::onnx::GraphProto& graph, const Inferred& inferred, int64_t exported, int64_t batch,
                         std::vector<Diagnostic>& problems) {
  Search search(graph, inferred, exported, batch);
  int node = search.run();
  if (node >= 0) problems = {search.blame(node)};
}

}  // namespace monet
