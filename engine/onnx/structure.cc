#include "engine/onnx/structure.h"

#include <map>
#include <set>

#include "engine/onnx/foreign.h"
#include "engine/onnx/metadata.h"

namespace monet {

namespace {

// `declared`: outputs of nodes whose shape only the file knows.
void strip(::onnx::GraphProto& graph, const std::set<std::string>& declared) {
  google::protobuf::RepeatedPtrField<::onnx::ValueInfoProto> kept;
  for (auto& v : *graph.mutable_value_info()) {
    bool needed = declared.count(v.name()) > 0;
    if (v.metadata_props().empty() && !needed) continue;
    if (!needed) v.clear_type();
    kept.Add()->Swap(&v);
  }
  graph.mutable_value_info()->Swap(&kept);
  for (auto& n : *graph.mutable_node())
    for (auto& a : *n.mutable_attribute()) {
      if (a.has_g()) strip(*a.mutable_g(), {});
      for (auto& g : *a.mutable_graphs()) strip(g, {});
    }
}

class Shortener {
 public:
  explicit Shortener(::onnx::GraphProto& graph) : graph_(graph) {}

  void run() {
    for (const auto& v : graph_.input()) taken_.insert(v.name());
    for (const auto& v : graph_.output()) taken_.insert(v.name());
    collect_stored(graph_);
    rename(graph_, {}, true);
  }

 private:
  using Names = std::map<std::string, std::string>;

  static bool stores(const ::onnx::NodeProto& n) {
    const auto* value = n.op_type() == "Constant" ? find_attribute(n, "value") : nullptr;
    return value && value->has_t() && !has_payload(value->t());
  }

  void collect_stored(const ::onnx::GraphProto& graph) {
    for (const auto& t : graph.initializer()) taken_.insert(t.name());
    for (const auto& t : graph.sparse_initializer()) taken_.insert(t.values().name());
    for (const auto& n : graph.node()) {
      if (stores(n)) taken_.insert(n.output().begin(), n.output().end());
      for (const auto& a : n.attribute()) {
        if (a.has_g()) collect_stored(a.g());
        for (const auto& g : a.graphs()) collect_stored(g);
      }
    }
  }

  std::string fresh() {
    static constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    constexpr uint64_t kCount = sizeof kLetters - 1;
    std::string name;
    do {
      name.clear();
      for (uint64_t n = ++counter_; n > 0; n = (n - 1) / kCount) name.insert(name.begin(), kLetters[(n - 1) % kCount]);
    } while (taken_.count(name));
    return name;
  }

  void define(std::string* name, Names& names) {
    if (name->empty() || taken_.count(*name)) return;
    auto [at, is_new] = names.emplace(*name, "");
    if (is_new) at->second = fresh();
    *name = at->second;
  }

  static void use(std::string* name, const Names& names) {
    auto found = names.find(*name);
    if (found != names.end()) *name = found->second;
  }

  // `names` of the enclosing graphs; definitions come first because nodes may be unsorted.
  void rename(::onnx::GraphProto& graph, Names names, bool is_main) {
    if (!is_main)
      for (auto& v : *graph.mutable_input()) define(v.mutable_name(), names);
    for (auto& n : *graph.mutable_node())
      for (auto& output : *n.mutable_output()) define(&output, names);
    for (auto& n : *graph.mutable_node()) {
      n.clear_name();
      for (auto& input : *n.mutable_input()) use(&input, names);
      for (auto& entry : *n.mutable_metadata_props())
        if (entry.key() == std::string(kMetadataPrefix) + kTargetKey) use(entry.mutable_value(), names);
      for (auto& a : *n.mutable_attribute()) {
        if (a.has_g()) rename(*a.mutable_g(), names, false);
        for (auto& g : *a.mutable_graphs()) rename(g, names, false);
      }
    }
    for (auto* list : {graph.mutable_input(), graph.mutable_output(), graph.mutable_value_info()})
      for (auto& v : *list) {
        if (list != graph.mutable_input()) use(v.mutable_name(), names);
        for (auto& entry : *v.mutable_metadata_props())
          if (entry.key() == std::string(kMetadataPrefix) + kOfKey) use(entry.mutable_value(), names);
      }
  }

  ::onnx::GraphProto& graph_;
  std::set<std::string> taken_;
  uint64_t counter_ = 0;
};

}  // namespace

void strip(::onnx::ModelProto& model) {
  std::set<std::string> declared;
  for (const auto& n : model.graph().node())
    if (is_foreign(model, n.domain())) declared.insert(n.output().begin(), n.output().end());
  strip(*model.mutable_graph(), declared);
  for (auto& f : *model.mutable_functions()) f.clear_value_info();
}

void shorten_names(::onnx::ModelProto& model) { Shortener(*model.mutable_graph()).run(); }

}  // namespace monet
