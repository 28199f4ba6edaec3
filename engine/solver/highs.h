// Solving linear and integer programs with HiGHS (Huangfu and Hall, Math. Prog. Comp. 10, 2018). In the page this is a
// module of its own, loaded when it is first used; natively the command line and tests link it.
#pragma once

#include "engine/solver/linear_program.h"

namespace monet {

// Never throws: what HiGHS refuses is Status::failed. Deterministic: one thread, a fixed seed, limits on nodes only.
Solution solve(const LinearProgram& program, const SolveLimits& limits = {}, const std::vector<double>& start = {},
               const SolveProgress& progress = {});

}  // namespace monet
