// What a training step holds in memory, unit by unit in execution order: liveness of every tensor, by category
// (DESIGN section 5, "Memory accounting"). No hardware is needed; analysis/ compares with a capacity.
//
// Parameters, buffers, optimizer state, gradient sums, inputs and labels are held throughout. A computed tensor lives
// from the unit that makes it to the last unit that reads it; views share the bytes of what they view; updated
// parameters, states and running statistics overwrite the old ones. Inside a unit, elementwise chains stream (they hold
// nothing); any other tensor that is neither read from nor left to another unit is workspace.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/ir/graph.h"

namespace monet {

enum class MemoryCategory : uint8_t {
  parameters,
  master_weights,  // fp32 copies of trained parameters, when the precision asks for them
  buffers,         // running statistics, constants, scalars
  optimizer_state,
  inputs,                // inputs and labels
  activations,           // forward and loss tensors
  activation_gradients,  // backward tensors that are not gradients of parameters
  gradients,             // of parameters
  workspace,
};
constexpr int kMemoryCategories = 9;
const char* name(MemoryCategory category);
MemoryCategory category_of(const Graph& graph, const Tensor& tensor);  // never workspace or master_weights

using BytesByCategory = std::array<int64_t, kMemoryCategories>;  // indexed by MemoryCategory
int64_t total(const BytesByCategory& bytes);

struct MemoryOptions {
  std::vector<TensorId> master_weights;  // parameters that an fp32 copy is kept of
  bool update_immediately = false;       // each update as soon as its gradient is complete, not after all of backward
  bool keep_outputs = false;  // forward outputs are held to the end (inference), not only to their last reader
};

struct MemoryTimeline {
  std::vector<UnitId> order;              // execution order
  std::vector<BytesByCategory> timeline;  // while order[i] runs; parallel to `order`
  int64_t peak = 0;                       // maximum of the timeline's totals, bytes; 0 for a graph without units
  size_t peak_at = 0;                     // position in `order` where it first occurs
};

// `tensor_bytes`: bytes of each tensor of the graph, by its index.
MemoryTimeline memory(const Graph& graph, const std::vector<int64_t>& tensor_bytes, const MemoryOptions& options);

// Units in execution order; with `update_immediately`, each update right after the last unit it reads from.
std::vector<UnitId> execution_order(const Graph& graph, bool update_immediately);

// The largest batch whose peak fits into `capacity` bytes: 0 when not even one does, kEveryBatch when memory does not
// grow with it. The bytes of every tensor are affine in the batch, so its bytes at two batches give them at any other.
struct TensorBytesAt {
  int64_t batch = 1;
  const std::vector<int64_t>& bytes;
};
constexpr int64_t kEveryBatch = int64_t{1} << 32;
int64_t largest_batch(const Graph& graph, const TensorBytesAt& a, const TensorBytesAt& b, const MemoryOptions& options,
                      int64_t capacity);

}  // namespace monet
