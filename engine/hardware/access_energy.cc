#include "engine/hardware/access_energy.h"

#include <algorithm>
#include <cmath>

namespace monet {

namespace {

struct Law {
  const char* name;
  double e0, exponent;  // pJ per bit at 1 KB and 64 bits; growth with capacity
};

constexpr Law kLaws[] = {
    {"hp_65nm", .118, .43},   {"hp_45nm", .062, .43},   {"hp_32nm", .030, .45},   {"hp_22nm", .012, .48},
    {"lstp_65nm", .102, .49}, {"lstp_45nm", .057, .50}, {"lstp_32nm", .028, .50}, {"lstp_22nm", .012, .50},
};
constexpr int64_t kLeastBits = 32 * 1024 * 8;

double rounded(double pj) { return std::round(pj * 1e6) / 1e6; }

}  // namespace

std::vector<std::string> access_energy_laws() {
  std::vector<std::string> names;
  for (const Law& law : kLaws) names.push_back(law.name);
  return names;
}

void apply_access_energy(Accelerator& accelerator, const std::string& name) {
  auto law = std::find_if(std::begin(kLaws), std::end(kLaws), [&](const Law& l) { return name == l.name; });
  if (law == std::end(kLaws)) return;
  for (size_t c = 0; c < accelerator.cores.size(); ++c) {
    if (static_cast<int>(c) == accelerator.offchip_core) continue;
    for (Memory& memory : accelerator.cores[c].memories) {
      if (memory.size < kLeastBits) continue;
      int64_t width = 0;
      for (const Port& port : memory.ports) width = std::max(width, port.bandwidth_max);
      double kilobytes = static_cast<double>(memory.size) / 8192, word = static_cast<double>(width);
      double read = law->e0 * std::pow(kilobytes, law->exponent) * std::pow(word / 64, -0.25) * word;
      double ratio = memory.read_cost > 0 ? memory.write_cost / memory.read_cost : 1;
      memory.read_cost = rounded(read);
      memory.write_cost = rounded(read * ratio);
    }
  }
}

}  // namespace monet
