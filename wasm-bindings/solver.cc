// Embind over solver/: the page's second module, loaded when the first program is to be solved.
#include <emscripten/bind.h>

#include "engine/solver/highs.h"
#include "wasm-bindings/linear_program.h"

namespace {

using emscripten::val;

// progress(best) is told the best so far.
val solve(val program, double gap, double most_nodes, val start, val progress) {
  monet::SolveLimits limits{gap, static_cast<int64_t>(most_nodes)};
  return to_script(monet::solve(monet::program_from_script(program), limits, monet::array_from_script<double>(start),
                                [&](const monet::Solution& best) {
                                  if (!progress.isUndefined()) progress(to_script(best));
                                  return true;
                                }));
}

}  // namespace

EMSCRIPTEN_BINDINGS(solver) { emscripten::function("solve", &solve); }
