#include "engine/training/precision.h"

namespace monet {

Precision uniform_precision(DType type) { return {type, type, type, type, false}; }

std::optional<Precision> precision_named(const std::string& name) {
  auto mixed = [](DType type) { return Precision{type, type, type, DType::float32, true}; };
  if (name == "model") return Precision{};
  if (name == "fp32") return uniform_precision(DType::float32);
  if (name == "fp16") return uniform_precision(DType::float16);
  if (name == "bf16") return uniform_precision(DType::bfloat16);
  if (name == "mixed_fp16") return mixed(DType::float16);
  if (name == "mixed_bf16") return mixed(DType::bfloat16);
  return std::nullopt;
}

std::optional<DType> dtype_named(const std::string& name) {
  if (name == "model") return DType::undefined;
  if (name == "fp32") return DType::float32;
  if (name == "fp16") return DType::float16;
  if (name == "bf16") return DType::bfloat16;
  return std::nullopt;
}

namespace {

DType class_type(const Graph& graph, const Tensor& tensor, const Precision& precision) {
  switch (tensor.kind) {
    case TensorKind::parameter:
      return precision.parameters;
    case TensorKind::state:
      return precision.optimizer_state;
    case TensorKind::sum:
      return precision.gradients;
    case TensorKind::input:
    case TensorKind::label:
      return precision.activations;
    case TensorKind::buffer:    // running statistics stay at the model's width in every recipe
    case TensorKind::constant:  // values of the graph itself
    case TensorKind::scalar:
      return DType::undefined;
    case TensorKind::computed:
      break;
  }
  if (tensor.of == kNone) return precision.activations;
  const Tensor& of = graph.tensors[tensor.of];
  bool update = tensor.producer != kNone && graph.nodes[tensor.producer].phase == Phase::optimizer;
  if (of.kind == TensorKind::parameter) return update ? precision.parameters : precision.gradients;
  if (of.kind == TensorKind::state) return precision.optimizer_state;
  if (of.kind == TensorKind::sum) return precision.gradients;
  if (of.kind == TensorKind::buffer) return DType::undefined;
  return precision.activations;
}

}  // namespace

DType stored_type(const Graph& graph, TensorId id, const Precision& precision) {
  const Tensor& tensor = graph.tensors[id];
  if (!is_float(tensor.dtype)) return tensor.dtype;
  DType type = class_type(graph, tensor, precision);
  return type == DType::undefined ? tensor.dtype : type;
}

int64_t bytes(const Graph& graph, TensorId id, const Precision& precision) {
  return bytes(Tensor{.dtype = stored_type(graph, id, precision), .shape = graph.tensors[id].shape});
}

}  // namespace monet
