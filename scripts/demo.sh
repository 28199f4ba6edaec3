#!/usr/bin/env bash
# From nothing to the page: installs, fetches, builds the WASM engine and the site, analyses the bundled ResNet-18 with
# that engine in Node, and serves web/dist on localhost:8080 (--no-serve: stops before that).
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
serve=yes
for argument in "$@"; do
  case $argument in
    --no-serve) serve=no ;;
    *) echo "usage: scripts/demo.sh [--no-serve]" >&2; exit 2 ;;
  esac
done
need "${BUILD_PACKAGES[@]}" "${WASM_PACKAGES[@]}"
need_node
build wasm monet solver
build_site
say "ResNet-18 on edge_tpu, analysed by the WASM engine in Node"
node scripts/analyze.mjs examples/models/resnet18.onnx '{"hardware":"edge_tpu"}'
[ $serve = yes ] || exit 0
say "serving web/dist on http://localhost:8080 (Ctrl-C stops)"
exec node web/serve.mjs
