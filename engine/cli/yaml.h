// YAML -> JSON at the edge: Stream's and ZigZag's files are YAML, the engine reads JSON.
#pragma once

#include <string>

namespace monet {

// `name` is the file's, for messages. Throws Refusal with line and column on a syntax error.
std::string yaml_to_json(const std::string& yaml, const std::string& name);

}  // namespace monet
