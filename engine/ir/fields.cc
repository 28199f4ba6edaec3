#include "engine/ir/fields.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace monet {

namespace {

// A hardware description has kilobytes, a handful of levels and at most some thousands of cores, a workload at most
// some thousands of layers of half a kilobyte; the limits keep memory and time small for anything else (ordered_json
// looks keys up linearly).
constexpr size_t kMaxBytes = 4 << 20;
constexpr int kMaxDepth = 32;
constexpr size_t kMaxKeys = 4096;
constexpr size_t kMaxProblems = 100;
constexpr size_t kShown = 40;  // characters of a value that a message repeats

struct TooDeep {};
struct TooManyKeys {};

// "[json.exception.parse_error.101] parse error at line 1, column 2: ..." -> "line 1, column 2: ...", printable ASCII.
std::string syntax_error(const char* raw) {
  std::string text = raw;
  if (size_t end = text.find("] "); text[0] == '[' && end != std::string::npos) text.erase(0, end + 2);
  const std::string prefix = "parse error at ";
  if (text.compare(0, prefix.size(), prefix) == 0) text.erase(0, prefix.size());
  for (char& c : text) {
    unsigned char byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) c = '?';  // the text may be cut inside a UTF-8 character
  }
  return text;
}

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row[b.size()];
}

// Paths and hints repeat keys of the file, which can hold anything: kept to one line.
std::string one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  return text;
}

Diagnostic finding(const std::string& code, const std::string& path, const std::string& what, const std::string& hint) {
  return {code, one_line(path.empty() ? what : path + ": " + what), one_line(path), "", one_line(hint)};
}

// "0" rather than "0.0".
std::string plain(double value) {
  return value == std::floor(value) && std::fabs(value) < 1e15 ? std::to_string(static_cast<int64_t>(value))
                                                               : Json(value).dump();
}

}  // namespace

void Findings::problem(const std::string& code, const std::string& path, const std::string& what,
                       const std::string& hint) {
  if (problems.size() < kMaxProblems) problems.push_back(finding(code, path, what, hint));
}

void Findings::warning(const std::string& code, const std::string& path, const std::string& what,
                       const std::string& hint) {
  if (warnings.size() < kMaxProblems) warnings.push_back(finding(code, path, what, hint));
}

std::optional<Json> read_json(const std::string& text, const std::string& what, const std::string& path,
                              Findings& findings) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) {
    findings.problem("bad-json", path, what + " is empty", "give a JSON object");
    return {};
  }
  if (text.size() > kMaxBytes) {
    findings.problem("bad-json", path,
                     what + " has " + std::to_string(text.size()) + " bytes, more than the " +
                         std::to_string(kMaxBytes) + " that a description can have");
    return {};
  }
  // Per open object: its keys; per open object or array: the key or nothing, for paths of duplicates.
  std::vector<std::set<std::string>> keys;
  std::vector<std::string> trail;
  std::string last_key;
  auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth > kMaxDepth) throw TooDeep();
      trail.push_back(last_key);
      last_key.clear();
      if (event == Event::object_start) keys.emplace_back();
    } else if (event == Event::object_end || event == Event::array_end) {
      trail.pop_back();
      if (event == Event::object_end) keys.pop_back();
    } else if (event == Event::key) {
      last_key = parsed.get<std::string>();
      if (keys.back().size() >= kMaxKeys) throw TooManyKeys();
      if (!keys.back().insert(last_key).second) {
        std::string where = path;
        for (const std::string& step : trail)
          if (!step.empty()) where = join_path(where, step);
        findings.problem("duplicate-field", join_path(where, last_key), "is written twice");
      }
    }
    return true;
  };
  size_t before = findings.problems.size();
  try {
    Json parsed = Json::parse(text, watch);
    if (findings.problems.size() > before) return {};
    return parsed;
  } catch (const Json::exception& error) {
    findings.problem("bad-json", path, what + " is not valid JSON: " + syntax_error(error.what()));
  } catch (const TooDeep&) {
    findings.problem("bad-json", path, what + " nests deeper than " + std::to_string(kMaxDepth) + " levels");
  } catch (const TooManyKeys&) {
    findings.problem("bad-json", path, what + " has an object with more than " + std::to_string(kMaxKeys) + " fields");
  }
  return {};
}

std::string describe(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  std::string text = value.dump(-1, ' ', true);  // ASCII, so that cutting cannot split a character
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

std::optional<double> number_in(const Json& value) {
  if (value.is_number()) {
    double number = value.get<double>();
    return std::isfinite(number) ? std::optional<double>(number) : std::nullopt;
  }
  if (!value.is_string()) return {};
  std::string digits;
  for (char c : value.get_ref<const std::string&>())
    if (c != '_') digits += c;
  // JSON's own number grammar: no "NaN", "0x10", "1 2" or empty string, and no dependence on the locale.
  if (digits.empty() || (digits[0] != '-' && (digits[0] < '0' || digits[0] > '9'))) return {};
  Json parsed = Json::parse(digits, nullptr, false);
  return parsed.is_number() ? number_in(parsed) : std::nullopt;
}

std::optional<int64_t> integer_in(const Json& value) {
  if (value.is_number_unsigned()) {
    uint64_t number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return {};
    return static_cast<int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  std::optional<double> number = number_in(value);
  // Below 2^63, which a double holds exactly.
  if (!number || *number != std::floor(*number) || std::fabs(*number) >= 9223372036854775808.0) return {};
  return static_cast<int64_t>(*number);
}

std::string trimmed(const std::string& text) {
  size_t begin = text.find_first_not_of(" \t"), end = text.find_last_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, end - begin + 1);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t from = 0;;) {
    size_t comma = text.find(',', from);
    parts.push_back(trimmed(text.substr(from, comma - from)));
    if (comma == std::string::npos) return parts;
    from = comma + 1;
  }
}

std::optional<std::pair<std::string, int64_t>> unrolling_in(const Json& value) {
  std::vector<std::string> parts = value.is_string() ? split(value.get<std::string>()) : std::vector<std::string>{};
  std::optional<int64_t> unroll = parts.size() == 2 ? integer_in(Json(parts[1])) : std::nullopt;
  if (!unroll || *unroll < 1 || parts[0].empty()) return {};
  return std::make_pair(parts[0], *unroll);
}

std::string join_path(const std::string& path, const std::string& field) {
  if (path.empty()) return field;
  // "pe.json:memories.sram": the file's name ends with a colon.
  return path.back() == ':' ? path + field : path + "." + field;
}

std::string closest(const std::string& word, const std::vector<std::string>& candidates) {
  constexpr size_t kLongest = 64;  // of a field's name; a longer word is not a typing error
  std::string best;
  if (word.size() > kLongest) return best;
  size_t least = std::min<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    size_t distance = edit_distance(word, candidate);
    if (distance < least) {
      least = distance;
      best = candidate;
    }
  }
  return best;
}

const Json* Fields::find(const std::string& name) {
  known_.push_back(name);
  auto at = object_.find(name);
  return at == object_.end() || at->is_null() ? nullptr : &*at;
}

bool Fields::has(const std::string& name) { return find(name) != nullptr; }

void Fields::accept(std::initializer_list<const char*> names) {
  known_.insert(known_.end(), names.begin(), names.end());
}

void Fields::require(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (!has(name)) findings_.problem("missing-field", join_path(path_, name), "is missing");
}

std::optional<int64_t> Fields::integer(const std::string& name, int64_t low, int64_t high) {
  const Json* value = find(name);
  if (!value) return {};
  std::optional<int64_t> number = integer_in(*value);
  if (number && *number >= low && *number <= high) return number;
  std::string range = number && *number > high ? "<= " + std::to_string(high) : ">= " + std::to_string(low);
  findings_.problem("bad-field", join_path(path_, name),
                    "must be a whole number " + range + ", is " + describe(*value));
  return {};
}

std::optional<double> Fields::number(const std::string& name, double low, double high) {
  const Json* value = find(name);
  if (!value) return {};
  std::optional<double> number = number_in(*value);
  if (number && *number >= low && *number <= high) return number;
  std::string range = number && *number > high ? "<= " + plain(high) : ">= " + plain(low);
  findings_.problem("bad-field", join_path(path_, name), "must be a number " + range + ", is " + describe(*value));
  return {};
}

std::optional<std::string> Fields::text(const std::string& name) {
  const Json* value = find(name);
  if (!value) return {};
  if (value->is_string()) return value->get<std::string>();
  findings_.problem("bad-field", join_path(path_, name), "must be a string, is " + describe(*value));
  return {};
}

std::vector<std::string> Fields::texts(const std::string& name) {
  std::vector<std::string> result;
  const Json* value = array(name);
  if (!value) return result;
  for (size_t i = 0; i < value->size(); ++i) {
    const Json& item = (*value)[i];
    if (item.is_string()) {
      result.push_back(item.get<std::string>());
    } else {
      findings_.problem("bad-field", join_path(path_, name + "." + std::to_string(i)),
                        "must be a string, is " + describe(item));
    }
  }
  return result;
}

const Json* Fields::object(const std::string& name) {
  const Json* value = find(name);
  if (!value || value->is_object()) return value;
  findings_.problem("bad-field", join_path(path_, name), "must be an object, is " + describe(*value));
  return nullptr;
}

const Json* Fields::array(const std::string& name) {
  const Json* value = find(name);
  if (!value || value->is_array()) return value;
  findings_.problem("bad-field", join_path(path_, name), "must be an array, is " + describe(*value));
  return nullptr;
}

void Fields::finish() {
  for (auto it = object_.begin(); it != object_.end(); ++it) {
    if (std::find(known_.begin(), known_.end(), it.key()) != known_.end()) continue;
    std::string meant = closest(it.key(), known_);
    findings_.warning("unknown-field", join_path(path_, it.key()), "is not a field of this format and has no effect",
                      meant.empty() ? "" : "did you mean \"" + meant + "\"?");
  }
}

}  // namespace monet
