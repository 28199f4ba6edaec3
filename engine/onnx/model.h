// ONNX bytes -> ir::Graph. Follows DESIGN decisions 1, 2 and 16: ONNX's own library checks, converts, expands and
// infers; weights are never read; every dimension of the result is a number.
//
// Two steps, because settings change more often than the file: `Model::open` walks the file once and keeps its
// structure (payload-free, kilobytes); `Model::bind` gives symbolic dimensions their values and infers all shapes.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/diagnostic.h"
#include "engine/ir/graph.h"
#include "engine/onnx/byte_source.h"

namespace monet {

struct BindOptions {
  std::map<std::string, int64_t> dims;  // by name ("batch", "sequence"); unnamed unknown ones are "<tensor>_<axis>"
  std::optional<int64_t> batch;         // replaces dimension 0 of every data input, whether symbolic or fixed
  // Whether training has a gradient rule of its own for an operator; one without a rule is expanded by its ONNX
  // function body, if it has one.
  std::function<bool(const std::string& domain, const std::string& op)> has_rule;
  // Put a BatchNormalization after every Conv that looks like one was folded into it (DESIGN decision 16).
  bool assume_batch_norm = false;
};

// A dimension that the file leaves open, and the number it got.
struct BoundDim {
  std::string name;
  std::string tensor;  // the first input that has it
  int axis = 0;
  int64_t value = 1;
  bool defaulted = false;  // true: nobody gave a value, so it is 1
};

struct BoundModel {
  Graph graph;  // forward (but see is_training_graph), sorted, shapes complete, units assigned
  std::vector<BoundDim> dims;
  std::vector<Diagnostic> warnings;   // "unsorted", "inference-export", "expanded", ...
  bool inference_export = false;      // BatchNorms look folded away, or dropouts gone (decision 16)
  bool is_training_graph = false;     // the file is a training graph already: `graph` holds all phases, as they are
  std::map<std::string, int> lifted;  // nodes made of what the exporter had decomposed, by operator (lift.h)
};

struct ReadStatistics {
  uint64_t file_bytes = 0;
  uint64_t read_bytes = 0;  // fetched from the source
  uint64_t reads = 0;
};

class Model {
 public:
  // Throws Refusal with all problems of the file. `name` is the file's name, for messages and reports.
  static Model open(ByteSource& source, std::string name);
  ~Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;

  // Throws Refusal with all problems (operators without schema, shapes that cannot be inferred, baked-in batch, ...).
  BoundModel bind(const BindOptions& options) const;

  const std::string& name() const;
  int opset() const;           // of ai.onnx, as in the file
  int64_t node_count() const;  // as in the file, before folding and expansion
  const ReadStatistics& reads() const;

  // The payload-free ONNX bytes, documentation strings and metadata dropped: what a link holds and what examples/models
  // are. `short_names` renames nodes and inner tensors to the shortest unused ones (inputs, outputs, parameters keep
  // theirs). Model::open reads it back to the same bound graph.
  std::string structure(bool short_names) const;

 private:
  struct Contents;
  explicit Model(std::unique_ptr<Contents> contents);
  std::unique_ptr<Contents> contents_;
};

// An ir::Graph as a valid ONNX model (IR 10, opset 22): parameters, buffers, states and scalars are graph inputs,
// constants are initializers; phase, role, origin and unit stand in each node's metadata_props. Passes ONNX's checker
// with strict shape inference, or throws Refusal: every declared shape must equal the inferred one.
std::string export_model(const Graph& graph);

}  // namespace monet
