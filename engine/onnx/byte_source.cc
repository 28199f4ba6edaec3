#include "engine/onnx/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/ir/diagnostic.h"

namespace monet {

namespace {

Refusal unreadable(const std::string& path, const std::string& why) {
  return Refusal({"unreadable", path + " cannot be read: " + why, "", "", "check the path and its permissions"});
}

class FileSource : public ByteSource {
 public:
  explicit FileSource(const std::string& path) : path_(path), descriptor_(::open(path.c_str(), O_RDONLY)) {
    if (descriptor_ < 0) throw unreadable(path_, std::strerror(errno));
    struct stat facts {};
    bool known = ::fstat(descriptor_, &facts) == 0;
    if (!known || !S_ISREG(facts.st_mode)) {
      std::string why = known ? "it is not a regular file" : std::strerror(errno);
      ::close(descriptor_);
      throw unreadable(path_, why);
    }
    size_ = static_cast<uint64_t>(facts.st_size);
  }
  ~FileSource() override { ::close(descriptor_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  uint64_t size() const override { return size_; }

  void read(uint64_t offset, size_t count, char* to) override {
    static_assert(sizeof(off_t) == 8, "offsets in files over 2 GiB need 64 bits");
    while (count > 0) {
      ssize_t got = ::pread(descriptor_, to, count, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw unreadable(path_, std::strerror(errno));
      if (got == 0) throw unreadable(path_, "it became shorter while being read");
      to += got;
      offset += static_cast<uint64_t>(got);
      count -= static_cast<size_t>(got);
    }
  }

 private:
  std::string path_;
  int descriptor_;
  uint64_t size_ = 0;
};

}  // namespace

void MemorySource::read(uint64_t offset, size_t count, char* to) {
  if (offset > bytes_.size() || count > bytes_.size() - offset)
    throw Refusal(
        {"unreadable",
         "a read of " + std::to_string(count) + " bytes at " + std::to_string(offset) + " passes the end of the file",
         "", "", ""});
  std::memcpy(to, bytes_.data() + offset, count);
}

std::unique_ptr<ByteSource> open_file(const std::string& path) { return std::make_unique<FileSource>(path); }

}  // namespace monet
