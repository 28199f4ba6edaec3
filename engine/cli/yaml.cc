#include "engine/cli/yaml.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "engine/ir/diagnostic.h"

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

// YAML 1.1's plain scalars: numbers may be grouped with underscores (16_777_216), quoted ones are texts.
Json scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  if (text.empty() || text == "~" || text == "null") return nullptr;
  std::string digits = text;
  digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
  const char* begin = digits.data() + (digits[0] == '+' ? 1 : 0);
  const char* end = digits.data() + digits.size();
  int64_t whole = 0;
  if (auto [at, error] = std::from_chars(begin, end, whole); error == std::errc() && at == end) return whole;
  double real = 0;
  if (auto [at, error] = std::from_chars(begin, end, real);
      error == std::errc() && at == end && digits.find_first_of("0123456789") != std::string::npos)
    return real;
  return text;
}

// Aliases can nest a document in itself a million times over; real hardware files are a few levels deep.
constexpr int kDeepest = 64;

Json convert(const YAML::Node& node, int depth, const std::string& name) {
  if (depth > kDeepest)
    throw Refusal({"bad-yaml", name + ": nested deeper than " + std::to_string(kDeepest) + " levels", "", "", ""});
  if (node.IsMap()) {
    Json object = Json::object();
    for (const auto& entry : node) object[entry.first.Scalar()] = convert(entry.second, depth + 1, name);
    return object;
  }
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const YAML::Node& entry : node) list.push_back(convert(entry, depth + 1, name));
    return list;
  }
  return node.IsScalar() ? scalar(node) : Json(nullptr);
}

}  // namespace

std::string yaml_to_json(const std::string& yaml, const std::string& name) {
  try {
    return convert(YAML::Load(yaml), 0, name).dump();
  } catch (const YAML::Exception& e) {
    throw Refusal({"bad-yaml",
                   name + ", line " + std::to_string(e.mark.line + 1) + ", column " +
                       std::to_string(e.mark.column + 1) + ": " + e.msg,
                   "", "", ""});
  }
}

}  // namespace monet
