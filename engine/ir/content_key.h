// Bytes that stand for a value's content: equal exactly where every field written is equal. Lists carry their lengths,
// so that no two values share a key.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace monet {

class ContentKey {
 public:
  template <typename Number, typename = std::enable_if_t<std::is_arithmetic_v<Number> || std::is_enum_v<Number>>>
  ContentKey& operator<<(Number value) {
    if constexpr (std::is_floating_point_v<Number>)
      return raw(static_cast<double>(value));
    else
      return raw(static_cast<int64_t>(value));
  }
  ContentKey& operator<<(const std::string& text) {
    *this << text.size();
    bytes_ += text;
    return *this;
  }
  template <typename Item>
  ContentKey& operator<<(const std::vector<Item>& list) {
    *this << list.size();
    for (const Item& item : list) *this << item;
    return *this;
  }
  template <typename Name, typename Value>
  ContentKey& operator<<(const std::map<Name, Value>& map) {
    *this << map.size();
    for (const auto& [name, value] : map) *this << name << value;
    return *this;
  }
  template <typename First, typename Second>
  ContentKey& operator<<(const std::pair<First, Second>& pair) {
    return *this << pair.first << pair.second;
  }

  std::string take() { return std::move(bytes_); }

 private:
  template <typename Value>
  ContentKey& raw(Value value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  std::string bytes_;
};

}  // namespace monet
