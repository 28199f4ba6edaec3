// What ONNX's own registry says about the operators of ai.onnx.
#pragma once

#include <string>
#include <vector>

namespace monet {

struct OperatorInfo {
  std::string name;
  int since = 1;                  // the opset of its newest definition, at most 22
  bool has_body = false;          // ONNX defines it by a function of simpler operators
  bool has_float_output = false;  // some output can be of a floating-point type
  // Operators of the body where it is the same for every node, each once; empty where it depends on the node's types.
  std::vector<std::string> body;
  // When import replaces it by its steps (lower.h); empty when it never does.
  std::string lowered;
};

// Every operator of ai.onnx at opset 22 that is not deprecated, by name.
std::vector<OperatorInfo> onnx_operators();

}  // namespace monet
