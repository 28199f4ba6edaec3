// JSON objects from their fields, as many as are written down: object({{"id", 1}, {"name", "x"}}).
//
// nlohmann's own initializer lists make an array of each pair first and look every key up among those before it, which
// took half the time of a report.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <utility>

namespace monet {

struct Field {
  const char* key;
  nlohmann::ordered_json value;
};

// The keys differ.
nlohmann::ordered_json object_of(Field* fields, size_t count);

template <size_t N>
nlohmann::ordered_json object(Field (&&fields)[N]) {
  return object_of(fields, N);
}

}  // namespace monet
