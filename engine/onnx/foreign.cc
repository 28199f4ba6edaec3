#include "engine/onnx/foreign.h"

#include <onnx/defs/schema.h>
#include <onnx/defs/tensor_proto_util.h>

#include <algorithm>

namespace monet {

namespace {

using ::onnx::InferenceContext;
using ::onnx::OpSchema;

// The first output has type and shape of input `i`.
template <size_t i>
void like_input(InferenceContext& context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, i, 0);
  if (::onnx::hasInputShape(context, i)) ::onnx::propagateShapeFromInputToOutput(context, i, 0);
}

// A matrix product whose operands may be transposed in their last two axes (a rank-1 operand has none).
void fused_matmul(InferenceContext& context) {
  ::onnx::propagateElemTypeFromInputToOutput(context, 0, 0);
  if (!::onnx::hasNInputShapes(context, 2)) return;
  if (::onnx::getAttribute(context, "transBatchA", 0) || ::onnx::getAttribute(context, "transBatchB", 0)) return;
  ::onnx::TensorShapeProto a = ::onnx::getInputShape(context, 0), b = ::onnx::getInputShape(context, 1);
  auto transpose = [](::onnx::TensorShapeProto& shape) {
    int rank = shape.dim_size();
    if (rank > 1) shape.mutable_dim()->SwapElements(rank - 2, rank - 1);
  };
  if (::onnx::getAttribute(context, "transA", 0)) transpose(a);
  if (::onnx::getAttribute(context, "transB", 0)) transpose(b);
  if (a.dim_size() < 2 || b.dim_size() < 2) fail_shape_inference("operands must be matrices");
  ::onnx::TensorShapeProto batch_a, batch_b, result;
  for (int i = 0; i < a.dim_size() - 2; ++i) *batch_a.add_dim() = a.dim(i);
  for (int i = 0; i < b.dim_size() - 2; ++i) *batch_b.add_dim() = b.dim(i);
  const auto &inner_a = a.dim(a.dim_size() - 1), &inner_b = b.dim(b.dim_size() - 2);
  if (inner_a.has_dim_value() && inner_b.has_dim_value() && inner_a.dim_value() != inner_b.dim_value())
    fail_shape_inference("inner dimensions differ");
  ::onnx::bidirectionalBroadcastShapeInference(batch_a, batch_b, result);
  *result.add_dim() = a.dim(a.dim_size() - 2);
  *result.add_dim() = b.dim(b.dim_size() - 1);
  ::onnx::updateOutputShape(context, 0, result);
}

// Of dY alone nobody can tell the input's size; the file declares it.
void type_only(InferenceContext& context) { ::onnx::propagateElemTypeFromInputToOutput(context, 0, 0); }

void add(const char* op, const std::vector<const char*>& inputs, const char* output, int optional,
         void (*infer)(InferenceContext&)) {
  OpSchema schema(op, __FILE__, __LINE__);
  schema.SetDomain(kMicrosoft).SinceVersion(1).AllowUncheckedAttributes();
  for (size_t i = 0; i < inputs.size(); ++i) {
    bool last = static_cast<int>(i) >= static_cast<int>(inputs.size()) - optional;
    bool label = std::string(inputs[i]) == "label";
    schema.Input(static_cast<int>(i), inputs[i], "", label ? "I" : "T", last ? OpSchema::Optional : OpSchema::Single);
  }
  schema.Output(0, output, "", "T");
  schema.TypeConstraint("T", {"tensor(float16)", "tensor(float)", "tensor(double)", "tensor(bfloat16)"}, "");
  schema.TypeConstraint("I", {"tensor(int32)", "tensor(int64)"}, "");
  schema.TypeAndShapeInferenceFunction(infer);
  ::onnx::RegisterSchema(std::move(schema));
}

}  // namespace

void register_foreign_schemas() {
  static const bool done = [] {
    auto& domains = ::onnx::OpSchemaRegistry::DomainToVersionRange::Instance();
    if (!domains.Map().count(kMicrosoft)) domains.AddDomainToVersion(kMicrosoft, 1, 1);
    add("ReluGrad", {"dY", "X"}, "dX", 0, like_input<1>);
    add("SoftmaxCrossEntropyLossGrad", {"dY", "log_prob", "label", "weight", "bias"}, "d_logits", 2, like_input<1>);
    add("FusedMatMul", {"A", "B"}, "Y", 0, fused_matmul);
    add("AveragePoolGrad", {"dY"}, "dX", 0, type_only);
    return true;
  }();
  (void)done;
}

bool is_foreign(const ::onnx::ModelProto& model, const std::string& domain) {
  for (const char* own : {"", "ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training"})
    if (domain == own) return false;
  return std::none_of(model.functions().begin(), model.functions().end(),
                      [&](const auto& f) { return f.domain() == domain; });
}

std::unordered_map<std::string, const ::onnx::TypeProto*> declared_types(const ::onnx::GraphProto& graph) {
  std::unordered_map<std::string, const ::onnx::TypeProto*> types;
  for (const auto* list : {&graph.value_info(), &graph.output()})
    for (const auto& v : *list)
      if (v.type().has_tensor_type() && v.type().tensor_type().elem_type() && v.type().tensor_type().has_shape())
        types[v.name()] = &v.type();
  return types;
}

}  // namespace monet
