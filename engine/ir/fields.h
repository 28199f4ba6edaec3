// Reading a JSON document whose author is a person: every problem is collected, each under the path of its field, so
// that one run shows them all; nothing that a file can contain aborts or hangs. Used by the parsers of hardware,
// workload and mapping files.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/ir/diagnostic.h"

namespace monet {

// Keeps the order of the file: the levels of a memory hierarchy are listed lowest to highest.
using Json = nlohmann::ordered_json;

// The first hundred of each; who wrote more than that needs no longer list.
struct Findings {
  std::vector<Diagnostic> problems;
  std::vector<Diagnostic> warnings;
  void problem(const std::string& code, const std::string& path, const std::string& what, const std::string& hint = "");
  void warning(const std::string& code, const std::string& path, const std::string& what, const std::string& hint = "");
};

// Parses text from anywhere. Syntax errors (with line and column), a key written twice in one object, nesting, objects
// and text of a size that no description has are problems; the result is then empty. `what` names the text in
// the message ("the hardware description", or a file's name) and prefixes paths when it names a file.
std::optional<Json> read_json(const std::string& text, const std::string& what, const std::string& path,
                              Findings& findings);

// The value as a message shows it: scalars as JSON, shortened; "an object", "an array", "null".
std::string describe(const Json& value);
// A number, or a string that YAML 1.1 reads as one ("16_777_216", "1e10").
std::optional<double> number_in(const Json& value);
// The same, when it is whole and fits.
std::optional<int64_t> integer_in(const Json& value);
std::string trimmed(const std::string& text);             // without blanks at its ends
std::vector<std::string> split(const std::string& text);  // "a, b" -> {"a", "b"}
// A loop and how far it is unrolled, as "K, 8".
std::optional<std::pair<std::string, int64_t>> unrolling_in(const Json& value);
// "a.b", or "b" below the top.
std::string join_path(const std::string& path, const std::string& field);
// The candidate closest to `word` when a typing error is likely (edit distance 1 or 2, below a third of the length).
std::string closest(const std::string& word, const std::vector<std::string>& candidates);

// One object of the document. Fields asked for count as known; `finish` warns about the others.
class Fields {
 public:
  Fields(const Json& object, std::string path, Findings& findings)
      : object_(object), path_(std::move(path)), findings_(findings) {}

  const std::string& path() const { return path_; }
  Findings& findings() const { return findings_; }

  bool has(const std::string& name);                       // present and not null
  const Json* find(const std::string& name);               // nullptr when absent or null
  void accept(std::initializer_list<const char*> names);   // known, without effect
  void require(std::initializer_list<const char*> names);  // "missing-field" for those absent

  // Absent: nothing. Present and wrong: a problem, and nothing.
  std::optional<int64_t> integer(const std::string& name, int64_t low, int64_t high);
  std::optional<double> number(const std::string& name, double low, double high);
  std::optional<std::string> text(const std::string& name);
  std::vector<std::string> texts(const std::string& name);  // array of strings; absent: empty
  const Json* object(const std::string& name);
  const Json* array(const std::string& name);

  void finish();

 private:
  const Json& object_;
  std::string path_;
  Findings& findings_;
  std::vector<std::string> known_;
};

}  // namespace monet
