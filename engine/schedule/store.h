// How full a memory is, from time to time: what the scheduler asks before it puts something there. Bits and cycles.
#pragma once

#include <cstdint>
#include <vector>

namespace monet {

class Store {
 public:
  explicit Store(int64_t capacity) : capacity_(capacity) {}
  int64_t capacity() const { return capacity_; }
  void clear() { steps_.assign(1, {0, 0}); }
  // The first time at or after `from` from which on there is room for so many bits; -1 if what is held for ever leaves
  // none. Later holdings count from then on already, so that they stay valid.
  int64_t earliest(int64_t from, int64_t bits) const;
  void hold(int64_t from, int64_t bits) { change(from, bits); }
  void release(int64_t at, int64_t bits) { change(at, -bits); }
  int64_t held_last() const { return steps_.back().held; }
  int64_t peak() const;  // of all times

 private:
  void change(int64_t at, int64_t bits);
  struct Step {
    int64_t time, held;
  };
  int64_t capacity_;
  std::vector<Step> steps_ = {{0, 0}};  // by time; the last one holds for ever
};

}  // namespace monet
