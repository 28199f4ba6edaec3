// What was wrong with an input, as data: the same five fields reach the command line, the report and the page.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace monet {

// One problem, one line. `code` is stable and machine-readable (kebab-case, e.g. "no-gradient"), `message` a whole
// sentence that names what and where, `node` and `tensor` the names in the user's file (empty where not applicable;
// for hardware and settings `tensor` is empty and `node` is the path of the field, e.g. "cores.0.memories.sram.size"),
// `hint` what the user can do about it.
struct Diagnostic {
  std::string code;
  std::string message;
  std::string node;
  std::string tensor;
  std::string hint;
};

// An input that cannot be used, with every problem found in it (never empty). The only exception that rooms throw on
// purpose; analysis/ turns it into data.
class Refusal : public std::runtime_error {
 public:
  explicit Refusal(std::vector<Diagnostic> problems)
      : std::runtime_error(problems.empty() ? std::string("refused") : problems.front().message),
        problems_(std::move(problems)) {}
  explicit Refusal(Diagnostic problem) : Refusal(std::vector<Diagnostic>{std::move(problem)}) {}
  const std::vector<Diagnostic>& problems() const { return problems_; }

 private:
  std::vector<Diagnostic> problems_;
};

}  // namespace monet
