// Files compiled into the engine (cmake/Embed.cmake): name without folder, and contents.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace monet {

using EmbeddedFiles = std::vector<std::pair<std::string_view, std::string_view>>;
EmbeddedFiles embedded_presets();  // examples/hardware/*.json, by name

}  // namespace monet
