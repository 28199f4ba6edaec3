// `--batch N` on a model whose exporter wrote its own batch into constants (DESIGN section 5, "Batch"): finds the node
// to blame. Two ways to notice: inference fails somewhere (an explicit Reshape target does not fit; a class token
// expanded to batch 1 meets a batch of N), or it succeeds with a nonsense shape (Reshape [1, -1] folds the batch into
// the features).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/onnx/infer.h"

namespace monet {

// Batch that the file's data inputs have: their first fixed dimension 0; 0 when none has a fixed one.
int64_t exported_batch(const ::onnx::GraphProto& graph, const std::unordered_set<std::string>& stored);

// Replaces `problems` (of inference at batch `batch`) by one "baked-batch" problem where that is the reason, and adds
// one where inference alone did not notice. Call only when `batch` differs from the exported one.
void explain_baked_batch(const ::onnx::GraphProto& graph, const Inferred& inferred, int64_t exported, int64_t batch,
                         std::vector<Diagnostic>& problems);

}  // namespace monet
