// Takes the place of <assert.h> in the builds of ONNX and protobuf and in the room that uses them: what they assert
// depends on the file read, and a bad file is refused, never a reason to abort. Protobuf's own checks throw already.
#pragma once

#include <stdexcept>

#define assert(condition) \
  (static_cast<bool>(condition) ? static_cast<void>(0) : throw std::logic_error("failed check: " #condition))
