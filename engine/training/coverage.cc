#include "engine/training/coverage.h"

#include <map>
#include <set>

#include "engine/onnx/operators.h"
#include "engine/training/gradient_rules.h"

namespace monet {

const char* name(Coverage coverage) {
  constexpr const char* kNames[] = {"rule", "by expansion", "stops the gradient", "not supported"};
  return kNames[static_cast<size_t>(coverage)];
}

namespace {

// Why operators that could pass a gradient do not. One line each; an operator leaves this table when it gets a rule.
constexpr const char* kNoTensors = "works on sequences or optionals, which are no tensors: refused on import";
const std::map<std::string, const char*>& reasons() {
  static const std::map<std::string, const char*> table = {
      {"ConcatFromSequence", kNoTensors},
      {"Optional", kNoTensors},
      {"OptionalGetElement", kNoTensors},
      {"SequenceAt", kNoTensors},
      {"SequenceConstruct", kNoTensors},
      {"SequenceEmpty", kNoTensors},
      {"SequenceErase", kNoTensors},
      {"SequenceInsert", kNoTensors},
      {"SequenceMap", kNoTensors},
      {"SplitToSequence", kNoTensors},
      {"Unique", "the shape of its output depends on the data: refused on import"},
      {"DeformConv", "no rule: windows at learned positions are not taken apart"},
      {"MaxRoiPool", "no rule: windows at places that depend on the data"},
  };
  return table;
}

class Table {
 public:
  Table() {
    for (const OperatorInfo& info : onnx_operators()) infos_.emplace(info.name, info);
  }

  std::vector<OperatorCoverage> rows() const {
    std::vector<OperatorCoverage> all;
    for (const auto& [op, info] : infos_) all.push_back(row(info));
    return all;
  }

 private:
  OperatorCoverage row(const OperatorInfo& info) const {
    OperatorCoverage row{.op = info.name, .since = info.since};
    if (find_gradient_rule("", info.name)) {
      row.coverage = Coverage::rule;
    } else if (const char* reason = gradient_stops("", info.name)) {
      row.coverage = Coverage::stops;
      row.note = reason;
    } else if (!info.has_float_output) {
      row.coverage = Coverage::stops;
      row.note = "its outputs are no floating-point numbers";
    } else if (!info.lowered.empty()) {
      row.coverage = Coverage::expansion;
      row.note = info.lowered;
    } else if (expands(info)) {
      row.coverage = Coverage::expansion;
      for (const std::string& op : info.body) row.note += (row.note.empty() ? "" : ", ") + op;
    } else if (auto found = reasons().find(info.name); found != reasons().end()) {
      row.note = found->second;
    }
    return row;
  }

  // Bodies that depend on the node's types are not looked into: the operator models of tests/numeric go through them.
  bool expands(const OperatorInfo& info) const {
    if (!info.has_body) return false;
    for (const std::string& op : info.body)
      if (auto inner = infos_.find(op); inner == infos_.end() || row(inner->second).coverage == Coverage::unsupported)
        return false;
    return true;
  }

  std::map<std::string, OperatorInfo> infos_;
};

}  // namespace

std::vector<ImportRefusal> import_refusals() {
  constexpr const char* kData = "the shape of its output depends on the data; every dimension must be a number";
  constexpr const char* kOther = "sequences, maps and optionals are no tensors";
  constexpr const char* kTrips = "its outputs grow by a number of trips that depends on the data";
  return {
      {"unsupported-type", "", kOther},
      {"unsupported-type", "If", kOther},
      {"unsupported-type", "SequenceConstruct", kOther},
      {"unsupported-type", "SequenceEmpty", kOther},
      {"unsupported-type", "SplitToSequence", kOther},
      {"unknown-shape", "Compress", kData},
      {"unknown-shape", "Loop", kTrips},
      {"unknown-shape", "MaxUnpool", "ONNX infers no shape from an output_shape given as an input"},
      {"unknown-shape", "NonMaxSuppression", kData},
      {"unknown-shape", "NonZero", kData},
      {"unknown-shape", "StringNormalizer", kData},
      {"unknown-shape", "Unique", kData},
      {"shape-error", "Scan",
       "Scan of opset 8, with a batch dimension of its own, which ONNX's converter does not know"},
  };
}

std::vector<OperatorCoverage> operator_coverage() { return Table().rows(); }

std::string operators_markdown() {
  std::vector<OperatorCoverage> rows = operator_coverage();
  std::map<Coverage, int> counts;
  for (const OperatorCoverage& row : rows) ++counts[row.coverage];
  std::string text =
      "# Operators and their gradients\n\n"
      "Every operator of ai.onnx at opset 22, and what a training graph does with it. Written by `monet operators`; a\n"
      "test compares it with what the engine says.\n\n"
      "- **rule**: a gradient rule of its own, in standard ONNX operators.\n"
      "- **by expansion**: replaced by its ONNX definition before differentiation.\n"
      "- **stops the gradient**: has none by definition; what comes before it is reached by other paths only.\n"
      "- **not supported**: refused by name when a gradient would have to pass.\n\n";
  text += std::to_string(rows.size()) + " operators: ";
  const char* separator = "";
  for (const auto& [coverage, count] : counts) {
    text += separator + std::to_string(count) + " " + name(coverage);
    separator = ", ";
  }
  text += ".\n\n| operator | since opset | gradient | note |\n|---|---|---|---|\n";
  for (const OperatorCoverage& row : rows)
    text += "| " + row.op + " | " + std::to_string(row.since) + " | " + name(row.coverage) + " | " + row.note + " |\n";
  text +=
      "\n## What import refuses\n\n"
      "Valid models that are refused before any gradient is asked for.\n\n"
      "| operator | refused as | reason |\n|---|---|---|\n";
  for (const ImportRefusal& r : import_refusals())
    text += "| " + (r.op.empty() ? "(inputs)" : r.op) + " | " + r.code + " | " + r.reason + " |\n";
  return text;
}

}  // namespace monet
