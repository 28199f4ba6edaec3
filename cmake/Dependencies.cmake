# Imported targets: monet::onnx (static, with protobuf-lite) and monet::highs, both from $MONET_DEPS (see scripts/lib.sh),
# and monet::json.
if(NOT DEFINED MONET_DEPS)
  set(MONET_DEPS "$ENV{MONET_DEPS}" CACHE PATH "Prefix that scripts/lib.sh built protobuf-lite, ONNX and HiGHS into")
endif()
if(NOT EXISTS "${MONET_DEPS}/lib/libonnx.a")
  message(FATAL_ERROR "MONET_DEPS does not name a dependency build; run scripts/build.sh <native|wasm|asan>, which makes one")
endif()
add_library(monet_onnx_lib INTERFACE)
add_library(monet::onnx ALIAS monet_onnx_lib)
target_include_directories(monet_onnx_lib SYSTEM INTERFACE "${MONET_DEPS}/include")
target_compile_definitions(monet_onnx_lib INTERFACE ONNX_NAMESPACE=onnx ONNX_ML=1 ONNX_USE_LITE_PROTO=1 __ONNX_NO_DOC_STRINGS)
# As the libraries were built (scripts/dependencies.sh says why): what their headers inline must be the same everywhere.
target_compile_options(monet_onnx_lib INTERFACE -UNDEBUG)
target_include_directories(monet_onnx_lib BEFORE INTERFACE "${PROJECT_SOURCE_DIR}/cmake/checks")
find_package(Threads REQUIRED)
target_link_libraries(monet_onnx_lib INTERFACE
  "${MONET_DEPS}/lib/libonnx.a" "${MONET_DEPS}/lib/libonnx_proto.a" "${MONET_DEPS}/lib/libprotobuf-lite.a")
if(NOT EMSCRIPTEN)
  target_link_libraries(monet_onnx_lib INTERFACE Threads::Threads)
endif()

add_library(monet_highs_lib INTERFACE)
add_library(monet::highs ALIAS monet_highs_lib)
target_include_directories(monet_highs_lib SYSTEM INTERFACE "${MONET_DEPS}/include/highs")
target_link_libraries(monet_highs_lib INTERFACE "${MONET_DEPS}/lib/libhighs.a")
if(NOT EMSCRIPTEN)
  target_link_libraries(monet_highs_lib INTERFACE Threads::Threads)
endif()

# nlohmann_json is headers only; a private copy of its folder keeps /usr/include out of Emscripten's path.
find_path(MONET_JSON_INCLUDE nlohmann/json.hpp PATHS /usr/include /usr/local/include NO_CMAKE_FIND_ROOT_PATH REQUIRED)
file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/headers")
file(COPY "${MONET_JSON_INCLUDE}/nlohmann" DESTINATION "${CMAKE_BINARY_DIR}/headers")
add_library(monet_json INTERFACE)
add_library(monet::json ALIAS monet_json)
target_include_directories(monet_json SYSTEM INTERFACE "${CMAKE_BINARY_DIR}/headers")
