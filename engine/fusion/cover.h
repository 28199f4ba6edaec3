// The integer program of layer fusion (MONET, arXiv 2603.15002): choose candidates so that every unit is in exactly
// one, with least of an objective. Groups may wait for each other in a cycle although each is convex: such a choice is
// cut off and the program solved again, until the best choice has none.
//
// Where several plans have the least, which one is found is the solver's choice: HiGHS sorts equals differently with
// each standard library. Value and bound do not depend on it.
//
// A search step by step: solve program() with any solver, hand the answer in, until done().
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "engine/fusion/plan.h"
#include "engine/solver/linear_program.h"

namespace monet {

class FusionCover {
 public:
  // `candidates`: all costed. `most_units`: of a group; 0: as the candidates. `start`: groups of a plan to begin
  // with, those left out that are too large.
  FusionCover(CandidateCosts& candidates, FusionObjective objective, int most_units,
              const std::vector<std::vector<UnitId>>& start);

  bool done() const { return done_; }
  const LinearProgram& program() const { return program_; }
  const std::vector<double>& start() const { return start_; }
  // Of program(). An answer that is not optimal ends the search.
  void answer(const Solution& solution);
  // While program() is being solved: the best so far. Taken if it is a plan.
  void incumbent(const Solution& solution);

  const FusionPlan& plan() const { return best_; }  // the best so far
  double value() const { return best_.cost.of(objective_); }
  double bound() const { return bound_; }  // no plan of these candidates has less
  double gap() const;                      // (value - bound) / value
  // Statuses of all programs solved, the worst; limit where one was not solved to the end.
  Solution::Status status() const { return status_; }
  size_t columns() const { return columns_.size(); }
  size_t dominated() const { return dominated_; }  // candidates that splitting is no worse than
  int solves() const { return solves_; }
  int cuts() const { return cuts_; }
  int64_t nodes() const { return nodes_; }

 private:
  struct Column {
    const CandidateCosts::Candidate* candidate = nullptr;
    const GroupCost* way = nullptr;
  };
  // What a plan is judged by while one program is solved: latency_weight * cycles + energy_weight * energy + ...
  struct Weights {
    double groups = 0, cycles = 0, energy = 0, bits = 0;
    double of(const GroupCost& way) const;
    double of(const PlanCost& cost) const;
  };
  void formulate(const Weights& weights);
  std::vector<size_t> chosen(const std::vector<double>& x) const;  // columns
  FusionPlan plan_of(const std::vector<size_t>& columns) const;
  // Cuts off the cycles among the columns' groups; how many.
  int cut(const std::vector<size_t>& columns);
  void add_cut(const std::vector<std::pair<UnitId, UnitId>>& passages);
  bool take(FusionPlan plan);  // if it is better than the best

  CandidateCosts& candidates_;
  FusionObjective objective_;
  int most_units_;
  std::vector<Column> columns_;
  std::vector<std::vector<int32_t>> columns_of_;                  // by unit
  std::vector<std::vector<std::pair<UnitId, UnitId>>> passages_;  // of every cut
  LinearProgram program_;
  double scale_ = 1;  // of costs in the program
  Weights weights_;
  std::vector<double> start_;
  FusionPlan best_;
  double bound_ = 0;
  bool done_ = false;
  Solution::Status status_ = Solution::Status::optimal;
  size_t dominated_ = 0;
  int solves_ = 0, cuts_ = 0;
  int64_t nodes_ = 0;
  // Energy-delay product: the least of a product of two sums lies at a corner of the convex hull of all plans' sums, so
  // it is found among plans that are best for weighted sums. Corners met, by cycles, and pairs between which others may
  // lie.
  std::vector<PlanCost> corners_;
  std::vector<std::pair<PlanCost, PlanCost>> between_;
  double least_cycles_ = 0, least_energy_ = 0;
  bool exact_ = true;  // no program was left with a gap
  enum class Stage : uint8_t { cycles, energy, between } stage_ = Stage::cycles;
};

}  // namespace monet
