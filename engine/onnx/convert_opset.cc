#include "engine/onnx/convert_opset.h"

#include <onnx/version_converter/convert.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "engine/onnx/normalise.h"

namespace monet {

namespace {

using ::onnx::GraphProto;
using ::onnx::ModelProto;
using ::onnx::NodeProto;

constexpr int kPieceNodes = 128;

class PiecewiseConverter {
 public:
  explicit PiecewiseConverter(ModelProto& model) : model_(model), graph_(*model.mutable_graph()) {
    for (const auto* list : {&graph_.input(), &graph_.value_info(), &graph_.output()})
      for (const auto& v : *list) declared_.emplace(v.name(), &v.type());
    add_names(graph_, names_);
    for (const auto& t : graph_.initializer()) stored_.emplace(t.name(), &t);
    for (int i = 0; i < graph_.node_size(); ++i) {
      const NodeProto& n = graph_.node(i);
      if (n.op_type() == "Constant" && n.domain().empty()) constants_.emplace(n.output(0), i);
    }
  }

  void run() {
    for (int begin = 0; begin < graph_.node_size(); begin += kPieceNodes)
      convert(begin, std::min(begin + kPieceNodes, graph_.node_size()));
    graph_.mutable_node()->Swap(&nodes_);
    auto& initializers = *graph_.mutable_initializer();
    initializers.erase(std::remove_if(initializers.begin(), initializers.end(),
                                      [&](const auto& t) { return used_.count(t.name()) && !left_.count(t.name()); }),
                       initializers.end());
    for (auto& t : added_) initializers.Add()->Swap(&t);
    for (auto& import : *model_.mutable_opset_import())
      if (import.domain().empty()) import.set_version(kOpset);
    use_raw_data(graph_);
  }

 private:
  // Nodes [begin, end) as a model of their own. Adapters look at constants: those from elsewhere come along.
  void convert(int begin, int end) {
    // Building its table of adapters takes longer than converting a ResNet.
    static const ::onnx::version_conversion::DefaultVersionConverter converter;
    ModelProto piece;
    piece.set_ir_version(model_.ir_version());
    *piece.mutable_opset_import() = model_.opset_import();
    GraphProto& graph = *piece.mutable_graph();
    std::unordered_set<std::string> known;
    for (int i = begin; i < end; ++i) known.insert(graph_.node(i).output().begin(), graph_.node(i).output().end());
    for (int i = begin; i < end; ++i)
      for_each_read(graph_.node(i), [&](const std::string& name) {
        if (known.insert(name).second) take(name, graph);
      });
    for (int i = begin; i < end; ++i) {
      *graph.add_node() = graph_.node(i);
      for (const std::string& output : graph_.node(i).output()) {
        if (output.empty()) continue;
        declare(output, graph.add_output());  // which makes sure that adapters keep its name
      }
    }
    int from = opset_of(model_);
    put(*converter.convert_version(piece, ::onnx::OpSetID(from), ::onnx::OpSetID(kOpset)).mutable_graph(), known);
  }

  // Makes a tensor from outside known to a piece.
  void take(const std::string& name, GraphProto& graph) {
    if (auto t = stored_.find(name); t != stored_.end()) {
      *graph.add_initializer() = *t->second;
      used_.insert(name);
    } else if (auto constant = constants_.find(name); constant != constants_.end()) {
      *graph.add_node() = graph_.node(constant->second);
    } else {
      declare(name, graph.add_input());
    }
  }

  void declare(const std::string& name, ::onnx::ValueInfoProto* value) const {
    value->set_name(name);
    if (auto type = declared_.find(name); type != declared_.end()) *value->mutable_type() = *type->second;
  }

  // Appends a converted piece; `known` names were there before, others are new and may be in use elsewhere.
  void put(GraphProto& piece, const std::unordered_set<std::string>& known) {
    std::unordered_map<std::string, std::string> renamed;
    auto rename = [&](const std::string& name) {
      if (!name.empty() && !known.count(name)) renamed[name] = names_.unique(name);
    };
    for (const auto& t : piece.initializer()) rename(t.name());
    for (const auto& n : piece.node())
      for (const std::string& output : n.output()) rename(output);
    auto use_new = [&](std::string& name) {
      if (auto at = renamed.find(name); at != renamed.end()) name = at->second;
    };
    for (auto& t : *piece.mutable_initializer()) {
      if (known.count(t.name())) {
        left_.insert(t.name());
      } else {
        use_new(*t.mutable_name());
        added_.emplace_back().Swap(&t);
      }
    }
    for (auto& n : *piece.mutable_node()) {
      for (std::string& name : *n.mutable_input()) use_new(name);
      for (std::string& name : *n.mutable_output()) use_new(name);
      bool copy = n.op_type() == "Constant" && n.domain().empty() && !made_.insert(n.output(0)).second;
      if (!copy) nodes_.Add()->Swap(&n);
    }
  }

  ModelProto& model_;
  GraphProto& graph_;
  std::unordered_map<std::string, const ::onnx::TypeProto*> declared_;
  Names names_;
  std::unordered_map<std::string, const ::onnx::TensorProto*> stored_;
  std::unordered_map<std::string, int> constants_;  // Constant nodes, by output
  google::protobuf::RepeatedPtrField<NodeProto> nodes_;
  std::vector<::onnx::TensorProto> added_;
  std::unordered_set<std::string> used_, left_;  // initializers that pieces read, and those left after conversion
  std::unordered_set<std::string> made_;         // outputs of Constants
};

}  // namespace

void convert_opset(ModelProto& model) { PiecewiseConverter(model).run(); }

}  // namespace monet
