// A search for fused groups, strategy by strategy and step by step: costs of candidates, then one integer program after
// another, which the caller solves with whatever solver it has (HiGHS natively, a module of its own in the page).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/analysis/planned.h"
#include "engine/fusion/cover.h"
#include "engine/report/fusion_report.h"
#include "engine/solver/linear_program.h"

namespace monet {

class FusionRun {
 public:
  // Throws Refusal where a unit cannot run.
  FusionRun(std::shared_ptr<const Planned> planned, std::shared_ptr<CandidateCosts> candidates,
            const FusionSettings& settings, nlohmann::ordered_json head);

  // A few milliseconds of work; false once there is none but to solve program(), if there is one.
  bool step();
  double done() const;  // share of all work but solving, 0 to 1

  size_t strategies() const { return strategies_.size(); }  // done so far
  // The program to solve next; nothing: all strategies are done.
  const LinearProgram* program() const;
  const std::vector<double>& start() const { return cover().start(); }
  SolveLimits limits() const { return {settings_.gap, settings_.nodes}; }
  int most_units() const { return settings_.max_group[solver_]; }  // of the strategy being solved
  void incumbent(const Solution& best) { cover().incumbent(best); }
  // Afterwards step() has work again.
  void answer(const Solution& solution);
  // Ends the strategy being solved with the best plan so far.
  void stop();

  // monet.fusion/1: of the strategies done so far.
  nlohmann::ordered_json report() const;

 private:
  FusionCover& cover() const { return *covers_.back(); }
  void add(std::string name, int most_units, FusionPlan plan, const FusionCover* cover);

  std::shared_ptr<const Planned> planned_;
  std::shared_ptr<CandidateCosts> candidates_;
  FusionSettings settings_;
  nlohmann::ordered_json head_;
  Scheduler scheduler_;
  std::vector<FusionStrategy> strategies_;
  std::vector<std::unique_ptr<FusionCover>> covers_;  // one for each entry of max_group
  size_t next_baseline_ = 0, solver_ = 0;
  std::vector<std::vector<UnitId>> greedy_;
};

}  // namespace monet
