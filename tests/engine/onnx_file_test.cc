// Reading files: what is read and kept, damaged and foreign files, files over 2 GiB, every model of Debian's test data.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "engine/onnx/block_cache.h"
#include "onnx_builder.h"

namespace monet::test {
namespace {

std::string relu() { return Builder().input("x", {1, 2}).op("Relu", {"x"}, {"y"}).output("y").bytes(); }

std::string path_of(const std::string& name) { return ::testing::TempDir() + name; }

// ---- block cache --------------------------------------------------------------------------------------------------

class CountingSource : public ByteSource {
 public:
  explicit CountingSource(uint64_t size) : size_(size) {}
  uint64_t size() const override { return size_; }
  void read(uint64_t offset, size_t count, char* to) override {
    ASSERT_LE(offset + count, size_);
    for (size_t i = 0; i < count; ++i) to[i] = at(offset + i);
    ++reads;
  }
  static char at(uint64_t offset) { return static_cast<char>(offset * 2654435761u >> 13); }
  int reads = 0;

 private:
  uint64_t size_;
};

TEST(BlockCache, GivesTheBytesOfTheFile) {
  CountingSource source(10'000'123);
  BlockCache cache(source);
  uint64_t offset = 1;
  for (int i = 0; i < 3000; ++i) {
    offset = (offset * 6364136223846793005u + 1442695040888963407u) % source.size();
    ASSERT_EQ(cache.byte(offset), static_cast<uint8_t>(CountingSource::at(offset)));
    size_t count = static_cast<size_t>(std::min<uint64_t>(offset % 40'000, source.size() - offset));
    std::string got = cache.read(offset, count);
    ASSERT_EQ(got.size(), count);
    for (size_t k = 0; k < count; k += 997) ASSERT_EQ(got[k], CountingSource::at(offset + k));
  }
  EXPECT_EQ(cache.statistics().reads, static_cast<uint64_t>(source.reads));
}

TEST(BlockCache, ReadsInSequenceTakeFewAndJumpsTakeSmallReads) {
  CountingSource sequential(1 << 20);
  BlockCache all(sequential);
  for (uint64_t i = 0; i < sequential.size(); ++i) all.byte(i);
  EXPECT_EQ(all.statistics().read_bytes, sequential.size());  // nothing twice
  EXPECT_LE(all.statistics().reads, 18u);                     // 64 KiB each but the first

  CountingSource sparse(uint64_t{1} << 40);
  BlockCache jumps(sparse);
  for (uint64_t i = 0; i < 100; ++i) jumps.byte(i << 33);
  EXPECT_EQ(jumps.statistics().reads, 100u);
  EXPECT_EQ(jumps.statistics().read_bytes, 100u * 16 * 1024);
}

// ---- sources ------------------------------------------------------------------------------------------------------

TEST(ByteSource, RefusesWhatCannotBeRead) {
  auto missing = refusal([] { open_file("/nonexistent/model.onnx"); });
  ASSERT_EQ(codes(missing), "unreadable");
  EXPECT_NE(missing[0].message.find("/nonexistent/model.onnx"), std::string::npos);
  EXPECT_EQ(codes(refusal([] { open_file("/"); })), "unreadable");
}

TEST(ByteSource, ReadsFiles) {
  std::string path = path_of("monet_relu.onnx");
  std::ofstream(path, std::ios::binary) << relu();
  auto source = open_file(path);
  EXPECT_EQ(source->size(), relu().size());
  EXPECT_EQ(Model::open(*source, path).node_count(), 1);
  std::remove(path.c_str());
}

// ---- foreign and damaged files (case 20) --------------------------------------------------------------------------

TEST(OnnxFile, SaysWhatAForeignFileLooksLike) {  // case 20
  struct Case {
    std::string bytes;
    const char* code;
    const char* says;
  };
  for (const Case& c : {
           Case{"", "empty-file", "empty"},
           Case{std::string("\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16), "not-onnx", "PNG"},
           Case{std::string("PK\x03\x04\x14\0\0\0", 8), "not-onnx", "ZIP"},
           Case{"<html><body>404</body></html>", "not-onnx", "text"},
           Case{std::string("\x1c\0\0\0TFL3", 8), "not-onnx", "TensorFlow Lite"},
           Case{std::string("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", 12), "corrupt", "byte"},
           Case{std::string("\x07\x01\x02", 3), "not-onnx", "byte 0"},
           Case{Message().number(1, 8).str(), "not-onnx", "no graph"},
       }) {
    auto problems = refusal([&] { open(c.bytes, "file.onnx"); });
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].code, c.code) << problems[0].message;
    EXPECT_NE(problems[0].message.find("file.onnx"), std::string::npos);
    EXPECT_NE(problems[0].message.find(c.says), std::string::npos) << problems[0].message;
    EXPECT_EQ(problems[0].message.find('\n'), std::string::npos);
  }
}

TEST(OnnxFile, EveryTruncationIsRefusedOrStillAModel) {  // case 20
  std::string whole = Builder()
                          .input("x", {"n", 3})
                          .weight("w", {3, 4})
                          .ints("s", {-1})
                          .op("MatMul", {"x", "w"}, {"m"})
                          .op("Reshape", {"m", "s"}, {"y"})
                          .output("y")
                          .bytes();
  int refused = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    auto problems = refusal([&] { open(whole.substr(0, size)).bind({}); });
    refused += !problems.empty();
    for (const Diagnostic& d : problems) EXPECT_FALSE(d.message.empty());
  }
  EXPECT_EQ(refused, static_cast<int>(whole.size()));  // the graph comes last: no prefix is a model
  auto problems = refusal([&] { open(whole.substr(0, whole.size() - 5)); });
  EXPECT_EQ(codes(problems), "truncated");
  EXPECT_NE(problems[0].message.find("at byte " + std::to_string(whole.size() - 5)), std::string::npos);
}

TEST(OnnxFile, EverySingleByteErrorIsAModelOrRefused) {  // case 20
  std::string whole = Builder()
                          .input("x", {2, 3})
                          .weight("w", {3, 4})
                          .ints("s", {-1})
                          .op("MatMul", {"x", "w"}, {"m"})
                          .op("Reshape", {"m", "s"}, {"y"})
                          .output("y")
                          .bytes();
  for (size_t at = 0; at < whole.size(); ++at)
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = whole;
      damaged[at] = static_cast<char>(damaged[at] ^ 1 << bit);
      refusal([&] { open(damaged).bind({}); });  // any other exception fails the test
    }
}

TEST(OnnxFile, HostileSizesStaySmall) {  // case 20
  // A payload that claims 2^60 elements, dims that overflow, and nesting without end.
  auto with = [](const Message& t) {
    return Builder().input("x", {1}).initializer(t).op("Identity", {"w"}, {"y"}).output("y");
  };
  Message overflow = tensor_proto("w", DType::int64, {int64_t{1} << 40, int64_t{1} << 40}, "", false);
  BoundModel bound = bind(with(overflow));
  EXPECT_EQ(bytes(tensor(bound.graph, "w")), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(codes(refusal(with(tensor_proto("w", DType::int64, {-3}, "", false)))), "bad-tensor");
  EXPECT_EQ(codes(refusal(with(tensor_proto("w", static_cast<DType>(99), {3}, "", false)))), "bad-tensor");
  EXPECT_EQ(codes(refusal(with(tensor_proto("w", DType::int64, {3}, "12345678")))), "bad-tensor");
  Message deep;
  for (int i = 0; i < 2000; ++i) deep = Message().message(1, Message().message(5, Message().message(6, deep)));
  EXPECT_EQ(codes(refusal([&] { open(Message().message(7, deep).str()); })), "corrupt");
}

// ---- payloads -----------------------------------------------------------------------------------------------------

TEST(OnnxFile, KeepsSmallConstantsWhateverTheirFieldIs) {
  // The same int64 [2] = {-1, 6} as raw_data, packed and unpacked int64_data.
  Message packed_values, packed, unpacked;
  packed_values.varint(static_cast<uint64_t>(-1)).varint(6);
  packed.number(1, 2).number(2, 7).bytes(7, packed_values.str()).bytes(8, "s");
  unpacked.number(1, 2).number(2, 7).number(7, -1).number(7, 6).bytes(8, "s");
  for (const Message& s : {tensor_proto("s", DType::int64, {2}, raw<int64_t>({-1, 6})), packed, unpacked}) {
    BoundModel bound = bind(Builder().input("x", {4, 3}).initializer(s).op("Reshape", {"x", "s"}, {"y"}).output("y"));
    EXPECT_EQ(tensor(bound.graph, "y").shape, (Shape{2, 6}));
    EXPECT_EQ(tensor(bound.graph, "s").data, raw<int64_t>({-1, 6}));
  }
}

// 1,200 tensors with 2.5 MB each, never written: 3 GB that take a few kilobytes of disk.
class SparseFile {
 public:
  static constexpr int kTensors = 1200;
  static constexpr int64_t kBytes = 2'500'000;
  explicit SparseFile(const std::string& path) : path_(path) {
    int descriptor = ::open(path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (descriptor < 0) return;
    uint64_t graph_size = 0;
    std::vector<std::string> heads;
    std::string nodes;
    for (int i = 0; i < kTensors; ++i) {
      std::string name = "w" + std::to_string(i);
      std::string tensor = Message().number(1, kBytes / 4).number(2, 1).bytes(8, name).str();
      tensor += Message().varint(9 << 3 | 2).varint(kBytes).str();  // raw_data follows
      heads.push_back(Message().varint(5 << 3 | 2).varint(tensor.size() + kBytes).str() + tensor);
      graph_size += heads.back().size() + kBytes;
      std::string from = i ? "t" + std::to_string(i - 1) : "x", to = "t" + std::to_string(i);
      nodes += Message().message(1, node("Add", {from, name}, {to})).str();
    }
    Message rest;
    rest.bytes(2, "big").message(11, value_info("x", tensor_type(DType::float32, {kBytes / 4})));
    rest.message(12, Message().bytes(1, "t" + std::to_string(kTensors - 1)));
    nodes += rest.str();
    std::string front = Message().number(1, 8).message(8, Message().number(2, 17)).str();
    front += Message().varint(7 << 3 | 2).varint(graph_size + nodes.size()).str();
    good_ = put(descriptor, front);
    for (const std::string& head : heads) {
      good_ = good_ && put(descriptor, head);
      at_ += kBytes;
    }
    good_ = good_ && put(descriptor, nodes);
    ::close(descriptor);
  }
  ~SparseFile() { std::remove(path_.c_str()); }
  bool good() const { return good_; }
  uint64_t size() const { return at_; }

 private:
  bool put(int descriptor, const std::string& bytes) {
    ssize_t wrote = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(at_));
    at_ += bytes.size();
    return wrote == static_cast<ssize_t>(bytes.size());
  }
  std::string path_;
  uint64_t at_ = 0;
  bool good_ = false;
};

TEST(OnnxFile, ThreeGigabytesOpenInASecond) {  // case 6
  std::string path = path_of("monet_3gb.onnx");
  SparseFile file(path);
  if (!file.good()) GTEST_SKIP() << "cannot write a sparse file of 3 GB at " << path;
  ASSERT_GT(file.size(), uint64_t{3'000'000'000});
  std::unique_ptr<ByteSource> source = open_file(path);
  if (source->size() != file.size())
    GTEST_SKIP() << "this platform writes no file beyond 2 GiB: " << source->size() << " for " << file.size();
  auto start = std::chrono::steady_clock::now();
  Model model = Model::open(*source, path);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const ReadStatistics& reads = model.reads();
  std::printf("[ MEASURED ] 3 GB file: %.3f s, %llu bytes in %llu reads (%.2f%%), structure %zu bytes\n", seconds,
              static_cast<unsigned long long>(reads.read_bytes), static_cast<unsigned long long>(reads.reads),
              100.0 * static_cast<double>(reads.read_bytes) / static_cast<double>(reads.file_bytes),
              model.structure(false).size());
  EXPECT_EQ(reads.file_bytes, file.size());
  EXPECT_LT(reads.read_bytes * 100, file.size());
  Graph graph = model.bind({}).graph;
  int parameters = 0;
  for (const Tensor& t : graph.tensors)
    if (t.kind == TensorKind::parameter) {
      ++parameters;
      EXPECT_EQ(t.shape, (Shape{SparseFile::kBytes / 4}));
    }
  EXPECT_EQ(parameters, SparseFile::kTensors);
}

// ---- Debian's test data -------------------------------------------------------------------------------------------

TEST(OnnxFile, EveryModelOfDebiansTestDataIsAnalysedOrRefused) {
  const std::filesystem::path top = "/usr/share/libonnx-testdata/data";
  if (!std::filesystem::exists(top)) GTEST_SKIP() << "libonnx-testdata is not installed";
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(top))
    if (entry.path().extension() == ".onnx") files.push_back(entry.path().string());
  int analysed = 0;
  std::map<std::string, int> refused;
  for (const std::string& file : files) {
    SCOPED_TRACE(file);
    try {
      auto source = open_file(file);
      Model model = Model::open(*source, file);
      Graph graph = model.bind({}).graph;
      for (const Tensor& t : graph.tensors) EXPECT_NE(t.dtype, DType::undefined) << t.name;
      // What was exported means the same when read back.
      Graph again = open(export_model(graph)).bind({}).graph;
      EXPECT_EQ(operators(again), operators(graph));
      Graph structure = open(model.structure(true)).bind({}).graph;
      EXPECT_EQ(operators(structure), operators(graph));
      ++analysed;
    } catch (const Refusal& refusal) {
      ASSERT_FALSE(refusal.problems().empty());
      ++refused[refusal.problems()[0].code];
    }
  }
  std::printf("[ MEASURED ] Debian's test data: %zu models, %d analysed", files.size(), analysed);
  for (const auto& [code, count] : refused) std::printf(", %d %s", count, code.c_str());
  std::printf("\n");
  EXPECT_GT(files.size(), 1000u);
  EXPECT_GE(analysed, 899);
  EXPECT_EQ(refused.count("export-shape") + refused.count("export-invalid"), 0u);
}

}  // namespace
}  // namespace monet::test
