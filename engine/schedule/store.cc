#include "engine/schedule/store.h"

#include <algorithm>

namespace monet {

int64_t Store::earliest(int64_t from, int64_t bits) const {
  int64_t room = capacity_ - bits;
  size_t i = steps_.size();
  while (i > 0 && steps_[i - 1].held <= room && (i == steps_.size() || steps_[i].time > from)) --i;
  // Steps from i on have room, unless none has.
  if (i == steps_.size()) return -1;
  return std::max(from, steps_[i].time);
}

int64_t Store::peak() const {
  int64_t most = 0;
  for (const Step& step : steps_) most = std::max(most, step.held);
  return most;
}

void Store::change(int64_t at, int64_t bits) {
  if (bits == 0) return;
  size_t i = steps_.size();
  while (i > 0 && steps_[i - 1].time > at) --i;
  if (i == 0 || steps_[i - 1].time != at) {
    steps_.insert(steps_.begin() + static_cast<long>(i), {at, i == 0 ? 0 : steps_[i - 1].held});
    ++i;
  }
  for (size_t k = i - 1; k < steps_.size(); ++k) steps_[k].held += bits;
}

}  // namespace monet
