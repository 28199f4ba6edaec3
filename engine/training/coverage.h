// What training can do with each operator of ai.onnx: docs/operators.md is this table (`monet operators` prints it).
#pragma once

#include <string>
#include <vector>

namespace monet {

enum class Coverage : uint8_t {
  rule,         // a gradient rule of its own (gradient_rules.cc)
  expansion,    // replaced by its ONNX definition, whose operators are covered
  stops,        // no gradient by definition: `note` says why
  unsupported,  // refused when a gradient would have to pass: `note` says why
};
const char* name(Coverage coverage);  // "rule", "by expansion", "stops the gradient", "not supported"

struct OperatorCoverage {
  std::string op;
  int since = 1;  // opset of its newest definition
  Coverage coverage = Coverage::unsupported;
  std::string note;  // for expansions: the operators of the definition, where it is the same for every node
};

// Every operator of ai.onnx at opset 22, by name.
std::vector<OperatorCoverage> operator_coverage();

// A kind of model that import refuses although ONNX allows it.
struct ImportRefusal {
  std::string code;  // of the diagnostic
  std::string op;    // the operator it names; empty: the model's inputs
  std::string reason;
};
std::vector<ImportRefusal> import_refusals();

// Both tables with their counts, as Markdown.
std::string operators_markdown();

}  // namespace monet
