// Linear programs and their solutions as JavaScript objects of typed arrays: what the engine's module hands to the
// solver's, and back.
#pragma once

#include <emscripten/val.h>

#include <string>
#include <vector>

#include "engine/solver/linear_program.h"

namespace monet {

template <typename Number>
emscripten::val array_to_script(const char* type, const std::vector<Number>& numbers) {
  // A copy: the view is into the heap, which moves when it grows.
  return emscripten::val::global(type).new_(emscripten::typed_memory_view(numbers.size(), numbers.data()));
}

template <typename Number>
std::vector<Number> array_from_script(const emscripten::val& array) {
  std::vector<Number> numbers(array["length"].as<size_t>());
  emscripten::val(emscripten::typed_memory_view(numbers.size(), numbers.data())).call<void>("set", array);
  return numbers;
}

inline emscripten::val to_script(const LinearProgram& p) {
  emscripten::val object = emscripten::val::object();
  object.set("cost", array_to_script("Float64Array", p.cost));
  object.set("lower", array_to_script("Float64Array", p.lower));
  object.set("upper", array_to_script("Float64Array", p.upper));
  object.set("integer", array_to_script("Uint8Array", p.integer));
  object.set("rowLower", array_to_script("Float64Array", p.row_lower));
  object.set("rowUpper", array_to_script("Float64Array", p.row_upper));
  object.set("start", array_to_script("Int32Array", p.start));
  object.set("column", array_to_script("Int32Array", p.column));
  object.set("value", array_to_script("Float64Array", p.value));
  return object;
}

inline LinearProgram program_from_script(const emscripten::val& object) {
  LinearProgram p;
  p.cost = array_from_script<double>(object["cost"]);
  p.lower = array_from_script<double>(object["lower"]);
  p.upper = array_from_script<double>(object["upper"]);
  p.integer = array_from_script<uint8_t>(object["integer"]);
  p.row_lower = array_from_script<double>(object["rowLower"]);
  p.row_upper = array_from_script<double>(object["rowUpper"]);
  p.start = array_from_script<int32_t>(object["start"]);
  p.column = array_from_script<int32_t>(object["column"]);
  p.value = array_from_script<double>(object["value"]);
  return p;
}

inline emscripten::val to_script(const Solution& s) {
  emscripten::val object = emscripten::val::object();
  object.set("status", std::string(name(s.status)));
  object.set("x", array_to_script("Float64Array", s.x));
  object.set("objective", s.objective);
  object.set("bound", s.bound);
  object.set("nodes", static_cast<double>(s.nodes));
  object.set("gap", s.gap());
  return object;
}

inline Solution solution_from_script(const emscripten::val& object) {
  Solution s;
  std::string status = object["status"].as<std::string>();
  for (Solution::Status known :
       {Solution::Status::optimal, Solution::Status::limit, Solution::Status::infeasible, Solution::Status::cancelled})
    if (status == name(known)) s.status = known;
  s.x = array_from_script<double>(object["x"]);
  s.objective = object["objective"].as<double>();
  s.bound = object["bound"].as<double>();
  s.nodes = static_cast<int64_t>(object["nodes"].as<double>());
  return s;
}

}  // namespace monet
