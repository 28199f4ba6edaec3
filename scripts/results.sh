#!/usr/bin/env bash
# Measures what docs/results.md reports and writes it anew, with the README's picture. Builds what it needs first; takes a few minutes.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
need "${BUILD_PACKAGES[@]}" "${NATIVE_PACKAGES[@]}" "${WASM_PACKAGES[@]}" "${TEST_PACKAGES[@]}"
need_node
build native monet engine_bench fusion_test
build wasm monet solver
build_site
# A model too large for the tree; PyTorch makes it.
need python3-torch python3-torchvision python3-onnx
/usr/bin/python3 examples/models/export.py swin_t
install_node_packages tests
install_node_packages tests/web
node scripts/screenshot.mjs docs/page.png
exec node scripts/results.mjs docs/results.md
