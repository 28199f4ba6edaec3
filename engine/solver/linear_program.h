// Linear programs, their columns integer or not, and what came of solving one. Plain data: what makes programs
// (fusion/) and what solves them (highs.h, a module of its own in the page) meet here.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace monet {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// Minimise cost * x with lower <= x <= upper and, for every row, row_lower <= sum of value * x <= row_upper.
struct LinearProgram {
  // By column.
  std::vector<double> cost, lower, upper;
  std::vector<uint8_t> integer;
  // By row; its entries are at [start[row], start[row + 1]) of `column` and `value`.
  std::vector<double> row_lower, row_upper;
  std::vector<int32_t> start = {0};
  std::vector<int32_t> column;
  std::vector<double> value;

  int32_t columns() const { return static_cast<int32_t>(cost.size()); }
  int32_t rows() const { return static_cast<int32_t>(row_lower.size()); }
  // Returns its index.
  int32_t add_column(double its_cost, double low, double high, bool whole) {
    cost.push_back(its_cost);
    lower.push_back(low);
    upper.push_back(high);
    integer.push_back(whole);
    return columns() - 1;
  }
  // Coefficients of 1.
  void add_row(double low, double high, const std::vector<int32_t>& of) {
    row_lower.push_back(low);
    row_upper.push_back(high);
    column.insert(column.end(), of.begin(), of.end());
    value.resize(column.size(), 1.0);
    start.push_back(static_cast<int32_t>(column.size()));
  }
};

struct Solution {
  enum class Status : uint8_t {
    optimal,     // proven, up to SolveLimits::gap
    limit,       // `x` is the best found within the limits, or empty
    infeasible,  // no x keeps the rows
    cancelled,   // by the caller; `x` is the best found before, or empty
    failed,      // unbounded, or the solver gave up
  } status = Status::failed;
  std::vector<double> x;  // whole numbers exactly where the column is integer
  double objective = kUnbounded;
  double bound = -kUnbounded;  // no x has less
  int64_t nodes = 0;           // of the search tree
  // (objective - bound) / |objective|: 0 where both are equal.
  double gap() const;
};
const char* name(Solution::Status status);

// Nodes and not seconds, so that the same program has the same answer everywhere.
struct SolveLimits {
  double gap = 0;          // relative, at which it may stop
  int64_t most_nodes = 0;  // 0: any number
};

// Told the best so far, each time it or the bound has changed; false ends the search.
using SolveProgress = std::function<bool(const Solution& best)>;
// `start`: a point that keeps all rows, or empty.
using Solve = std::function<Solution(const LinearProgram& program, const SolveLimits& limits,
                                     const std::vector<double>& start, const SolveProgress& progress)>;

}  // namespace monet
