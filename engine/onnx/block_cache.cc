#include "engine/onnx/block_cache.h"

#include <algorithm>

namespace monet {

void BlockCache::select(uint64_t offset) {
  uint64_t page = offset / kPage;
  auto found = by_index_.find(page);
  if (found == by_index_.end()) {
    fetch(page);
    found = by_index_.find(page);
  }
  pages_.splice(pages_.begin(), pages_, found->second);
  current_ = found->second->bytes.data();
  current_start_ = page * kPage;
  current_size_ = found->second->bytes.size();
}

void BlockCache::fetch(uint64_t page) {
  uint64_t count = 1, last = (size_ - 1) / kPage;
  if (page > 0 && by_index_.count(page - 1))
    while (count < kReadAhead && page + count <= last && !by_index_.count(page + count)) ++count;
  uint64_t start = page * kPage;
  std::string bytes(static_cast<size_t>(std::min(size_ - start, count * kPage)), '\0');
  source_.read(start, bytes.size(), bytes.data());
  statistics_.read_bytes += bytes.size();
  ++statistics_.reads;
  for (uint64_t i = count; i-- > 0;) {  // the page asked for ends up in front
    pages_.push_front({page + i, bytes.substr(static_cast<size_t>(i * kPage), kPage)});
    by_index_[page + i] = pages_.begin();
  }
  while (pages_.size() > kPagesKept) {
    by_index_.erase(pages_.back().index);
    pages_.pop_back();
  }
}

std::string BlockCache::read(uint64_t offset, size_t count) {
  std::string bytes;
  bytes.reserve(count);
  while (bytes.size() < count) {
    uint64_t at = offset + bytes.size();
    byte(at);
    uint64_t from = at - current_start_;
    bytes.append(current_ + from, static_cast<size_t>(std::min<uint64_t>(current_size_ - from, count - bytes.size())));
  }
  return bytes;
}

}  // namespace monet
