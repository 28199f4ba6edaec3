#include "engine/solver/linear_program.h"

#include <algorithm>
#include <cmath>

namespace monet {

double Solution::gap() const {
  if (objective == bound) return 0;
  return std::max(0.0, objective - bound) / std::max(std::abs(objective), 1e-300);
}

const char* name(Solution::Status status) {
  switch (status) {
    case Solution::Status::optimal:
      return "optimal";
    case Solution::Status::limit:
      return "limit";
    case Solution::Status::infeasible:
      return "infeasible";
    case Solution::Status::cancelled:
      return "cancelled";
    case Solution::Status::failed:
      return "failed";
  }
  return "";
}

}  // namespace monet
