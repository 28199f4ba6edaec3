# Shared by the scripts of this folder: paths, packages, pinned sources, dependency builds.
# Source it; it changes to the top of the tree.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
MONET_TOP=$PWD
# Built dependencies live outside the tree, so that a clean checkout finds them; safe to delete at any time.
MONET_CACHE=${MONET_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/monet}
export CCACHE_BASEDIR=$MONET_TOP CCACHE_NOHASHDIR=1
# Emscripten's linker looks for acorn there when node is not Debian's.
export NODE_PATH=${NODE_PATH:-/usr/share/nodejs}

say() { printf '\n== %s\n' "$*"; }

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

# Node and npm: the machine's own when recent enough for Vite, else a clear refusal (Debian 12's 18 is too old for it).
need_node() {
  command -v node >/dev/null || need nodejs npm
  command -v npm >/dev/null || need npm
}

source scripts/dependencies.sh

# build VARIANT [TARGET...]: configures and builds the tree's own code.
build() {
  local variant=$1
  shift
  build_dependencies "$variant"
  say "building MONET ($variant)"
  [ -e "build/$variant/build.ninja" ] || cmake --preset "$variant" >"/dev/null"
  cmake --build --preset "$variant" ${1:+--target "$@"}
}
