#include "engine/ir/graph.h"

#include <cstring>
#include <limits>
#include <optional>

#include "engine/ir/einsum.h"

namespace monet {

namespace {
struct DTypeFacts {
  const char* name;
  int bits;
  bool is_float;
};
// Indexed by DType.
constexpr DTypeFacts kDTypes[] = {
    {"undefined", 0, false},     {"float32", 32, true},     {"uint8", 8, false},         {"int8", 8, false},
    {"uint16", 16, false},       {"int16", 16, false},      {"int32", 32, false},        {"int64", 64, false},
    {"string", 0, false},        {"bool", 8, false},        {"float16", 16, true},       {"float64", 64, true},
    {"uint32", 32, false},       {"uint64", 64, false},     {"complex64", 64, false},    {"complex128", 128, false},
    {"bfloat16", 16, true},      {"float8e4m3fn", 8, true}, {"float8e4m3fnuz", 8, true}, {"float8e5m2", 8, true},
    {"float8e5m2fnuz", 8, true}, {"uint4", 4, false},       {"int4", 4, false},          {"float4e2m1", 4, true},
};
const DTypeFacts& facts(DType type) {
  size_t i = static_cast<size_t>(type);
  return kDTypes[i < std::size(kDTypes) ? i : 0];
}
}  // namespace

int bits(DType type) { return facts(type).bits; }
const char* name(DType type) { return facts(type).name; }
bool is_float(DType type) { return facts(type).is_float; }

int64_t elements(const Shape& shape) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  int64_t product = 1;
  for (int64_t d : shape) {
    if (d == 0) return 0;
    product = product > kMax / d ? kMax : product * d;
  }
  return product;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

const char* name(Phase phase) {
  constexpr const char* kNames[kPhases] = {"forward", "loss", "backward", "optimizer", "recompute"};
  return kNames[static_cast<size_t>(phase)];
}

const char* name(Role role) {
  constexpr const char* kNames[] = {"forward", "input_gradient", "weight_gradient", "gradient", "accumulate", "update"};
  return kNames[static_cast<size_t>(role)];
}

int64_t bytes(const Tensor& tensor) {
  int64_t n = elements(tensor.shape), width = bits(tensor.dtype);
  if (width >= 8) {
    int64_t each = width / 8;
    return n > std::numeric_limits<int64_t>::max() / each ? std::numeric_limits<int64_t>::max() : n * each;
  }
  return n / 8 * width + (n % 8 * width + 7) / 8;
}

TensorId Graph::add(Tensor tensor) {
  tensors.push_back(std::move(tensor));
  return static_cast<TensorId>(tensors.size() - 1);
}

NodeId Graph::add(Node node) {
  NodeId id = static_cast<NodeId>(nodes.size());
  for (TensorId t : node.outputs)
    if (t != kNone) tensors[t].producer = id;
  nodes.push_back(std::move(node));
  return id;
}

const Attribute* find_attribute(const Node& node, std::string_view name) {
  for (const Attribute& a : node.attributes)
    if (a.name == name) return &a;
  return nullptr;
}

namespace {
template <typename T>
T attribute_or(const Node& node, std::string_view name, T otherwise) {
  const Attribute* a = find_attribute(node, name);
  if (!a) return otherwise;
  const T* value = std::get_if<T>(&a->value);
  return value ? *value : otherwise;
}
}  // namespace

int64_t attribute(const Node& node, std::string_view name, int64_t otherwise) {
  return attribute_or<int64_t>(node, name, otherwise);
}
float attribute(const Node& node, std::string_view name, float otherwise) {
  return attribute_or<float>(node, name, otherwise);
}
std::string attribute(const Node& node, std::string_view name, const char* otherwise) {
  return attribute_or<std::string>(node, name, otherwise);
}
std::vector<int64_t> attribute(const Node& node, std::string_view name, std::vector<int64_t> otherwise) {
  return attribute_or<std::vector<int64_t>>(node, name, std::move(otherwise));
}

std::string label(const Graph& graph, NodeId id) {
  const Node& node = graph.nodes[id];
  if (!node.name.empty()) return node.name;
  for (TensorId t : node.outputs)
    if (t != kNone) return graph.tensors[t].name;
  return "#" + std::to_string(id);
}

std::vector<int64_t> integers(const Tensor& tensor) {
  std::vector<int64_t> values;
  size_t width = tensor.dtype == DType::int64 ? 8 : tensor.dtype == DType::int32 ? 4 : 0;
  if (!width) return values;
  for (size_t at = 0; at + width <= tensor.data.size(); at += width) {
    int64_t wide = 0;
    int32_t narrow = 0;
    if (width == 8) {
      std::memcpy(&wide, tensor.data.data() + at, 8);
    } else {
      std::memcpy(&narrow, tensor.data.data() + at, 4);
      wide = narrow;
    }
    values.push_back(wide);
  }
  return values;
}

bool is_view(const Node& node) {
  if (!node.domain.empty()) return false;
  const std::string& op = node.op;
  if (op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze" || op == "Identity") return true;
  // training_mode is the third input; without it Dropout is the identity.
  return op == "Dropout" && (node.inputs.size() < 3 || node.inputs[2] == kNone);
}

bool is_contraction(const Node& node) {
  const std::string& op = node.op;
  if (!node.domain.empty()) return false;
  if (op != "Einsum") return op == "Conv" || op == "ConvTranspose" || op == "Gemm" || op == "MatMul";
  std::optional<EinsumEquation> equation = parse_einsum(attribute(node, "equation", ""));
  return equation && is_matrix_product(*equation);
}

std::vector<TensorId> storage(const Graph& graph) {
  std::vector<TensorId> result(graph.tensors.size());
  for (size_t t = 0; t < result.size(); ++t) result[t] = static_cast<TensorId>(t);
  // Nodes are in execution order, so what a view aliases is already resolved.
  for (const Node& node : graph.nodes)
    if (is_view(node) && !node.inputs.empty() && node.inputs[0] != kNone && !node.outputs.empty() &&
        node.outputs[0] != kNone)
      result[node.outputs[0]] = result[node.inputs[0]];
  return result;
}

void assign_single_units(Graph& graph) {
  for (NodeId id = 0; id < static_cast<NodeId>(graph.nodes.size()); ++id) {
    Node& node = graph.nodes[id];
    if (node.unit != kNone) continue;
    Unit unit;
    unit.op = node.op;
    unit.phase = node.phase;
    unit.origin = node.phase == Phase::forward ? id : node.origin;
    if (is_contraction(node)) unit.contraction = id;
    unit.nodes = {id};
    node.unit = static_cast<UnitId>(graph.units.size());
    graph.units.push_back(std::move(unit));
  }
}

}  // namespace monet
