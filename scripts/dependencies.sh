# Part of lib.sh: the pinned sources of ONNX, protobuf and HiGHS, and building them. What is built depends on this file,
# cmake/wasm.cmake and cmake/checks alone; their hash names the result.

# Pinned sources: name, upstream version, file, SHA-256.
SOURCES=(
  "protobuf 3.21.12 protobuf_3.21.12.orig.tar.gz 930c2c3b5ecc6c9c12615cf5ad93f1cd6e12d0aba862b572e076259970ac3a53"
  "onnx 1.17.0 onnx_1.17.0.orig.tar.gz 8d5e983c36037003615e5a02d36b18fc286541bf52de1a78f6cf9f32005a820e"
  "highs 1.10.0 highs_1.10.0+ds.orig.tar.xz 5964fc1ca4f0b23dd45987bbed1838f2e570e96aa624635ac63d277152b6c94a"
)

# fetch_sources: Debian source packages from the machine's own mirror, verified and unpacked under the cache.
# apt is pointed at private lists so that the machine's own configuration is untouched.
fetch_sources() {
  local dir=$MONET_CACHE/sources row name version file sum
  mkdir -p "$dir"
  for row in "${SOURCES[@]}"; do
    read -r name version file sum <<<"$row"
    [ -e "$dir/$name-$version/.verified" ] && continue
    if ! { [ -e "$dir/$file" ] && echo "$sum  $dir/$file" | sha256sum --check --status; }; then
      say "fetching the source of $name $version"
      fetch_source "$dir" "$name" "$version"
    fi
    echo "$sum  $dir/$file" | sha256sum --check --quiet ||
      { echo "the checksum of $file differs from the pinned one" >&2; return 1; }
    rm -rf "$dir/$name-$version"
    mkdir "$dir/$name-$version"
    tar -xf "$dir/$file" -C "$dir/$name-$version" --strip-components=1
    touch "$dir/$name-$version/.verified"
  done
}

fetch_source() {
  local dir=$1 name=$2 version=$3 apt=$1/apt mirror full
  mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
  mirror=$(apt-get indextargets --format '$(SITE)|$(COMPONENT)|$(ORIGIN)' |
    awk -F'|' '$2 == "main" && $3 == "Debian" {print $1; exit}')
  [ -n "$mirror" ] || { as_root apt-get update -qq; mirror=$(apt-get indextargets --format '$(SITE)|$(COMPONENT)|$(ORIGIN)' |
    awk -F'|' '$2 == "main" && $3 == "Debian" {print $1; exit}'); }
  [ -n "$mirror" ] || { echo "apt names no Debian mirror to fetch sources from" >&2; return 1; }
  for suite in bookworm trixie; do
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
  done >"$apt/sources.list"
  local options=(-o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o "Dir::State::lists=$apt/lists" -o "Dir::Cache=$apt/cache" -o APT::Sandbox::User=root)
  [ -e "$apt/updated" ] || { apt-get "${options[@]}" update -qq; touch "$apt/updated"; }
  full=$(apt-cache "${options[@]}" showsrc "$name" | awk -v v="$version" '$1 == "Version:" && index($2, v) == 1 {print $2; exit}')
  [ -n "$full" ] || { echo "the Debian mirror has no source of $name $version" >&2; return 1; }
  (cd "$dir" && apt-get "${options[@]}" source -qq --tar-only --download-only "$name=$full" >/dev/null)
}

# build_dependencies VARIANT (native | wasm | asan): protobuf-lite, ONNX and HiGHS as static libraries under
# $MONET_CACHE/<variant>-<hash of what decides them>; sets MONET_DEPS to that prefix.
build_dependencies() {
  local variant=$1 hash flags=() source=$MONET_CACHE/sources launcher=()
  # No -DNDEBUG: ONNX's shape inference indexes by what the file says, and the check of an index then is protobuf's debug
  # check, which throws (as does cmake/checks/assert.h) and becomes a refusal.
  local cxxflags="-D__ONNX_NO_DOC_STRINGS -I$MONET_TOP/cmake/checks"
  hash=$(cat scripts/dependencies.sh cmake/wasm.cmake cmake/checks/assert.h | sha256sum | cut -c1-12)
  MONET_DEPS=$MONET_CACHE/$variant-$hash
  export MONET_DEPS
  [ -e "$MONET_DEPS/.complete" ] && return
  fetch_sources
  say "building protobuf-lite, ONNX and HiGHS ($variant)"
  flags+=(-DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE=-O2)
  command -v ccache >/dev/null && launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache)
  case $variant in
    native) ;;
    wasm) flags+=("-DCMAKE_TOOLCHAIN_FILE=$MONET_TOP/cmake/wasm.cmake") ;;
    asan) flags+=(-DCMAKE_C_COMPILER=clang -DCMAKE_CXX_COMPILER=clang++ -DCMAKE_CXX_FLAGS_RELEASE=-O1)
      cxxflags+=" -fsanitize=address,fuzzer-no-link -fno-omit-frame-pointer -g1" ;;
  esac
  local build=$MONET_CACHE/build-$variant log=$MONET_CACHE/build-$variant.log
  rm -rf "$build" "$MONET_DEPS"
  mkdir -p "$build" "$MONET_DEPS/lib" "$MONET_DEPS/include"
  (
    export CXXFLAGS=$cxxflags
    cmake -G Ninja -S "$source/protobuf-3.21.12" -B "$build/protobuf" "${flags[@]}" "${launcher[@]}" \
      -DCMAKE_CXX_STANDARD=17 -Dprotobuf_BUILD_TESTS=OFF -Dprotobuf_BUILD_PROTOC_BINARIES=OFF -Dprotobuf_WITH_ZLIB=OFF \
      -Dprotobuf_BUILD_SHARED_LIBS=OFF -Wno-dev &&
      cmake --build "$build/protobuf" --target libprotobuf-lite &&
      cp "$build"/protobuf/libprotobuf-lite*.a "$MONET_DEPS/lib/libprotobuf-lite.a" &&
      (cd "$source/protobuf-3.21.12/src" && find google -name '*.h' -o -name '*.inc' | cpio -pdm --quiet "$MONET_DEPS/include") &&
      cmake -G Ninja -S "$source/onnx-1.17.0" -B "$build/onnx" "${flags[@]}" "${launcher[@]}" \
        -DCMAKE_CXX_STANDARD=17 -DONNX_USE_LITE_PROTO=ON -DONNX_ML=ON -DBUILD_ONNX_PYTHON=OFF -DONNX_BUILD_TESTS=OFF \
        -DONNX_CUSTOM_PROTOC_EXECUTABLE="$(command -v protoc)" -DONNX_GEN_PB_TYPE_STUBS=OFF \
        -DProtobuf_INCLUDE_DIR="$MONET_DEPS/include" -DProtobuf_LITE_LIBRARY="$MONET_DEPS/lib/libprotobuf-lite.a" \
        -DProtobuf_LIBRARY="$MONET_DEPS/lib/libprotobuf-lite.a" -DProtobuf_PROTOC_EXECUTABLE="$(command -v protoc)" \
        -Wno-dev &&
      cmake --build "$build/onnx" --target onnx onnx_proto &&
      cp "$build"/onnx/libonnx*.a "$MONET_DEPS/lib/" &&
      (cd "$source/onnx-1.17.0" && find onnx -name '*.h' | cpio -pdm --quiet "$MONET_DEPS/include") &&
      (cd "$build/onnx" && find onnx -name '*.h' | cpio -pdm --quiet "$MONET_DEPS/include") &&
      # Without threads: there are none in WebAssembly, and both builds are to take the same decisions.
      CXXFLAGS="${cxxflags#*checks}" cmake -G Ninja -S "$source/highs-1.10.0" -B "$build/highs" "${flags[@]}" "${launcher[@]}" \
        -DBUILD_SHARED_LIBS=OFF -DZLIB=OFF -DBUILD_TESTING=OFF -DBUILD_EXAMPLES=OFF -DHIGHS_NO_DEFAULT_THREADS=ON -Wno-dev &&
      cmake --build "$build/highs" --target highs &&
      cp "$build"/highs/lib*/libhighs.a "$MONET_DEPS/lib/" &&
      mkdir -p "$MONET_DEPS/include/highs" &&
      (cd "$source/highs-1.10.0/src" && find . -name '*.h' | cpio -pdm --quiet "$MONET_DEPS/include/highs") &&
      cp "$build/highs/HConfig.h" "$MONET_DEPS/include/highs/"
  ) >"$log" 2>&1 || { tail -n 40 "$log" >&2; echo "building the dependencies ($variant) failed; log: $log" >&2; return 1; }
  rm -rf "$build"
  touch "$MONET_DEPS/.complete"
}
