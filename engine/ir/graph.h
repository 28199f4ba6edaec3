// The graph every room works on: operators and tensors as plain data, flat and indexed. No dependency.
//
// Node order is execution order: a node comes after the producers of its inputs. A training graph keeps the forward
// nodes at the indices they had in the forward graph, followed by loss, backward and optimizer nodes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace monet {

using NodeId = int32_t;
using TensorId = int32_t;
using UnitId = int32_t;
constexpr int32_t kNone = -1;  // an absent optional input or output, a tensor without producer, ...

// Element types with the values of ONNX's TensorProto.DataType.
enum class DType : uint8_t {
  undefined = 0,
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  string = 8,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  complex64 = 14,
  complex128 = 15,
  bfloat16 = 16,
  float8e4m3fn = 17,
  float8e4m3fnuz = 18,
  float8e5m2 = 19,
  float8e5m2fnuz = 20,
  uint4 = 21,
  int4 = 22,
  float4e2m1 = 23,
};
int bits(DType type);  // bits of one stored element; 0 for undefined and string
const char* name(DType type);
bool is_float(DType type);  // floating point of any width (the types a gradient can have)

using Shape = std::vector<int64_t>;         // every dimension known and >= 0; {} is a scalar
int64_t elements(const Shape& shape);       // product of the dimensions; 1 for a scalar; saturates at INT64_MAX
std::string to_string(const Shape& shape);  // "[1, 64, 56, 56]"

enum class Phase : uint8_t { forward, loss, backward, optimizer, recompute };
constexpr int kPhases = 5;
const char* name(Phase phase);

// What a tensor is to a training step; decides its memory category and how it is exported.
enum class TensorKind : uint8_t {
  input,      // data given by the user for each step; graph input
  label,      // target of the loss; graph input
  parameter,  // a float initializer; graph input on export (weights are never read)
  buffer,     // a stored tensor that is not trained: running statistics, integer tables; graph input on export
  constant,   // a small tensor whose value is known (`data`); initializer on export
  state,      // optimizer state kept between steps (momentum, Adam's m and v); graph input
  sum,        // a parameter's gradient summed over the micro-batches of a step; graph input
  scalar,     // a scalar given for each step: learning rate, step count; graph input
  computed,   // the output of a node
};

struct Tensor {
  std::string name;  // unique in the graph
  DType dtype = DType::undefined;
  Shape shape;
  TensorKind kind = TensorKind::computed;
  NodeId producer = kNone;
  // The tensor that this one is about: a gradient -> what it is the gradient of; a state or a sum -> its parameter; an
  // updated parameter, state or sum -> the old one; an updated running statistic -> the buffer. kNone otherwise.
  TensorId of = kNone;
  // Raw little-endian elements as in ONNX's raw_data (4-bit types packed in pairs). Present for constants; also for
  // small parameters and buffers (at most 1 KiB), whose value serves folding and recognition only.
  std::string data;
};
int64_t bytes(const Tensor& tensor);  // at the tensor's own dtype, rounded up to whole bytes

// Attributes that the engine has no use for (subgraphs, sparse tensors, type protos) stay as the serialized ONNX
// AttributeProto so that export loses nothing.
struct OpaqueAttribute {
  std::string bytes;
};
struct TensorAttribute {
  DType dtype = DType::undefined;
  Shape shape;
  std::string data;
};
struct Attribute {
  std::string name;
  std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>, std::vector<std::string>,
               TensorAttribute, OpaqueAttribute>
      value;
};

struct Node {
  std::string name;               // as in the file: may be empty or shared by several nodes
  std::string op;                 // operator type, e.g. "Conv"
  std::string domain;             // "" is ai.onnx
  std::vector<TensorId> inputs;   // kNone where an optional input is absent
  std::vector<TensorId> outputs;  // likewise
  std::vector<Attribute> attributes;
  Phase phase = Phase::forward;
  NodeId origin = kNone;  // the forward node this one came from; kNone for forward and loss nodes
  UnitId unit = kNone;    // index into Graph::units
};

// What a unit does with respect to its origin.
enum class Role : uint8_t {
  forward,          // the operator itself
  input_gradient,   // of a contraction, with respect to an operand that depends on the step's data
  weight_gradient,  // of a contraction, with respect to an operand that depends on parameters and constants only
  gradient,         // any other operator's gradient (all inputs together), bias gradients included
  accumulate,       // sums the gradients of a tensor with several readers, or of a parameter over micro-batches
  update,           // the optimizer's update of one parameter
};
const char* name(Role role);

// A unit is what is scheduled, costed and listed as one row: a contraction with its layout moves, one normalisation's
// gradient, one tensor's optimizer update, any other operator singly (DESIGN decision 15). Its nodes are contiguous in
// execution order.
struct Unit {
  std::string op;  // the forward operator's type ("Conv", "BatchNormalization"), "Sum" or the optimizer's name ("Adam")
  Role role = Role::forward;
  Phase phase = Phase::forward;
  NodeId origin = kNone;       // the forward node; for Role::forward the node itself; kNone for loss and updates
  TensorId target = kNone;     // contraction gradients: the operand differentiated; updates: the parameter
  NodeId contraction = kNone;  // the node among `nodes` that does the multiply-accumulates, if any
  std::vector<NodeId> nodes;
};

struct Graph {
  std::string name;
  int opset = 22;                     // of ai.onnx
  std::map<std::string, int> opsets;  // of other domains
  std::vector<Node> nodes;
  std::vector<Tensor> tensors;
  std::vector<TensorId> inputs;  // in order: inputs, labels, parameters, buffers, states, sums, scalars that nodes use
  std::vector<TensorId> outputs;
  std::vector<Unit> units;  // in execution order; every node belongs to exactly one
  // How often a training step runs everything but the optimizer: the micro-batches whose gradients are summed.
  int64_t micro_batches = 1;

  TensorId add(Tensor tensor);  // returns its index
  NodeId add(Node node);        // appends, sets `producer` of its outputs, returns its index
};

const Attribute* find_attribute(const Node& node, std::string_view name);
int64_t attribute(const Node& node, std::string_view name, int64_t otherwise);
float attribute(const Node& node, std::string_view name, float otherwise);
std::string attribute(const Node& node, std::string_view name, const char* otherwise);
std::vector<int64_t> attribute(const Node& node, std::string_view name, std::vector<int64_t> otherwise);

// What people call the node: its name, else its first present output's name, else "#index".
std::string label(const Graph& graph, NodeId node);
// Integer elements of a constant (int64 or int32 `data`), empty when the value is not known.
std::vector<int64_t> integers(const Tensor& tensor);
// Operators that only rename or reinterpret bytes (Reshape, Flatten, Squeeze, Unsqueeze, Identity, and Dropout out of
// training): output 0 shares input 0's bytes and costs nothing.
bool is_view(const Node& node);
// For every tensor, the tensor whose bytes it shares through views (itself when it has bytes of its own).
std::vector<TensorId> storage(const Graph& graph);
// Conv, ConvTranspose, Gemm, MatMul, Einsum of matrices: operators whose work is multiply-accumulates over a loop nest.
bool is_contraction(const Node& node);
// Makes every node without a unit a unit of its own (forward graphs after import).
void assign_single_units(Graph& graph);

}  // namespace monet
