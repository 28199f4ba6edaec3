#!/usr/bin/env bash
# Everything the tests need, then all of them: GoogleTest natively and in WebAssembly under Node, the fuzzer under the
# sanitizers, conformance and numeric tests in Node, then the page in Chromium. Ends with one line of totals.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need "${BUILD_PACKAGES[@]}" "${NATIVE_PACKAGES[@]}" "${WASM_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
need_node

build native
build wasm
build asan
build_site
install_node_packages tests
install_node_packages tests/web

passed=0 failed=0 skipped=0
count() { # count NAME PASSED FAILED SKIPPED
  printf '%s: %d passed, %d failed, %d skipped\n' "$1" "$2" "$3" "$4"
  passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
}

# GoogleTest executables of one build; under Node for wasm.
google_tests() {
  local variant=$1 runner=() test log total bad skip ok=0 wrong=0 left=0
  # Emscripten 3.1.6's loader takes a global fetch for a browser's.
  [ "$variant" = wasm ] && runner=(node --no-experimental-fetch)
  say "GoogleTest ($variant)"
  for test in build/"$variant"/bin/*_test build/"$variant"/bin/*_test.js; do
    [ -e "$test" ] || continue
    log=build/$variant/$(basename "$test").log
    if "${runner[@]}" "$test" --gtest_color=no >"$log" 2>&1; then total=0; else total=$?; fi
    bad=$(grep -c '^\[  FAILED  \] .*([0-9]* ms)$' "$log" || true)
    skip=$(grep -c '^\[  SKIPPED \] .*([0-9]* ms)$' "$log" || true)
    good=$(grep -c '^\[       OK \] ' "$log" || true)
    # A crash prints no line of its own.
    [ "$total" = 0 ] || [ "$bad" != 0 ] || bad=1
    [ "$bad" = 0 ] || cat "$log"
    grep -B2 '^\[  SKIPPED \] .*([0-9]* ms)$' "$log" | grep -v '^--' || true
    grep '^\[ MEASURED \]' "$log" || true
    ok=$((ok + good)) wrong=$((wrong + bad)) left=$((left + skip))
  done
  count "GoogleTest ($variant)" $ok $wrong $left
}
google_tests native
google_tests wasm
google_tests asan

say "fuzzing the importer for 30 s"
fuzz_log=build/asan/import_fuzz.log
mkdir -p build/asan/corpus
if build/asan/bin/import_fuzz -max_total_time=30 -seed=1 -timeout=10 -rss_limit_mb=2048 -max_len=65536 -print_final_stats=1 \
  -artifact_prefix=build/asan/ build/asan/corpus tests/fuzz/corpus/import >"$fuzz_log" 2>&1; then
  grep -E 'number_of_executed_units|peak_rss_mb' "$fuzz_log"
  count "fuzzing" 1 0 0
else
  tail -n 60 "$fuzz_log"
  count "fuzzing" 0 1 0
fi

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
node_tests numeric tests/numeric/*.test.mjs
node_tests conformance tests/conformance/*.test.mjs

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
web_tests "page-units" npx vitest run
web_tests "page-in-Chromium" npx playwright test

say "totals"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
