#include "engine/analysis/fusion_run.h"

#include <algorithm>

#include "engine/fusion/baselines.h"
#include "engine/report/report.h"

namespace monet {

namespace {
constexpr size_t kBatch = 64;  // candidates costed at a time: some 10 ms
constexpr const char* kBaselines[] = {"none", "manual", "greedy"};
}  // namespace

FusionRun::FusionRun(std::shared_ptr<const Planned> planned, std::shared_ptr<CandidateCosts> candidates,
                     const FusionSettings& settings, nlohmann::ordered_json head)
    : planned_(std::move(planned)),
      candidates_(std::move(candidates)),
      settings_(settings),
      head_(std::move(head)),
      scheduler_(*planned_->planner) {}

double FusionRun::done() const {
  double parts = 1 + static_cast<double>(std::size(kBaselines) + settings_.max_group.size());
  return (candidates_->done() * 1 + static_cast<double>(strategies_.size())) / parts;
}

const LinearProgram* FusionRun::program() const {
  return covers_.empty() || cover().done() ? nullptr : &cover().program();
}

void FusionRun::add(std::string name, int most_units, FusionPlan plan, const FusionCover* cover) {
  FusionStrategy strategy{std::move(name), most_units, std::move(plan), cover, {}, {}};
  try {
    Partition partition = strategy.plan.partition(*planned_->graph);
    Program program = planned_->planner->program(partition);
    Schedule schedule = scheduler_.schedule(program);
    strategy.schedule = schedule_json({planned_->planner.get(), &program, &schedule, &partition, planned_->bound});
  } catch (const Refusal& refusal) {
    strategy.refused = refusal.problems().front();
  }
  strategies_.push_back(std::move(strategy));
}

bool FusionRun::step() {
  if (candidates_->step(kBatch)) return true;
  FusionObjective objective = settings_.objective;
  if (next_baseline_ < std::size(kBaselines)) {
    std::string name = kBaselines[next_baseline_++];
    std::vector<std::vector<UnitId>> groups;
    if (name == "manual") groups = manual_groups(*candidates_);
    if (name == "greedy") groups = greedy_ = greedy_groups(*candidates_, objective);
    add(name, name == "none" ? 1 : settings_.rules().most_units, candidates_->plan(groups, objective), nullptr);
    return true;
  }
  if (!covers_.empty() && !cover().done()) return false;
  if (!covers_.empty() && strategies_.size() < std::size(kBaselines) + covers_.size()) {
    add("solver", most_units(), cover().plan(), &cover());
    ++solver_;
    return true;
  }
  if (solver_ == settings_.max_group.size()) return false;
  covers_.push_back(std::make_unique<FusionCover>(*candidates_, objective, most_units(), greedy_));
  return true;
}

void FusionRun::answer(const Solution& solution) { cover().answer(solution); }

void FusionRun::stop() {
  Solution cancelled;
  cancelled.status = Solution::Status::cancelled;
  if (program()) cover().answer(cancelled);
}

nlohmann::ordered_json FusionRun::report() const {
  nlohmann::ordered_json json = head_;
  json["units"] = std::count_if(planned_->works.begin(), planned_->works.end(), [](const Work& w) { return !w.view; });
  json["edges"] = nlohmann::ordered_json::array();
  for (const UnitEdge& edge : planned_->planner->edges())
    if (edge.data) json["edges"].push_back({edge.from, edge.to});
  json["candidates"] = candidates_json(*candidates_);
  json["strategies"] = nlohmann::ordered_json::array();
  for (const FusionStrategy& strategy : strategies_)
    json["strategies"].push_back(fusion_strategy_json(strategy, settings_.objective));
  json["warnings"] = nlohmann::ordered_json::array();
  if (!candidates_->complete())
    json["warnings"].push_back(
        to_json(Diagnostic{"candidates-cut",
                           "the search for candidates ended after " + std::to_string(candidates_->grown()) +
                               " sets of units: larger groups are missing, and what is proven holds without them",
                           "", "", "a smaller max_group, or stricter rules"}));
  for (const FusionStrategy& strategy : strategies_)
    if (strategy.refused) json["warnings"].push_back(to_json(*strategy.refused));
  // Where the estimate chose what the schedule does not confirm.
  auto value = [&](const FusionStrategy& s) -> std::optional<double> {
    if (!s.schedule) return {};
    double cycles = (*s.schedule)["latency_cycles"], pj = (*s.schedule)["energy_pj"];
    const nlohmann::ordered_json& offchip = (*s.schedule)["offchip"];
    switch (settings_.objective) {
      case FusionObjective::groups:
        return s.plan.cost.groups;
      case FusionObjective::latency:
        return cycles;
      case FusionObjective::energy:
        return pj;
      case FusionObjective::edp:
        return cycles * pj;
      case FusionObjective::traffic:
        return offchip["read_bytes"].get<double>() + offchip["written_bytes"].get<double>();
    }
    return {};
  };
  for (const FusionStrategy& solved : strategies_) {
    const FusionStrategy* better = nullptr;
    for (const FusionStrategy& other : strategies_)
      if (!other.cover && value(solved) && value(other) && *value(other) < *value(better ? *better : solved))
        better = &other;
    if (!solved.cover || !better) continue;
    json["warnings"].push_back(to_json(
        Diagnostic{"estimate-picked-wrongly",
                   "scheduled, the plan \"" + better->name + "\" has less " + name(settings_.objective) +
                       " than that of the solver with groups of up to " +
                       (solved.most_units == 0 ? "any number of" : std::to_string(solved.most_units)) +
                       " units, which has least by the sum of what its groups cost alone",
                   "", "",
                   planned_->planner->options().write_back ? "take the better plan"
                                                           : "take the better plan, or let what crosses groups go off "
                                                             "the chip, as the estimate has it (write_back)"}));
  }
  return json;
}

}  // namespace monet
