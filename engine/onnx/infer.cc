#include "engine/onnx/infer.h"

#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <deque>

#include "engine/onnx/fold.h"
#include "engine/onnx/foreign.h"

namespace monet {

namespace {

using ::onnx::NodeProto;
using ::onnx::OpSchema;
using ::onnx::TensorProto;
using ::onnx::TypeProto;

std::string one_line(std::string text) {
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  return text;
}

class Pass {
 public:
  Pass(::onnx::ModelProto& model, bool fold_nodes, bool open_dims)
      : graph_(*model.mutable_graph()),
        fold_nodes_(fold_nodes),
        open_dims_(open_dims),
        context_(types_, opsets(model), &symbols_, functions_, ::onnx::OpSchemaRegistry::Instance(), &shape_data_,
                 kIrVersion) {
    declared_ = declared_types(graph_);
    result_.types.reserve(static_cast<size_t>(graph_.node_size() + graph_.input_size()));
    for (auto& v : *graph_.mutable_input()) set_type(v.name(), v.type());
    for (const auto& t : graph_.initializer()) {
      TypeProto type;
      set_tensor_type(&type, t.data_type(), shape_of(t));
      set_type(t.name(), type);
      data_[t.name()] = &t;
      if (is_float(dtype_of(t.data_type()))) weights_.insert(t.name());
    }
  }

  Inferred run() {
    for (int i = 0; i < graph_.node_size(); ++i) process(*graph_.mutable_node(i), i);
    return std::move(result_);
  }

 private:
  const std::unordered_map<std::string, int>& opsets(const ::onnx::ModelProto& model) {
    for (const auto& import : model.opset_import()) opsets_[import.domain()] = static_cast<int>(import.version());
    return opsets_;
  }

  void set_type(const std::string& name, const TypeProto& type) {
    TypeProto& own = result_.types[name];  // addresses stay valid: node-based map
    own = type;
    types_[name] = &own;
  }

  void problem(const NodeProto& n, int index, const std::string& code, const std::string& what,
               const std::string& tensor, const std::string& hint) {
    result_.problems.push_back({code, describe(n, index) + " " + what, name_of(n), tensor, hint});
    result_.failed.push_back(index);
    for (const auto& output : n.output()) unknown_.insert(output);
  }

  void process(NodeProto& n, int index) {
    bool blocked = false;  // an input is unknown because of a problem already reported
    for_each_read(n, [&](const std::string& name) { blocked = blocked || unknown_.count(name); });
    const OpSchema* schema = ::onnx::OpSchemaRegistry::Schema(n.op_type(), opsets_[n.domain()], n.domain());
    if (blocked) {
      for (const auto& output : n.output()) unknown_.insert(output);
      return;
    }
    if (!schema) return take_declared(n, index);
    if (!check_weight_rank(n, index) || !infer_types(n, index, *schema) || open_dims_) return;
    for (const auto& output : n.output()) {
      if (output.empty()) continue;
      Shape shape;
      auto type = result_.types.find(output);
      bool typed = type != result_.types.end() && type->second.value_case() != TypeProto::VALUE_NOT_SET;
      if (typed && !type->second.has_tensor_type()) {
        problem(n, index, "unsupported-type",
                "makes \"" + output + "\", which is a sequence, map or optional, no tensor", output,
                "export the model without sequences");
        return;
      }
      if (!typed || !known_shape(type->second, shape)) {
        if (!n.domain().empty() && declare(output)) continue;  // no shape rule, or one that stops short
        problem(n, index, "unknown-shape", "makes tensor \"" + output + "\" of a shape that depends on the data",
                output, "export with fixed shapes, or cut the model before this operator");
        return;
      }
    }
    if (fold_nodes_) try_fold(n, *schema);
  }

  bool declare(const std::string& output) {
    auto declared = declared_.find(output);
    Shape shape;
    if (declared == declared_.end() || !known_shape(*declared->second, shape)) return false;
    set_type(output, *declared->second);
    return true;
  }

  // A node of an operator that nobody knows makes what the file says that it makes.
  void take_declared(const NodeProto& n, int index) {
    for (const auto& output : n.output())
      if (!output.empty() && !declare(output) && !open_dims_)
        return problem(n, index, "unknown-shape",
                       "makes tensor \"" + output + "\" of a shape that the file leaves open", output,
                       "export with fixed shapes, or cut the model before this operator");
  }

  // ONNX's inference of convolutions reads as many dimensions of the weight as the input has, without looking.
  bool check_weight_rank(const NodeProto& n, int index) {
    if (!n.domain().empty()) return true;
    const std::string& op = n.op_type();
    int at = op == "QLinearConv"                                                                  ? 3
             : op == "Conv" || op == "ConvTranspose" || op == "ConvInteger" || op == "DeformConv" ? 1
                                                                                                  : 0;
    if (at == 0 || n.input_size() <= at) return true;
    auto rank = [&](int i) {
      auto type = result_.types.find(n.input(i));
      bool shaped = type != result_.types.end() && type->second.tensor_type().has_shape();
      return shaped ? type->second.tensor_type().shape().dim_size() : -1;
    };
    int input = rank(0), weight = rank(at);
    if (input < 0 || weight < 0 || input == weight) return true;
    problem(n, index, "shape-error",
            "has a weight of " + std::to_string(weight) + " dimensions for an input of " + std::to_string(input),
            n.input(at), "");
    return false;
  }

  bool infer_types(NodeProto& n, int index, const OpSchema& schema) {
    bool is_call = !schema.has_type_and_shape_inference_function() && schema.HasFunction();
    // ONNX's inference of STFT takes an absent `onesided` for 0, its schema for 1.
    if (is_call || (n.op_type() == "STFT" && n.domain().empty())) add_default_attributes(schema, n);
    ::onnx::shape_inference::InferenceContextImpl context(n, types_, data_, sparse_, options_, &shape_data_, &context_);
    try {
      if (schema.has_type_and_shape_inference_function()) {
        schema.GetTypeAndShapeInferenceFunction()(context);
      } else if (is_call) {
        ::onnx::shape_inference::DataValueMap inner;
        ::onnx::shape_inference::InferShapeForFunctionNode(*schema.GetFunction(), ::onnx::OpSchemaRegistry::Instance(),
                                                           context, options_, functions_, &symbols_, &inner);
      }
      // ONNX infers it through its body alone, which ends in a Reshape to X's own shape: a value, not followed here.
      if (n.domain().empty() && n.op_type() == "GroupNormalization")
        ::onnx::propagateShapeAndTypeFromFirstInput(context);
      schema.CheckInputOutputType(context);
      for (int i = 0; i < n.output_size(); ++i)
        if (!n.output(i).empty()) set_type(n.output(i), *context.getOutputType(i));
    } catch (const std::exception& error) {
      problem(n, index, "shape-error", "does not fit its inputs: " + one_line(error.what()), "", "");
      return false;
    }
    if (open_dims_) return true;
    complete_compress(n);
    return check_reshape(n, index);
  }

  // ONNX infers no shape for Compress, even where the condition is known. Beyond its end nothing is selected.
  void complete_compress(const NodeProto& n) {
    Shape from;
    if (n.op_type() != "Compress" || !n.domain().empty() || !known_shape(result_.types[n.input(0)], from)) return;
    const Value* condition = value_of(n.input(1));
    const auto* given = find_attribute(n, "axis");
    int64_t rank = static_cast<int64_t>(from.size()), axis = given ? given->i() : 0;
    if (!given) from = {elements(from)};
    if (axis < 0) axis += rank;
    if (!condition || axis < 0 || axis >= static_cast<int64_t>(from.size())) return;
    int64_t size = std::min(condition->size(), from[axis]);
    from[axis] =
        std::count_if(condition->ints.begin(), condition->ints.begin() + size, [](int64_t v) { return v != 0; });
    TypeProto type;
    set_tensor_type(&type, result_.types[n.input(0)].tensor_type().elem_type(), from);
    set_type(n.output(0), type);
  }

  // ONNX takes an explicit Reshape target as it is, fitting or not.
  bool check_reshape(const NodeProto& n, int index) {
    if (n.op_type() != "Reshape" || !n.domain().empty()) return true;
    Shape from, to;
    if (!known_shape(result_.types[n.input(0)], from) || !known_shape(result_.types[n.output(0)], to)) return true;
    if (elements(from) == elements(to)) return true;
    problem(n, index, "shape-error", "cannot reshape " + to_string(from) + " into " + to_string(to), n.output(0), "");
    return false;
  }

  void try_fold(const NodeProto& n, const OpSchema& schema) {
    if (!n.domain().empty() || n.output_size() == 0) return;
    if (n.op_type() == "Constant" && n.attribute_size() == 1 && n.attribute(0).has_t() &&
        bits(dtype_of(n.attribute(0).t().data_type())) > 0) {  // of any type but strings
      TensorProto& stored = result_.values[n.output(0)] = n.attribute(0).t();
      stored.set_name(n.output(0));
      data_[n.output(0)] = &stored;
      return;
    }
    std::vector<Value> outputs;
    bool derived = false;
    if (n.op_type() == "Shape" || n.op_type() == "Size") {
      Shape shape;
      if (!known_shape(result_.types[n.input(0)], shape)) return;
      outputs.push_back(n.op_type() == "Shape" ? shape_value(n, shape) : size_value(shape));
      derived = true;
    } else {
      if (!can_fold(n)) return;
      std::vector<const Value*> inputs;
      bool weights = false;
      for (int i = 0; i < n.input_size(); ++i) {
        const std::string& name = n.input(i);
        if (name.empty()) {
          int formal = std::min(i, static_cast<int>(schema.inputs().size()) - 1);
          if (formal < 0 || schema.inputs()[formal].GetOption() != OpSchema::Optional) return;
          inputs.push_back(nullptr);
          continue;
        }
        const Value* value = value_of(name);
        if (!value) return;
        inputs.push_back(value);
        weights = weights || weights_.count(name);
        derived = derived || result_.from_shapes.count(name);
      }
      if (weights && !derived) return;
      auto folded = fold(n, inputs);
      if (!folded || static_cast<int>(folded->size()) < n.output_size()) return;
      outputs = std::move(*folded);
    }
    for (int i = 0; i < n.output_size(); ++i) {
      const std::string& name = n.output(i);
      if (name.empty()) continue;
      Shape inferred;
      known_shape(result_.types[name], inferred);
      if (outputs[i].shape != inferred) return;  // inference rules
    }
    for (int i = 0; i < n.output_size(); ++i) {
      const std::string& name = n.output(i);
      if (name.empty()) continue;
      TensorProto& stored = result_.values[name] = encode(outputs[i], name);
      data_[name] = &stored;
      if (derived) result_.from_shapes.insert(name);
      decoded_[name] = std::move(outputs[i]);
    }
  }

  static Value shape_value(const NodeProto& n, const Shape& shape) {
    int64_t rank = static_cast<int64_t>(shape.size());
    auto bound = [&](const char* name, int64_t otherwise) {
      const auto* a = find_attribute(n, name);
      int64_t at = a ? a->i() : otherwise;
      if (at < 0) at += rank;
      return std::max<int64_t>(0, std::min(at, rank));
    };
    int64_t start = bound("start", 0), end = bound("end", rank);
    Value v;
    if (start < end) v.ints.assign(shape.begin() + start, shape.begin() + end);
    v.shape = {static_cast<int64_t>(v.ints.size())};
    return v;
  }

  static Value size_value(const Shape& shape) {
    Value v;
    v.ints = {elements(shape)};
    return v;
  }

  const Value* value_of(const std::string& name) {
    auto known = decoded_.find(name);
    if (known != decoded_.end()) return &known->second;
    auto stored = data_.find(name);
    if (stored == data_.end()) return nullptr;
    auto value = decode(*stored->second);
    return value ? &(decoded_[name] = std::move(*value)) : nullptr;
  }

  ::onnx::GraphProto& graph_;
  bool fold_nodes_;
  bool open_dims_;
  ::onnx::ShapeInferenceOptions options_{/*check_type=*/true, /*strict_mode=*/1, /*data_propagation=*/false};
  std::unordered_map<std::string, int> opsets_;
  std::unordered_map<std::string, TypeProto*> types_;
  std::unordered_map<std::string, const TensorProto*> data_;
  std::unordered_map<std::string, const TypeProto*> declared_;
  std::unordered_map<std::string, const ::onnx::SparseTensorProto*> sparse_;
  ::onnx::shape_inference::DataValueMap shape_data_;
  ::onnx::shape_inference::SymbolTableImpl symbols_;
  ::onnx::shape_inference::ModelLocalFunctionsMap functions_;
  ::onnx::shape_inference::GraphInferenceContext context_;
  std::unordered_map<std::string, Value> decoded_;
  std::unordered_set<std::string> weights_, unknown_;
  Inferred result_;
};

}  // namespace

bool known_shape(const TypeProto& type, Shape& shape) {
  shape.clear();
  if (!type.has_tensor_type() || !type.tensor_type().has_shape() || type.tensor_type().elem_type() == 0) return false;
  for (const auto& d : type.tensor_type().shape().dim()) {
    if (!d.has_dim_value() || d.dim_value() < 0) return false;
    shape.push_back(d.dim_value());
  }
  return true;
}

Inferred infer(::onnx::ModelProto& model, bool fold_nodes) { return Pass(model, fold_nodes, false).run(); }

void add_ranks(::onnx::ModelProto& model) {
  Inferred inferred = Pass(model, false, true).run();
  ::onnx::GraphProto& graph = *model.mutable_graph();
  std::unordered_set<std::string> typed;
  for (const auto* list : {&graph.input(), &graph.output(), &graph.value_info()})
    for (const auto& v : *list) typed.insert(v.name());
  for (const auto& n : graph.node())
    for (const auto& output : n.output()) {
      auto type = inferred.types.find(output);
      if (type == inferred.types.end() || !typed.insert(output).second) continue;
      auto* info = graph.add_value_info();
      info->set_name(output);
      *info->mutable_type() = type->second;
    }
}

}  // namespace monet
