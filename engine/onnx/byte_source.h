// Random access to the bytes of a file without loading it: a slice of the browser's File, a native file, or memory.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace monet {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;  // bytes
  // Fills `to` with bytes [offset, offset + count); the range must lie inside the file. Throws Refusal ("unreadable")
  // when the bytes cannot be had.
  virtual void read(uint64_t offset, size_t count, char* to) = 0;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}  // not copied: must outlive the source
  uint64_t size() const override { return bytes_.size(); }
  void read(uint64_t offset, size_t count, char* to) override;

 private:
  std::string_view bytes_;
};

// A file of any size. Throws Refusal ("unreadable") when it cannot be opened.
std::unique_ptr<ByteSource> open_file(const std::string& path);

}  // namespace monet
