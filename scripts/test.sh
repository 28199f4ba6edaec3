#!/usr/bin/env bash
# Everything the tests need, then all of them: GoogleTest natively (under the sanitizers; the thousands of random mappings
# without) and in WebAssembly under Node, the fuzzer, numeric and conformance tests in Node, the page in Chromium. Ends
# with one line of totals.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need "${BUILD_PACKAGES[@]}" "${NATIVE_PACKAGES[@]}" "${WASM_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
need_node

# Tests that take too long for slow builds: all their cases run in the native one.
native_tests=(mapping_test mapping_oracle_test unit_cost_test scheduler_test stream_oracle_test fusion_test)
build native monet training_export operator_export "${native_tests[@]}"
build wasm
build asan engine_test import_fuzz descriptions_fuzz
build_site
install_node_packages tests
install_node_packages tests/web

# Counts go to a file: tests run in two lanes, one for each core.
totals=build/totals
: >"$totals"
count() { # count NAME PASSED FAILED SKIPPED
  printf '%s: %d passed, %d failed, %d skipped\n' "$1" "$2" "$3" "$4"
  echo "$2 $3 $4" >>"$totals"
}

# GoogleTest of one build: natively under the sanitizers, in WebAssembly under Node, or a program of the native build.
google_tests() { # google_tests VARIANT COMMAND...
  local variant=$1 log=build/$1/engine_test.log status=0 bad
  shift
  say "GoogleTest ($variant)"
  "$@" --gtest_color=no >"$log" 2>&1 || status=$?
  bad=$(grep -c '^\[  FAILED  \] .*([0-9]* ms)$' "$log" || true)
  # A crash prints no line of its own.
  [ "$status" = 0 ] || [ "$bad" != 0 ] || bad=1
  [ "$bad" = 0 ] || cat "$log"
  grep -B2 '^\[  SKIPPED \] .*([0-9]* ms)$' "$log" | grep -v '^--' || true
  grep '^\[ MEASURED \]' "$log" || true
  count "GoogleTest ($variant)" "$(grep -c '^\[       OK \] ' "$log" || true)" "$bad" \
    "$(grep -c '^\[  SKIPPED \] .*([0-9]* ms)$' "$log" || true)"
}

fuzz() { # fuzz NAME SECONDS
  local name=$1 seconds=$2 log=build/asan/$1_fuzz.log
  say "fuzzing: $name for $seconds s"
  mkdir -p "build/asan/corpus/$name"
  if "build/asan/bin/${name}_fuzz" -max_total_time="$seconds" -seed=1 -timeout=10 -rss_limit_mb=2048 -max_len=65536 \
    -print_final_stats=1 -artifact_prefix=build/asan/ "build/asan/corpus/$name" "tests/fuzz/corpus/$name" >"$log" 2>&1; then
    grep -E 'number_of_executed_units|peak_rss_mb' "$log"
    count "fuzzing: $name" 1 0 0
  else
    tail -n 60 "$log"
    count "fuzzing: $name" 0 1 0
  fi
}

# node:test files, with their totals read from the TAP summary.
node_tests() { # node_tests NAME FILE...
  local name=$1 log=build/$1.log
  shift
  say "$name"
  node --test --test-reporter=tap "$@" >"$log" 2>&1 || true
  grep -E '^# (measured|Subtest)' "$log" | grep measured || true
  local pass fail skip
  pass=$(awk '/^# pass / {print $3}' "$log") fail=$(awk '/^# fail / {print $3}' "$log") skip=$(awk '/^# skipped / {print $3}' "$log")
  if [ -z "$pass" ] || [ "$fail" != 0 ]; then cat "$log"; fi
  count "$name" "${pass:-0}" "${fail:-1}" "${skip:-0}"
}

# Vitest and Playwright print "N passed", "N failed", "N skipped" on their closing lines.
web_tests() { # web_tests NAME COMMAND...
  local name=$1 log=build/$1.log status=0
  shift
  say "$name"
  (cd tests/web && NO_COLOR=1 FORCE_COLOR=0 "$@") >"$log" 2>&1 || status=$?
  number() { grep -E '^ *(Tests )? *[0-9]+ (passed|failed|skipped)|^ +Tests ' "$log" | grep -oE "[0-9]+ $1" | tail -n 1 | cut -d' ' -f1; }
  local pass fail skip
  pass=$(number passed || true) fail=$(number failed || true) skip=$(number skipped || true)
  # A runner that died prints no count of its own.
  [ $status = 0 ] || [ "${fail:-0}" != 0 ] || fail=1
  [ "${fail:-0}" = 0 ] || cat "$log"
  grep -i 'measured' "$log" || true
  count "$name" "${pass:-0}" "${fail:-0}" "${skip:-0}"
}

node_and_pages() {
  node_tests numeric tests/numeric/*.test.mjs
  node_tests conformance tests/conformance/*.test.mjs
  web_tests "page-units" npx vitest run
  web_tests "page-in-Chromium" npx playwright test
}

say "tests in Node and of the page begin beside the others; their results follow"
node_and_pages >build/node_and_pages.log 2>&1 &
second_lane=$!
for program in "${native_tests[@]}"; do
  google_tests native build/native/bin/$program
done
google_tests asan build/asan/bin/engine_test
# Emscripten 3.1.6's loader takes a global fetch for a browser's.
google_tests wasm node --no-experimental-fetch build/wasm/bin/engine_test.js
fuzz import 30
fuzz descriptions 15
wait $second_lane || count "the second lane" 0 1 0
cat build/node_and_pages.log

say "totals"
awk '{p += $1; f += $2; s += $3} END {print p " passed, " f " failed, " s " skipped"; exit f != 0}' "$totals"
