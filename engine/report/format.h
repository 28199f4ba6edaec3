// Numbers and columns of the tables for a terminal.
#pragma once

#include <cstdint>
#include <string>

namespace monet {

std::string formatted(const char* pattern, double value);   // a printf pattern for one double
std::string grouped(int64_t value);                         // 1,234,567
std::string scaled(double value, const std::string& unit);  // decimal prefixes, three digits: 21.6 MB, 1.81 G
std::string energy_text(double pj);                         // 4.213 mJ
std::string padded(std::string text, size_t width, bool left = false);  // to the right, or to the left
std::string shortened(std::string text, size_t width);

}  // namespace monet
