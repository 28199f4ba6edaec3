#include "engine/onnx/inference_export.h"

#include <algorithm>
#include <unordered_map>

namespace monet {

namespace {

bool is_normalisation(const std::string& op) {
  return op == "BatchNormalization" || op == "InstanceNormalization" || op == "GroupNormalization" ||
         op == "LayerNormalization";
}

bool named_by_a_tool(const std::string& name) {
  if (std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; })) return true;
  for (const char* part : {"onnx::", "const_fold", "BatchNorm", "batchnorm", "batch_norm", "_bn"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}

// Identity nodes give a stored tensor further names: PyTorch shares equal tensors that way.
std::string stored_name(const std::string& name, const std::unordered_map<std::string, std::string>& aliases) {
  auto found = aliases.find(name);
  return found == aliases.end() ? name : found->second;
}

std::unordered_map<std::string, std::string> find_aliases(const ::onnx::GraphProto& graph) {
  std::unordered_map<std::string, std::string> aliases;
  for (const auto& n : graph.node())
    if (n.op_type() == "Identity" && n.domain().empty()) aliases[n.output(0)] = stored_name(n.input(0), aliases);
  return aliases;
}

}  // namespace

std::vector<int> folded_convs(const ::onnx::GraphProto& graph, const std::vector<Stored>& stored) {
  std::unordered_set<std::string> names;
  for (const Stored& s : stored) names.insert(s.name);
  auto aliases = find_aliases(graph);
  std::vector<int> convs;
  for (int i = 0; i < graph.node_size(); ++i) {
    const auto& n = graph.node(i);
    if (!n.domain().empty()) continue;
    if (is_normalisation(n.op_type())) return {};
    if (n.op_type() != "Conv" || n.input_size() != 3) continue;
    std::string weight = stored_name(n.input(1), aliases), bias = stored_name(n.input(2), aliases);
    if (names.count(weight) && names.count(bias) && named_by_a_tool(bias)) convs.push_back(i);
  }
  return convs;
}

Diagnostic inference_export_warning(int convs) {
  return {
      "inference-export",
      "exported for inference: " + std::to_string(convs) +
          " convolutions have a BatchNormalization folded in, and dropouts are gone; a training step keeps up to twice "
          "the activations shown",
      "", "",
      "export with torch.onnx.export(model, x, \"model.onnx\", training=torch.onnx.TrainingMode.TRAINING, "
      "do_constant_folding=False), or assume a BatchNormalization after each of them"};
}

void assume_batch_norms(::onnx::GraphProto& graph, const std::vector<int>& convs, std::vector<Stored>& stored) {
  auto aliases = find_aliases(graph);
  Names names;
  add_names(graph, names);
  std::unordered_map<std::string, const ::onnx::TypeProto*> types;
  std::unordered_map<std::string, Shape> shapes;  // of stored tensors with values
  std::unordered_map<std::string, int32_t> dtypes;
  for (const auto& v : graph.input()) types[v.name()] = &v.type();
  for (const auto& t : graph.initializer()) {
    shapes[t.name()] = shape_of(t);
    dtypes[t.name()] = t.data_type();
  }

  google::protobuf::RepeatedPtrField<::onnx::NodeProto> nodes;
  size_t next = 0;
  std::vector<std::pair<std::string, std::pair<int64_t, int32_t>>> inputs;  // name, channels and type: added at the end
  for (int i = 0; i < graph.node_size(); ++i) {
    ::onnx::NodeProto* conv = nodes.Add();
    conv->Swap(graph.mutable_node(i));
    if (next >= convs.size() || convs[next] != i) continue;
    ++next;
    // Channels from the bias, [C].
    const std::string bias = stored_name(conv->input(2), aliases);
    int64_t channels = 0;
    int32_t dtype = 0;
    if (auto stored_value = shapes.find(bias); stored_value != shapes.end()) {
      channels = stored_value->second.size() == 1 ? stored_value->second[0] : 0;
      dtype = dtypes[bias];
    } else if (auto type = types.find(bias); type != types.end()) {
      const auto& shape = type->second->tensor_type().shape();
      channels = shape.dim_size() == 1 ? shape.dim(0).dim_value() : 0;
      dtype = type->second->tensor_type().elem_type();
    }
    if (channels < 1) continue;
    std::string y = conv->output(0), raw = names.unique(y + "_conv");
    conv->mutable_input()->RemoveLast();
    conv->set_output(0, raw);
    ::onnx::NodeProto* norm = nodes.Add();
    norm->set_op_type("BatchNormalization");
    if (!conv->name().empty()) norm->set_name(conv->name() + "_bn");
    norm->add_input(raw);
    for (const char* part : {"_bn_scale", "_bn_bias", "_bn_mean", "_bn_var"}) {
      std::string name = names.unique(y + part);
      norm->add_input(name);
      inputs.push_back({name, {channels, dtype}});
      bool statistic = norm->input_size() > 3;
      stored.push_back({name, statistic ? TensorKind::buffer : TensorKind::parameter});
    }
    norm->add_output(y);
    norm->add_output(names.unique(y + "_bn_running_mean"));
    norm->add_output(names.unique(y + "_bn_running_var"));
    auto* mode = norm->add_attribute();
    mode->set_name("training_mode");
    mode->set_type(::onnx::AttributeProto::INT);
    mode->set_i(1);
  }
  graph.mutable_node()->Swap(&nodes);
  for (const auto& [name, type] : inputs) {
    auto* v = graph.add_input();
    v->set_name(name);
    set_tensor_type(v->mutable_type(), type.second, {type.first});
  }
}

}  // namespace monet
