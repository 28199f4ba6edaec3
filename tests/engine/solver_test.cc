// HiGHS behind our interface against every point of small integer programs; limits, gaps and cancelling.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "engine/solver/highs.h"
#include "tests/engine/slow_build.h"

namespace monet {
namespace {

// Exact cover of `rows` by random sets, all of one included.
LinearProgram random_cover(std::mt19937& random, int rows, int sets, bool whole_costs) {
  LinearProgram p;
  std::vector<std::vector<int32_t>> of(static_cast<size_t>(rows));
  auto add = [&](const std::set<int>& set) {
    double cost = whole_costs ? 1 + random() % 20 : (1 + random() % 20000) / 1000.0;
    int32_t column = p.add_column(cost, 0, 1, true);
    for (int r : set) of[static_cast<size_t>(r)].push_back(column);
  };
  for (int r = 0; r < rows; ++r) add({r});
  for (int i = 0; i < sets; ++i) {
    std::set<int> set;
    for (size_t k = 0, size = 2 + random() % 4; k < size; ++k) set.insert(static_cast<int>(random() % rows));
    add(set);
  }
  for (const auto& row : of) p.add_row(1, 1, row);
  return p;
}

bool keeps_rows(const LinearProgram& p, const std::vector<double>& x) {
  for (int32_t r = 0; r < p.rows(); ++r) {
    double sum = 0;
    for (int32_t i = p.start[r]; i < p.start[r + 1]; ++i) sum += p.value[i] * x[p.column[i]];
    if (sum < p.row_lower[r] - 1e-6 || sum > p.row_upper[r] + 1e-6) return false;
  }
  return true;
}

TEST(Solver, FindsTheLeastOfAllPoints) {
  std::mt19937 random(1);
  int infeasible = 0;
  for (int i = 0; i < 200; ++i) {
    SCOPED_TRACE(i);
    LinearProgram p = random_cover(random, 3 + random() % 5, 2 + random() % 7, i % 2 == 0);
    // Further rows: some pairs exclude each other.
    for (size_t k = 0; k < random() % 3; ++k) {
      auto a = static_cast<int32_t>(random() % p.columns()), b = static_cast<int32_t>(random() % p.columns());
      if (a != b) p.add_row(-kUnbounded, 1, {a, b});
    }
    if (i % 10 == 0) p.add_row(1, 1, {0, 1}), p.add_row(2, kUnbounded, {0, 1});
    double least = kUnbounded;
    for (uint32_t bits = 0; bits < 1u << p.columns(); ++bits) {
      std::vector<double> x(static_cast<size_t>(p.columns()));
      double cost = 0;
      for (size_t c = 0; c < x.size(); ++c) {
        x[c] = bits >> c & 1;
        cost += x[c] * p.cost[c];
      }
      if (cost < least && keeps_rows(p, x)) least = cost;
    }
    Solution s = solve(p);
    if (least == kUnbounded) {
      EXPECT_EQ(s.status, Solution::Status::infeasible);
      EXPECT_TRUE(s.x.empty());
      ++infeasible;
      continue;
    }
    ASSERT_EQ(s.status, Solution::Status::optimal);
    EXPECT_NEAR(s.objective, least, 1e-9);
    EXPECT_NEAR(s.bound, least, 1e-6);
    EXPECT_TRUE(keeps_rows(p, s.x));
    for (double v : s.x) EXPECT_TRUE(v == 0 || v == 1);
  }
  EXPECT_GT(infeasible, 5);
}

TEST(Solver, SolvesLinearPrograms) {
  // max x + 2y with x + y <= 4, x + 3y <= 6: (3, 1), 5.
  LinearProgram p;
  p.add_column(-1, 0, kUnbounded, false);
  p.add_column(-2, 0, kUnbounded, false);
  p.add_row(-kUnbounded, 4, {0, 1});
  p.add_row(-kUnbounded, 6, {0, 1});
  p.value.back() = 3;
  Solution s = solve(p);
  EXPECT_EQ(s.status, Solution::Status::optimal);
  EXPECT_NEAR(s.objective, -5, 1e-9);
  EXPECT_NEAR(s.x[0], 3, 1e-9);
  EXPECT_NEAR(s.x[1], 1, 1e-9);
  p.row_upper = {kUnbounded, kUnbounded};
  EXPECT_EQ(solve(p).status, Solution::Status::failed) << "unbounded";
}

// A bound that the solver gives with a gap allowed is one: the optimum is not below it.
TEST(Solver, BoundsHoldWithAGap) {
  std::mt19937 random(2);
  int open = 0;
  for (int i = 0; i < (kSlowBuild == 1 ? 30 : 6); ++i) {
    LinearProgram p = random_cover(random, 40, 300, false);
    Solution exact = solve(p), rough = solve(p, {.gap = 0.2});
    ASSERT_EQ(exact.status, Solution::Status::optimal);
    EXPECT_LE(exact.gap(), 1e-6);
    EXPECT_LE(rough.bound, exact.objective + 1e-6);
    EXPECT_GE(rough.objective, exact.objective - 1e-6);
    EXPECT_LE(rough.gap(), 0.2 + 1e-6);
    open += rough.gap() > 0;
  }
  EXPECT_GT(open, 0);
}

TEST(Solver, KeepsTheBestWhenItEndsEarly) {
  std::mt19937 random(3);
  LinearProgram p = random_cover(random, 60, 500, false);
  std::vector<double> alone(static_cast<size_t>(p.columns()), 0);
  double cost = 0;
  for (size_t r = 0; r < 60; ++r) {
    alone[r] = 1;
    cost += p.cost[r];
  }
  Solution exact = solve(p, {}, alone);
  EXPECT_EQ(exact.status, Solution::Status::optimal);
  EXPECT_LT(exact.objective, cost);
  int told = 0;
  Solution stopped = solve(p, {}, alone, [&](const Solution& best) {
    EXPECT_TRUE(keeps_rows(p, best.x));
    EXPECT_LE(best.objective, cost + 1e-9);
    EXPECT_LE(best.bound, exact.objective + 1e-6);
    ++told;
    return false;
  });
  EXPECT_GT(told, 0);
  if (stopped.status != Solution::Status::optimal) {
    EXPECT_EQ(stopped.status, Solution::Status::cancelled);
  }
  EXPECT_TRUE(keeps_rows(p, stopped.x));
  EXPECT_LE(stopped.objective, cost + 1e-9);
  EXPECT_LE(stopped.bound, exact.objective + 1e-6);
}

}  // namespace
}  // namespace monet
