// Results -> monet.report/1 (report.schema.json beside this file): the one format that the command line writes, the
// page renders, links restore and tests compare. The same results give the same bytes on every platform; no timings.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/cost/bounds.h"
#include "engine/cost/unit_cost.h"
#include "engine/hardware/accelerator.h"
#include "engine/ir/diagnostic.h"
#include "engine/ir/graph.h"
#include "engine/onnx/model.h"
#include "engine/schedule/memory.h"
#include "engine/training/precision.h"
#include "engine/training/training_graph.h"
#include "engine/workload/work.h"

namespace monet {

extern const char* const kEngineVersion;

struct LargestBatch {
  std::optional<int64_t> value;  // nothing: not known, see `reason`
  std::string reason;
};

// What analysis/ hands over. Pointers are borrowed for the call; indices are those of `graph()`.
struct Results {
  const Model* file = nullptr;
  const BoundModel* model = nullptr;
  const TrainingGraph* training = nullptr;   // null: forward only
  const Accelerator* accelerator = nullptr;  // null: memory and operations only
  nlohmann::ordered_json settings;
  Precision precision;
  std::vector<int64_t> tensor_bytes;  // under `precision`, by tensor
  std::vector<TensorId> parameters;   // trained; forward only: trainable
  std::vector<TensorId> saved;        // saved for backward
  std::vector<Work> works;            // by unit
  std::vector<int64_t> unit_bytes;    // by unit: what it reads and writes, under `precision`
  // With an accelerator. Elements have the widths that `settings` ask for.
  std::vector<Bound> unit_bounds;  // by unit
  Bound inference_bound, step_bound;
  std::array<Bound, kPhases> phase_bounds;
  // With an accelerator of one compute core: the units of graph(), of the forward graph alone.
  std::optional<GraphCost> cost, inference_cost;
  std::vector<Work> inference_works;        // by unit of the forward graph
  MemoryTimeline inference_memory, memory;  // of the forward pass alone; of what is analysed
  std::optional<int64_t> capacity;          // bytes
  std::optional<LargestBatch> largest_batch;
  std::vector<Diagnostic> warnings;

  const Graph& graph() const { return training ? training->graph : model->graph; }
};

nlohmann::ordered_json report(const Results& results);
nlohmann::ordered_json to_json(const Diagnostic& diagnostic);
// {"errors": [...]}: what stands in place of a report when an input is refused.
nlohmann::ordered_json errors_json(const std::vector<Diagnostic>& problems);
// The bytes of any JSON of ours: names that are not UTF-8 get replacement characters instead of an exception.
std::string to_bytes(const nlohmann::ordered_json& json);

// The report as a table for a terminal of 80 columns or more.
std::string text_table(const nlohmann::ordered_json& report);

}  // namespace monet
