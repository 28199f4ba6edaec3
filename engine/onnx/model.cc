// Model: the stages of import in their order (DESIGN decision 1).
#include "engine/onnx/model.h"

#include <google/protobuf/stubs/logging.h>

#include <unordered_set>

#include "engine/onnx/baked_batch.h"
#include "engine/onnx/block_cache.h"
#include "engine/onnx/convert.h"
#include "engine/onnx/dims.h"
#include "engine/onnx/expand.h"
#include "engine/onnx/foreign.h"
#include "engine/onnx/functions.h"
#include "engine/onnx/infer.h"
#include "engine/onnx/inference_export.h"
#include "engine/onnx/lift.h"
#include "engine/onnx/lower.h"
#include "engine/onnx/normalise.h"
#include "engine/onnx/order.h"
#include "engine/onnx/skim.h"
#include "engine/onnx/structure.h"
#include "engine/onnx/to_ir.h"
#include "engine/onnx/training_artifact.h"
#include "engine/onnx/weights.h"

namespace monet {

struct Model::Contents {
  std::string name;
  ::onnx::ModelProto original;   // as skimmed
  ::onnx::ModelProto canonical;  // sorted, inlined, opset 22, weights as typed inputs
  std::vector<Stored> stored;
  std::unordered_set<std::string> stored_names;
  std::vector<Diagnostic> warnings;
  int opset = 0;
  int64_t node_count = 0;
  ReadStatistics reads;
};

namespace {

constexpr const char* kLowerHint = "export with fixed lengths and conditions";

void refuse_if(std::vector<Diagnostic>& problems) {
  if (!problems.empty()) throw Refusal(std::move(problems));
}

// A batch cannot be changed where shapes hold only for the one exported: in a training graph, whose gradients were
// built for it, and behind operators whose output shapes the file states as numbers.
void check_declared_batch(const ::onnx::ModelProto& model, const BindOptions& options, int64_t exported,
                          std::vector<Diagnostic>& problems) {
  if (!options.batch || *options.batch == exported) return;
  std::string only = " holds for the exported one (" + std::to_string(exported) + ") only";
  if (is_training_artifact(model.graph()) || has_phases_after_forward(model.graph())) {
    problems.push_back({"baked-batch", "the batch cannot be changed: a training graph" + only, "", "",
                        "give the forward model instead of a training graph"});
    return;
  }
  auto declared = declared_types(model.graph());
  for (int i = 0; i < model.graph().node_size(); ++i) {
    const auto& n = model.graph().node(i);
    if (!is_foreign(model, n.domain()) || n.output_size() == 0) continue;
    auto type = declared.find(n.output(0));
    if (type == declared.end() || type->second->tensor_type().shape().dim_size() == 0 ||
        !type->second->tensor_type().shape().dim(0).has_dim_value())
      continue;
    problems.push_back({"baked-batch", "the batch cannot be changed: the declared output of " + describe(n, i) + only,
                        name_of(n), n.output(0), "export with dynamic axes"});
    return;
  }
}

// One warning for each operator that ONNX does not define: what is assumed about it.
void warn_of_foreign(const ::onnx::ModelProto& model, std::vector<Diagnostic>& warnings) {
  std::map<std::string, std::pair<int, std::string>> seen;
  for (const auto& n : model.graph().node()) {
    if (!is_foreign(model, n.domain())) continue;
    auto& [count, first] = seen[n.domain() + "." + n.op_type()];
    if (count++ == 0) first = name_of(n);
  }
  for (const auto& [op, nodes] : seen) {
    const auto& [count, first] = nodes;
    warnings.push_back({"foreign-operator",
                        "operator " + op + " (" +
                            (count == 1 ? "node " : std::to_string(count) + " nodes, the first ") + first +
                            ") is not ONNX's own; assumed: one operation for each element it makes, unless it is a "
                            "contraction's gradient",
                        first, "", ""});
  }
}

}  // namespace

Model::Model(std::unique_ptr<Contents> contents) : contents_(std::move(contents)) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

const std::string& Model::name() const { return contents_->name; }
int Model::opset() const { return contents_->opset; }
int64_t Model::node_count() const { return contents_->node_count; }
const ReadStatistics& Model::reads() const { return contents_->reads; }

Model Model::open(ByteSource& source, std::string name) {
  // A failed check of protobuf throws; its text goes into the refusal, not to stderr as well.
  [[maybe_unused]] static const auto previous = ::google::protobuf::SetLogHandler(nullptr);
  register_foreign_schemas();
  auto contents = std::make_unique<Contents>();
  Contents& c = *contents;
  c.name = std::move(name);
  BlockCache cache(source);
  c.original = skim(cache, c.name);
  c.reads = cache.statistics();
  strip(c.original);
  c.node_count = c.original.graph().node_size();

  c.canonical = c.original;
  ::onnx::ModelProto& model = c.canonical;
  std::vector<Diagnostic> problems;
  normalise(model, problems);
  c.opset = opset_of(model);
  std::vector<TrainingNorm> norms = cut_training_norms(model);
  sort_nodes(*model.mutable_graph(), problems, c.warnings);
  refuse_if(problems);
  take_weights(*model.mutable_graph(), c.stored);
  inline_functions(model);
  take_weights(*model.mutable_graph(), c.stored);
  convert(model, norms, c.warnings);
  check_nodes(model, problems);
  refuse_if(problems);
  classify(model.graph(), c.stored);
  for (const Stored& s : c.stored) c.stored_names.insert(s.name);
  return Model(std::move(contents));
}

BoundModel Model::bind(const BindOptions& options) const {
  const Contents& c = *contents_;
  BoundModel bound;
  bound.warnings = c.warnings;
  ::onnx::ModelProto model = c.canonical;
  std::vector<Stored> stored = c.stored;
  std::vector<Diagnostic> problems;
  int64_t exported = exported_batch(model.graph(), c.stored_names);
  check_declared_batch(model, options, exported, problems);
  bound.dims = bind_dims(*model.mutable_graph(), c.stored_names, options, problems);
  refuse_if(problems);

  bool artifact = is_training_artifact(model.graph());
  bool forward = !artifact && !has_phases(model.graph());  // a training graph is taken as it is
  std::vector<int> folded = forward ? folded_convs(model.graph(), stored) : std::vector<int>();
  bound.inference_export = !folded.empty();
  if (bound.inference_export) bound.warnings.push_back(inference_export_warning(static_cast<int>(folded.size())));
  if (options.assume_batch_norm) assume_batch_norms(*model.mutable_graph(), folded, stored);

  std::map<std::string, int> expanded;
  Lowered lowered;
  Inferred inferred;
  for (bool changed = true; changed;) {
    inferred = infer(model, forward);
    // What a loop makes may have no shape before the loop is unrolled: problems count when that is done.
    changed = forward && options.has_rule && lower(model, inferred, stored, lowered);
    if (changed) continue;
    for (Diagnostic& problem : inferred.problems)
      if (auto kept = lowered.kept.find(problem.node); kept != lowered.kept.end())
        problem.hint = kept->second.reason + "; " + kLowerHint;
    if (options.batch && *options.batch != exported)
      explain_baked_batch(model.graph(), inferred, exported, *options.batch, inferred.problems);
    refuse_if(inferred.problems);
    changed = forward && expand_functions(model, inferred, options, expanded);
  }
  for (const auto& [op, count] : lowered.replaced)
    bound.warnings.push_back({"unrolled",
                              op + " (" + std::to_string(count) + (count == 1 ? " node" : " nodes") +
                                  ") is replaced by its steps as plain operators",
                              "", "", ""});
  for (const auto& [node, kept] : lowered.kept)
    bound.warnings.push_back({"not-unrolled",
                              "node " + node + " stays one operator, which has no gradient: " + kept.reason +
                                  (kept.opaque ? "; assumed: one operation for each element it makes" : ""),
                              node, "", kLowerHint});
  for (const auto& [op, count] : expanded)
    bound.warnings.push_back({"expanded",
                              op + " (" + std::to_string(count) + (count == 1 ? " node" : " nodes") +
                                  ") has no gradient rule of its own: replaced by its ONNX definition",
                              "", "", ""});
  bound.graph = to_ir(model, inferred, stored, artifact);
  if (artifact) recognise_training(bound.graph);
  warn_of_foreign(model, bound.warnings);
  bound.is_training_graph = artifact || has_phases_after_forward(model.graph());
  if (forward) bound.lifted = lift(bound.graph, options.has_rule);
  return bound;
}

std::string Model::structure(bool short_names) const {
  ::onnx::ModelProto model = contents_->original;
  // What a training artifact's nodes are for is inferred from their names.
  if (short_names && !is_training_artifact(model.graph())) shorten_names(model);
  return model.SerializeAsString();
}

}  // namespace monet
