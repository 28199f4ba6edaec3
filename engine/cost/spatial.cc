#include "engine/cost/spatial.h"

#include <algorithm>

#include "engine/ir/saturating.h"

namespace monet {

namespace {

int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

// Fills in the units at work of unrollings whose `whole` is what was asked for, and the iterations that remain.
void settle(SpatialMapping& mapping, const Layer& layer) {
  mapping.temporal.clear();
  for (size_t loop = 0; loop < layer.loops.size(); ++loop) {
    int64_t size = layer.loops[loop].size, unrolled = 1, others = 1;
    Unrolling* last = nullptr;
    for (Unrolling& u : mapping.unrollings) {
      if (u.loop != static_cast<int>(loop)) continue;
      u.numerator = u.whole;
      u.denominator = 1;
      if (u.whole == 1) continue;
      others = unrolled;
      unrolled *= u.whole;
      last = &u;
    }
    int64_t iterations = ceil_div(size, unrolled);
    mapping.temporal.push_back(iterations);
    if (!last || size % unrolled == 0) continue;
    last->numerator = size;
    last->denominator = iterations * others;
    last->whole = std::max<int64_t>(size / last->denominator, 1);
  }
}

double iterations(const SpatialMapping& mapping) {
  double product = 1;
  for (int64_t t : mapping.temporal) product *= static_cast<double>(t);
  return product;
}

double units(const SpatialMapping& mapping) {
  double product = 1;
  for (const Unrolling& u : mapping.unrollings) product *= static_cast<double>(u.whole);
  return product;
}

// Four array dimensions and ten loops make 7,921, all of which are listed. Of arrays with more dimensions only the best
// beginnings are pursued.
constexpr size_t kMostGenerated = 10'000, kPursued = 1'000;

}  // namespace

SpatialMapping resolve(const Dataflow& dataflow, const Layer& layer, const Core& core) {
  SpatialMapping mapping;
  std::vector<int64_t> left;
  for (const Loop& loop : layer.loops) left.push_back(loop.size);
  for (size_t d = 0; d < core.dimensions.size(); ++d) {
    auto entry = dataflow.find(core.dimensions[d]);
    if (entry == dataflow.end()) continue;
    int64_t free = core.sizes[d];
    for (const auto& [name, asked] : entry->second) {
      for (size_t loop = 0; loop < layer.loops.size(); ++loop) {
        if (layer.loops[loop].dim != name) continue;
        Unrolling u;
        u.loop = static_cast<int>(loop);
        u.dimension = static_cast<int>(d);
        u.whole = std::max<int64_t>(std::min({asked, free, left[loop]}), 1);
        free /= u.whole;
        left[loop] = ceil_div(left[loop], u.whole);
        mapping.unrollings.push_back(u);
      }
    }
  }
  settle(mapping, layer);
  return mapping;
}

std::vector<SpatialMapping> generate_spatial(const Layer& layer, const Core& core) {
  std::vector<SpatialMapping> all = {SpatialMapping{}};
  for (size_t d = 0; d < core.dimensions.size(); ++d) {
    std::vector<SpatialMapping> longer;
    for (const SpatialMapping& prefix : all) {
      for (size_t loop = 0; loop < layer.loops.size(); ++loop) {
        bool used = layer.loops[loop].size == 1;
        for (const Unrolling& u : prefix.unrollings) used = used || u.loop == static_cast<int>(loop);
        if (used) continue;
        Unrolling u;
        u.loop = static_cast<int>(loop);
        u.dimension = static_cast<int>(d);
        u.whole = std::min(core.sizes[d], layer.loops[loop].size);
        if (u.whole <= 1) continue;
        longer.push_back(prefix);
        longer.back().unrollings.push_back(u);
      }
      longer.push_back(prefix);
    }
    all = std::move(longer);
    if (all.size() <= kMostGenerated) continue;
    std::stable_sort(all.begin(), all.end(),
                     [](const SpatialMapping& a, const SpatialMapping& b) { return units(a) > units(b); });
    all.resize(kPursued);
  }
  for (SpatialMapping& mapping : all) settle(mapping, layer);
  std::stable_sort(all.begin(), all.end(),
                   [](const SpatialMapping& a, const SpatialMapping& b) { return iterations(a) < iterations(b); });
  return all;
}

}  // namespace monet
