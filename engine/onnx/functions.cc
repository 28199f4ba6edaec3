#include "engine/onnx/functions.h"

#include <onnx/inliner/inliner.h>

#include <map>
#include <string>

namespace monet {

namespace {

constexpr int64_t kMaxNodes = 1 << 20;  // after inlining; the largest real models have some 10^4

using Key = std::pair<std::string, std::string>;

// Nodes that each function becomes, counted without building them.
class Counter {
 public:
  explicit Counter(const ::onnx::ModelProto& model) {
    for (const auto& f : model.functions())
      if (!functions_.emplace(Key{f.domain(), f.name()}, &f).second)
        throw Refusal({"bad-function", "function " + f.domain() + "." + f.name() + " is defined twice", "", "",
                       "export the model again"});
  }

  int64_t nodes(const google::protobuf::RepeatedPtrField<::onnx::NodeProto>& list) {
    int64_t total = 0;
    for (const auto& n : list) {
      total += call(n);
      for (const auto& a : n.attribute()) {
        if (a.has_g()) total += nodes(a.g().node());
        for (const auto& g : a.graphs()) total += nodes(g.node());
      }
      if (total > kMaxNodes)
        throw Refusal({"too-large", "the model's functions expand to more than " + std::to_string(kMaxNodes) + " nodes",
                       "", "", ""});
    }
    return total;
  }

 private:
  int64_t call(const ::onnx::NodeProto& n) {
    Key key{n.domain(), n.op_type()};
    auto f = functions_.find(key);
    if (f == functions_.end()) return 1;
    auto [at, fresh] = counts_.emplace(key, kOpen);
    if (!fresh && at->second != kOpen) return check(n, *f->second), at->second;
    if (!fresh || ++depth_ > kMaxDepth)
      throw Refusal({"recursive-function", "function " + key.first + "." + key.second + " calls itself", name_of(n), "",
                     "ONNX functions must not recurse"});
    check(n, *f->second);
    int64_t count = nodes(f->second->node());
    --depth_;
    counts_[key] = count;
    return count;
  }

  static void check(const ::onnx::NodeProto& n, const ::onnx::FunctionProto& f) {
    if (n.input_size() > f.input_size() || n.output_size() > f.output_size())
      throw Refusal({"bad-node", describe(n, 0) + " passes more inputs or outputs than its function has", name_of(n),
                     "", "export the model again"});
  }

  static constexpr int64_t kOpen = -1;   // being counted
  static constexpr int kMaxDepth = 100;  // calls within calls: the inliner recurses
  std::map<Key, const ::onnx::FunctionProto*> functions_;
  std::map<Key, int64_t> counts_;
  int depth_ = 0;
};

}  // namespace

void inline_functions(::onnx::ModelProto& model) {
  if (model.functions().empty()) return;
  Counter(model).nodes(model.graph().node());
  try {
    ::onnx::inliner::InlineLocalFunctions(model, true);
  } catch (const std::exception& error) {
    throw Refusal({"bad-function", std::string("the model's functions cannot be inlined: ") + error.what(), "", "",
                   "export without functions"});
  }
  if (!model.functions().empty())
    throw Refusal({"bad-function",
                   "function " + model.functions(0).domain() + "." + model.functions(0).name() +
                       " needs other operator versions than the model has",
                   "", "", "export without functions"});
}

}  // namespace monet
