// A schedule as JSON (monet.schedule/1, described in report.schema.json) and as a Chrome trace, which Perfetto and the
// page's Gantt chart read.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/cost/bounds.h"
#include "engine/schedule/scheduler.h"

namespace monet {

// One graph's schedule with what it is compared with. Pointers are borrowed for the call.
struct ScheduledGraph {
  const Planner* planner = nullptr;
  const Program* program = nullptr;
  const Schedule* schedule = nullptr;
  const Partition* partition = nullptr;
  Bound bound;  // of the whole graph, all micro-batches
};

// Micro-batches run one after the other, each as the one that is scheduled; the optimizer runs once.
double latency_cycles(const ScheduledGraph& g);

nlohmann::ordered_json schedule_json(const ScheduledGraph& g);

// Chrome's trace event format; a cycle stands as a microsecond. Cores and links are threads of two processes, on-chip
// and off-chip bytes are counters.
std::string chrome_trace(const ScheduledGraph& g);

// The schedules of inference and of a step (null if there is none) as a table.
std::string schedule_table(const nlohmann::ordered_json& schedules);

}  // namespace monet
