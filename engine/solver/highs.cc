#include "engine/solver/highs.h"

#include <Highs.h>

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

void round_integers(const LinearProgram& program, Solution& solution) {
  solution.objective = 0;
  for (size_t i = 0; i < solution.x.size(); ++i) {
    if (program.integer[i]) solution.x[i] = std::round(solution.x[i]);
    solution.objective += program.cost[i] * solution.x[i];
  }
}

// HiGHS drops what the allowed gap makes uninteresting and then reports a bound without it.
double honest(double bound, double objective, double gap) {
  return std::min(bound, objective - gap * std::abs(objective));
}

}  // namespace

Solution solve(const LinearProgram& program, const SolveLimits& limits, const std::vector<double>& start,
               const SolveProgress& progress) {
  Solution best;
  HighsLp lp;
  lp.num_col_ = program.columns();
  lp.num_row_ = program.rows();
  lp.col_cost_ = program.cost;
  lp.col_lower_ = program.lower;
  lp.col_upper_ = program.upper;
  lp.row_lower_ = program.row_lower;
  lp.row_upper_ = program.row_upper;
  lp.a_matrix_.format_ = MatrixFormat::kRowwise;
  lp.a_matrix_.num_col_ = lp.num_col_;
  lp.a_matrix_.num_row_ = lp.num_row_;
  lp.a_matrix_.start_ = program.start;
  lp.a_matrix_.index_ = program.column;
  lp.a_matrix_.value_ = program.value;
  bool whole = std::any_of(program.integer.begin(), program.integer.end(), [](uint8_t i) { return i != 0; });
  if (whole)
    for (uint8_t i : program.integer) lp.integrality_.push_back(i ? HighsVarType::kInteger : HighsVarType::kContinuous);

  Highs highs;
  highs.setOptionValue("output_flag", false);
  highs.setOptionValue("threads", 1);
  highs.setOptionValue("parallel", "off");
  highs.setOptionValue("mip_rel_gap", limits.gap);
  highs.setOptionValue("mip_abs_gap", 1e-9);
  if (limits.most_nodes > 0)
    highs.setOptionValue("mip_max_nodes", static_cast<HighsInt>(std::min<int64_t>(limits.most_nodes, kHighsIInf)));
  if (highs.passModel(std::move(lp)) == HighsStatus::kError) return best;
  if (!start.empty()) {
    HighsSolution point;
    point.col_value = start;
    point.value_valid = true;
    highs.setSolution(point);
    best.x = start;
    round_integers(program, best);
  }

  bool cancelled = false;
  if (whole && progress) {
    highs.setCallback(
        [&](int type, const std::string&, const HighsCallbackDataOut* out, HighsCallbackDataIn* in, void*) {
          best.nodes = out->mip_node_count;
          bool news = false;
          if (type == kCallbackMipImprovingSolution && out->objective_function_value < best.objective) {
            best.x.assign(out->mip_solution, out->mip_solution + program.columns());
            round_integers(program, best);
            news = true;
          }
          double bound = best.x.empty() ? out->mip_dual_bound : honest(out->mip_dual_bound, best.objective, limits.gap);
          news = news || bound > best.bound;
          best.bound = bound;
          if (news && !cancelled) cancelled = !progress(best);
          if (in && cancelled) in->user_interrupt = 1;
        },
        nullptr);
    highs.startCallback(kCallbackMipImprovingSolution);
    highs.startCallback(kCallbackMipInterrupt);
  }
  HighsStatus ran = highs.run();
  const HighsInfo& info = highs.getInfo();
  Solution result;
  result.nodes = info.mip_node_count;
  if (info.primal_solution_status == kSolutionStatusFeasible && ran != HighsStatus::kError) {
    result.x = highs.getSolution().col_value;
    round_integers(program, result);
  }
  if (best.objective < result.objective) {
    result.x = best.x;
    result.objective = best.objective;
  }
  result.bound = whole ? info.mip_dual_bound : result.objective;
  switch (highs.getModelStatus()) {
    case HighsModelStatus::kOptimal:
      result.status = Solution::Status::optimal;
      // (Objectives are sums in another order: no proof is better than what it proves.)
      if (whole) result.bound = honest(result.bound, result.objective, limits.gap);
      break;
    case HighsModelStatus::kInfeasible:
      result.status = Solution::Status::infeasible;
      break;
    case HighsModelStatus::kSolutionLimit:
    case HighsModelStatus::kIterationLimit:
      result.status = Solution::Status::limit;
      break;
    case HighsModelStatus::kInterrupt:
      result.status = cancelled ? Solution::Status::cancelled : Solution::Status::limit;
      break;
    default:
      result.status = Solution::Status::failed;
  }
  return result;
}

}  // namespace monet
