# The one place for Emscripten's flags: a toolchain file used both for the dependencies and for the engine.
# Suits Debian 12's 3.1.6 and today's emsdk; options that were renamed between them are chosen by version.
set(monet_emscripten_roots "$ENV{EMSCRIPTEN_ROOT}" "$ENV{EMSDK}/upstream/emscripten" /usr/share/emscripten)
foreach(root IN LISTS monet_emscripten_roots)
  if(root AND EXISTS "${root}/cmake/Modules/Platform/Emscripten.cmake")
    set(monet_emscripten "${root}")
    break()
  endif()
endforeach()
if(NOT monet_emscripten)
  message(FATAL_ERROR "Emscripten not found; install Debian's `emscripten` or set EMSCRIPTEN_ROOT or EMSDK")
endif()
include("${monet_emscripten}/cmake/Modules/Platform/Emscripten.cmake")

# -fwasm-exceptions: ONNX reports errors by throwing; JavaScript exceptions would cost size and speed.
# -msimd128: every browser that has WASM exceptions has SIMD as well.
set(CMAKE_CXX_FLAGS_INIT "-fwasm-exceptions -msimd128")
set(CMAKE_C_FLAGS_INIT "-fwasm-exceptions -msimd128")
# -Os: the module is downloaded, 140 kB gzipped less of it than with -O2.
set(CMAKE_CXX_FLAGS_RELEASE "-Os -DNDEBUG" CACHE STRING "")
set(CMAKE_C_FLAGS_RELEASE "-Os -DNDEBUG" CACHE STRING "")

if(EMSCRIPTEN_VERSION VERSION_LESS 3.1.25)
  set(MONET_WASM_STACK "-sTOTAL_STACK=8388608")
else()
  set(MONET_WASM_STACK "-sSTACK_SIZE=8388608")
endif()
# Deeply nested protobufs recurse: 8 MiB of stack, as a native thread has.
set(MONET_WASM_LINK
  -fwasm-exceptions -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=4294967296 -sINITIAL_MEMORY=33554432 ${MONET_WASM_STACK})
# The page's module: an ES6 factory without eval (Content-Security-Policy) and without a file system.
set(MONET_WASM_LINK_MODULE
  ${MONET_WASM_LINK} --bind -sMODULARIZE=1 -sDYNAMIC_EXECUTION=0 -sFILESYSTEM=0 -sINVOKE_RUN=0)
# Programs run by Node (tests, benchmarks): real files, exit codes.
set(MONET_WASM_LINK_NODE ${MONET_WASM_LINK} -sNODERAWFS=1 -sEXIT_RUNTIME=1 -sENVIRONMENT=node)
