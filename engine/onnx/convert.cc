#include "engine/onnx/convert.h"

#include <algorithm>
#include <map>

#include "engine/onnx/convert_opset.h"
#include "engine/onnx/infer.h"
#include "engine/onnx/normalise.h"

namespace monet {

namespace {

constexpr int kBatchNormTrainingMode = 14;  // opset that made training mode an attribute
constexpr int kIsTestRemoved = 7;           // opset that dropped is_test
constexpr int kShapesNeeded = 13;           // adapters up to this opset look at ranks
constexpr int kSlopesBroadcast = 7;         // opset from which PRelu broadcasts its slopes as numpy would

void remove_attribute(::onnx::NodeProto& n, const std::string& name) {
  auto& list = *n.mutable_attribute();
  list.erase(std::remove_if(list.begin(), list.end(), [&](const auto& a) { return a.name() == name; }), list.end());
}

void cut(::onnx::GraphProto& graph, int opset, bool is_main, std::vector<TrainingNorm>& norms) {
  for (auto& n : *graph.mutable_node()) {
    for (auto& a : *n.mutable_attribute()) {
      if (a.has_g()) cut(*a.mutable_g(), opset, false, norms);
      for (auto& g : *a.mutable_graphs()) cut(g, opset, false, norms);
    }
    if (!n.domain().empty()) continue;
    if (opset < kIsTestRemoved && (n.op_type() == "BatchNormalization" || n.op_type() == "Dropout"))
      remove_attribute(n, "is_test");
    if (n.op_type() != "BatchNormalization" || n.output_size() < 2) continue;
    TrainingNorm norm;
    norm.output = n.output(0);
    auto own = [&](int i) {  // in old files outputs 1 and 2 may be the inputs' own names
      bool is_input =
          i < n.output_size() && std::find(n.input().begin(), n.input().end(), n.output(i)) != n.input().end();
      return i < n.output_size() && !is_input ? n.output(i) : std::string();
    };
    norm.mean = own(1);
    norm.variance = own(2);
    while (n.output_size() > 1) n.mutable_output()->RemoveLast();
    if (is_main) {
      auto& outputs = *graph.mutable_output();
      for (const std::string& name : {norm.mean, norm.variance})
        for (int i = 0; i < outputs.size() && !name.empty(); ++i)
          if (outputs.Get(i).name() == name) {
            norm.graph_outputs.push_back(name);
            outputs.DeleteSubrange(i--, 1);
          }
    }
    norms.push_back(std::move(norm));
  }
}

void restore(::onnx::GraphProto& graph, const std::map<std::string, const TrainingNorm*>& norms) {
  for (auto& n : *graph.mutable_node()) {
    for (auto& a : *n.mutable_attribute()) {
      if (a.has_g()) restore(*a.mutable_g(), norms);
      for (auto& g : *a.mutable_graphs()) restore(g, norms);
    }
    if (!n.domain().empty() || n.op_type() != "BatchNormalization") continue;
    auto found = norms.find(n.output(0));
    if (found == norms.end()) continue;
    const TrainingNorm& norm = *found->second;
    n.add_output(norm.mean.empty() ? norm.output + "_running_mean" : norm.mean);
    n.add_output(norm.variance.empty() ? norm.output + "_running_var" : norm.variance);
    remove_attribute(n, "training_mode");
    auto* mode = n.add_attribute();
    mode->set_name("training_mode");
    mode->set_type(::onnx::AttributeProto::INT);
    mode->set_i(1);
  }
}

// The converter's assertions begin with the place of its source file: "/a/b.h:73: f: Assertion `x` failed: No Adapter".
std::string reason(const std::string& text) {
  const std::string message = "` failed: ", condition = "Assertion `";
  size_t start = text.find(message);
  if (start != std::string::npos) {
    start += message.size();
  } else {
    start = text.find(condition);
    if (start == std::string::npos) start = 0;
  }
  std::string line = text.substr(start, text.find('\n', start) - start);
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

// Below opset 7 PRelu takes one slope a channel, from then on slopes broadcast from the last dimension. The converter
// changes nothing there: slopes become [C, 1, ...] here. Requires ranks of all tensors (add_ranks).
void align_slopes(::onnx::GraphProto& graph) {
  std::map<std::string, const ::onnx::TensorShapeProto*> shapes;
  Names names;
  add_names(graph, names);
  for (const auto* list : {&graph.input(), &graph.value_info()})
    for (const auto& v : *list)
      if (v.type().tensor_type().has_shape()) shapes[v.name()] = &v.type().tensor_type().shape();
  std::map<std::string, Shape> stored;
  for (const auto& t : graph.initializer()) stored[t.name()] = shape_of(t);
  auto one_for_each_channel = [&](const std::string& slope) {
    if (auto t = stored.find(slope); t != stored.end()) return t->second.size() == 1 && t->second[0] != 1;
    auto type = shapes.find(slope);
    return type != shapes.end() && type->second->dim_size() == 1 && type->second->dim(0).dim_value() != 1;
  };
  google::protobuf::RepeatedPtrField<::onnx::NodeProto> nodes;
  for (auto& n : *graph.mutable_node()) {
    bool slopes = n.op_type() == "PRelu" && n.domain().empty() && one_for_each_channel(n.input(1));
    auto x = slopes ? shapes.find(n.input(0)) : shapes.end();
    if (x != shapes.end() && x->second->dim_size() > 2) {
      ::onnx::NodeProto& unsqueeze = *nodes.Add();
      unsqueeze.set_op_type("Unsqueeze");
      unsqueeze.add_input(n.input(1));
      std::string name = names.unique(n.input(1) + "_per_channel");
      unsqueeze.add_output(name);
      auto* axes = unsqueeze.add_attribute();
      axes->set_name("axes");
      axes->set_type(::onnx::AttributeProto::INTS);
      for (int axis = 1; axis < x->second->dim_size() - 1; ++axis) axes->add_ints(axis);
      n.set_input(1, name);
    }
    nodes.Add()->Swap(&n);
  }
  graph.mutable_node()->Swap(&nodes);
}

}  // namespace

std::vector<TrainingNorm> cut_training_norms(::onnx::ModelProto& model) {
  std::vector<TrainingNorm> norms;
  int opset = opset_of(model);
  if (opset > 0 && opset < kBatchNormTrainingMode) cut(*model.mutable_graph(), opset, true, norms);
  return norms;
}

void convert(::onnx::ModelProto& model, const std::vector<TrainingNorm>& norms, std::vector<Diagnostic>& warnings) {
  int opset = opset_of(model);
  model.set_ir_version(kIrVersion);
  if (opset > kOpset) {
    for (auto& import : *model.mutable_opset_import())
      if (import.domain().empty()) import.set_version(kOpset);
    warnings.push_back({"newer-opset",
                        "the model is of opset " + std::to_string(opset) + "; it is read as opset " +
                            std::to_string(kOpset) + ", the newest known",
                        "", "", ""});
  } else if (opset > 0 && opset < kOpset) {
    try {
      if (opset < kShapesNeeded) add_ranks(model);  // the adapters will say what they miss
      if (opset < kSlopesBroadcast) align_slopes(*model.mutable_graph());
      convert_opset(model);
    } catch (const std::exception& error) {
      throw Refusal({"not-convertible",
                     "the model cannot be brought from opset " + std::to_string(opset) + " to " +
                         std::to_string(kOpset) + ": " + reason(error.what()),
                     "", "", "export it with a newer opset"});
    }
  }
  std::map<std::string, const TrainingNorm*> by_output;
  for (const TrainingNorm& norm : norms) by_output[norm.output] = &norm;
  restore(*model.mutable_graph(), by_output);
  for (const TrainingNorm& norm : norms)
    for (const std::string& name : norm.graph_outputs) model.mutable_graph()->add_output()->set_name(name);
}

}  // namespace monet
