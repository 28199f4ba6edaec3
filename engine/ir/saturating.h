// Sums and products of counts that a hostile model can make overflow: they stop at INT64_MAX. Operands are >= 0.
#pragma once

#include <cstdint>
#include <limits>

namespace monet {

inline int64_t saturating_add(int64_t a, int64_t b) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  return a > kMax - b ? kMax : a + b;
}

inline int64_t saturating_multiply(int64_t a, int64_t b) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  if (a == 0 || b == 0) return 0;
  return a > kMax / b ? kMax : a * b;
}

}  // namespace monet
