#include "engine/report/json_object.h"

namespace monet {

nlohmann::ordered_json object_of(Field* fields, size_t count) {
  nlohmann::ordered_json::object_t object;
  object.reserve(count);
  // (emplace_back of the vector that it is: emplace would look the key up.)
  for (size_t i = 0; i < count; ++i) object.emplace_back(fields[i].key, std::move(fields[i].value));
  return object;
}

}  // namespace monet
