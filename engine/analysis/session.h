// The facade: one model, analysed under one set of settings after another. All that bindings and the command line call.
// Keeps what a changed setting does not touch: bound shapes and training graphs are cached by the settings they depend
// on.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/analysis/fusion_run.h"
#include "engine/analysis/planned.h"
#include "engine/analysis/settings.h"
#include "engine/cost/layer_cost.h"
#include "engine/hardware/accelerator.h"
#include "engine/onnx/byte_source.h"
#include "engine/onnx/model.h"
#include "engine/report/report.h"
#include "engine/schedule/memory.h"
#include "engine/training/training_graph.h"

namespace monet {

// Told the stage that begins and the share of the work done (0..1); returns false to cancel, which throws a Refusal
// with the code "cancelled".
using Progress = std::function<bool(std::string_view stage, double done)>;

class Session {
 public:
  // Throws Refusal with all problems of the file.
  Session(ByteSource& source, std::string name);

  const Model& file() const { return file_; }

  // monet.report/1. Throws Refusal. Operators without a gradient are not an error: the report is then forward only,
  // with the reasons among its warnings.
  nlohmann::ordered_json analyze(const Settings& settings, const FileResolver& hardware_files = {},
                                 const Progress& progress = {});

  // monet.schedule/1: the schedules of inference and of a training step (null where there is no training graph, or
  // `inference_only`), the settings' partition applied to the latter (to inference if that is all). Throws Refusal,
  // also where the settings name no hardware.
  nlohmann::ordered_json schedule(const Settings& settings, bool inference_only = false,
                                  const FileResolver& hardware_files = {}, const Progress& progress = {});
  // The schedule of a step, or of inference, event by event, as a Chrome trace. Throws as `schedule` does.
  std::string trace(const Settings& settings, bool inference, const FileResolver& hardware_files = {},
                    const Progress& progress = {});

  // A search for fused groups of a training step, or of inference; the session must outlive it. Throws as `schedule`.
  std::unique_ptr<FusionRun> fuse(const Settings& settings, bool inference = false,
                                  const FileResolver& hardware_files = {});
  // Whether these units may be one group, and for each unit next to them whether the group may grow by it:
  // {"units": [..], "limit": "none", "why": "..", "neighbours": [{"unit", "name", "limit", "why"}]}.
  nlohmann::ordered_json growth(const Settings& settings, bool inference, const std::vector<int64_t>& units,
                                const FileResolver& hardware_files = {});

  // The forward graph, or the training graph. Throws Refusal, of the latter for operators without a gradient as well.
  std::shared_ptr<const Graph> graph(const Settings& settings, bool training);

  // The training graph as ONNX bytes. Throws Refusal, operators without a gradient included.
  std::string training_graph(const Settings& settings);

 private:
  std::shared_ptr<const BoundModel> bound(const Settings& settings, std::optional<int64_t> batch);
  std::shared_ptr<const TrainingGraph> training(const Settings& settings, std::optional<int64_t> batch);

  // `key`: of what they depend on.
  std::shared_ptr<const Planned> planned(const Settings& settings, bool inference, const std::string& key,
                                         const FileResolver& hardware_files);
  std::shared_ptr<CandidateCosts> candidates(const Settings& settings, const std::string& key,
                                             const std::shared_ptr<const Planned>& planned);
  std::shared_ptr<const Scheduled> scheduled(const Settings& settings, bool inference,
                                             const FileResolver& hardware_files, const Progress& progress);

  void add_costs(Results& results, const MappingFile& mapping, const Settings& settings, const Progress& progress);
  LargestBatch find_largest_batch(const Settings& settings, int64_t batch, MemoryOptions options, int64_t capacity);

  Model file_;
  // The ones used last, most recent first.
  std::list<std::pair<std::string, std::shared_ptr<const BoundModel>>> bound_;
  std::list<std::pair<std::string, std::shared_ptr<const TrainingGraph>>> training_;
  std::list<std::pair<std::string, std::shared_ptr<const LargestBatch>>> largest_;
  std::list<std::pair<std::string, std::shared_ptr<const Planned>>> planned_;
  std::list<std::pair<std::string, std::shared_ptr<const Scheduled>>> scheduled_;
  // Candidates of the search made last: other objectives and limits ask them again.
  std::shared_ptr<CandidateCosts> candidates_;
  std::shared_ptr<const Planned> candidates_of_;
  std::string candidates_key_;
  CostCache costs_;
};

// The accelerator that settings name, or nothing for "none". Throws Refusal with all problems of a description.
std::optional<Accelerator> accelerator_of(const Settings& settings, const FileResolver& hardware_files);

// The mapping file in the settings; empty without one. Throws Refusal with all problems of it.
MappingFile mapping_of(const Settings& settings);

// Runs `work` and returns its bytes; whatever it throws comes back as {"errors": [...]} instead, so that nothing
// crosses a language border as an exception.
std::string guarded(const std::function<std::string()>& work);
std::vector<Diagnostic> problems_of(const std::function<void()>& work);  // empty when nothing was thrown

}  // namespace monet
