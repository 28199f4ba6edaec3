// Reads a ByteSource through a cache of 4 MiB. DESIGN decision 2: a browser's read costs 0.6 ms whatever its size up to
// 16 KiB, so thousands of small reads must become few; and weights are skipped, so a read must not drag many of their
// bytes in. Pages of 16 KiB therefore; a page whose predecessor is cached is being read in sequence and brings the next
// three along (one read of 64 KiB). A 3 GB file of 1,200 tensors costs 20 MB of reads this way, 79 MB with plain 64
// KiB.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>

#include "engine/onnx/byte_source.h"
#include "engine/onnx/model.h"

namespace monet {

class BlockCache {
 public:
  explicit BlockCache(ByteSource& source) : source_(source), size_(source.size()) { statistics_.file_bytes = size_; }

  uint64_t size() const { return size_; }
  // The byte at `offset`, which must be < size().
  uint8_t byte(uint64_t offset) {
    if (offset - current_start_ >= current_size_) select(offset);
    return static_cast<uint8_t>(current_[offset - current_start_]);
  }
  // The range must lie inside the file.
  std::string read(uint64_t offset, size_t count);
  const ReadStatistics& statistics() const { return statistics_; }

 private:
  static constexpr uint64_t kPage = 16 * 1024;
  static constexpr uint64_t kReadAhead = 4;  // pages: 64 KiB
  static constexpr size_t kPagesKept = 256;  // 4 MiB
  struct Page {
    uint64_t index;
    std::string bytes;
  };

  void select(uint64_t offset);  // makes the page that holds `offset` the current one
  void fetch(uint64_t page);

  ByteSource& source_;
  uint64_t size_;
  ReadStatistics statistics_;
  std::list<Page> pages_;  // most recently used first
  std::unordered_map<uint64_t, std::list<Page>::iterator> by_index_;
  const char* current_ = nullptr;
  uint64_t current_start_ = 0, current_size_ = 0;
};

}  // namespace monet
