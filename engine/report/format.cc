#include "engine/report/format.h"

#include <cmath>
#include <cstdio>
#include <iterator>

namespace monet {

std::string formatted(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

std::string grouped(int64_t value) {
  std::string digits = std::to_string(value);
  for (int64_t at = static_cast<int64_t>(digits.size()) - 3; at > 0; at -= 3)
    digits.insert(static_cast<size_t>(at), ",");
  return digits;
}

// Decimal prefixes, three significant digits: 21.6 MB, 1.81 G.
std::string scaled(double value, const std::string& unit) {
  constexpr const char* kPrefixes[] = {"", "k", "M", "G", "T", "P", "E"};
  size_t prefix = 0;
  while (value >= 999.5 && prefix + 1 < std::size(kPrefixes)) {
    value /= 1000;
    ++prefix;
  }
  const char* pattern = prefix == 0 && value == std::floor(value) ? "%.0f"
                        : value >= 99.95                          ? "%.0f"
                        : value >= 9.995                          ? "%.1f"
                                                                  : "%.2f";
  return formatted(pattern, value) + " " + kPrefixes[prefix] + unit;
}

std::string energy_text(double pj) {
  constexpr const char* kUnits[] = {" pJ", " nJ", " uJ", " mJ", " J"};
  size_t unit = 0;
  for (; pj >= 1000 && unit + 1 < std::size(kUnits); ++unit) pj /= 1000;
  return formatted("%.4g", pj) + kUnits[unit];
}

std::string padded(std::string text, size_t width, bool left) {
  if (text.size() < width) text.insert(left ? text.size() : 0, width - text.size(), ' ');
  return text;
}

std::string shortened(std::string text, size_t width) {
  if (text.size() > width) text = text.substr(0, width - 3) + "...";
  return text;
}

}  // namespace monet
