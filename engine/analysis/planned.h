// A graph on an accelerator, whatever its partition: what schedules and searches of one analysis share.
#pragma once

#include <memory>
#include <vector>

#include "engine/analysis/settings.h"
#include "engine/cost/bounds.h"
#include "engine/report/schedule_report.h"
#include "engine/schedule/program.h"

namespace monet {

// Not to be moved: the planner refers to what stands beside it.
struct Planned {
  // Throws Refusal as Planner and mapping_of do. `costs` is kept by reference.
  Planned(std::shared_ptr<const Graph> graph, Accelerator accelerator, const Settings& settings, CostCache& costs);
  Planned(const Planned&) = delete;

  std::shared_ptr<const Graph> graph;
  Accelerator accelerator;
  MappingFile mapping;
  CostOptions cost;
  std::vector<Work> works;
  Bound bound;
  std::unique_ptr<Planner> planner;
};

struct Scheduled {
  std::shared_ptr<const Planned> planned;
  Partition partition;
  Program program;
  Schedule schedule;

  ScheduledGraph view() const { return {planned->planner.get(), &program, &schedule, &partition, planned->bound}; }
};

}  // namespace monet
