#!/usr/bin/env bash
# Builds one variant (native, wasm or asan), its dependencies first: scripts/build.sh VARIANT [ninja target...]
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
variant=${1:?native, wasm or asan}
shift
build "$variant" "$@"
