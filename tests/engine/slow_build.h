#pragma once

namespace monet {

// Sanitized programs and WebAssembly take several times as long as native code: tests that try thousands of cases try a
// tenth of them there, and all of them in the native build.
#if defined(__EMSCRIPTEN__)
inline constexpr int kSlowBuild = 10;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
inline constexpr int kSlowBuild = 10;
#else
inline constexpr int kSlowBuild = 1;
#endif
#else
inline constexpr int kSlowBuild = 1;
#endif

}  // namespace monet
