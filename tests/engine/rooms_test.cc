// The house stands as DESIGN section 2 draws it (and solver/, see engine/README.md): data flows down the list of rooms,
// includes point up it, only onnx/ knows ONNX and only solver/ knows HiGHS.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace monet {
namespace {

const std::vector<std::string> kRooms = {"ir",     "onnx",   "training", "workload", "hardware", "cost",     "schedule",
                                         "solver", "fusion", "search",   "scale",    "report",   "analysis", "cli"};

size_t place(const std::string& room) { return std::find(kRooms.begin(), kRooms.end(), room) - kRooms.begin(); }

struct Include {
  std::string file;  // relative to the source folder
  std::string room;  // of the including file
  std::string target;
};

// Every #include of the engine; empty when the sources cannot be read here.
std::vector<Include> engine_includes() {
  std::vector<Include> found;
  std::filesystem::path top = MONET_SOURCE_DIR;
  if (!std::filesystem::exists(top / "engine")) return found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(top / "engine")) {
    std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cc") continue;
    std::filesystem::path relative = std::filesystem::relative(entry.path(), top);
    auto part = relative.begin();
    std::string room = (++part)->string();
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      if (line.rfind("#include ", 0) != 0) continue;
      size_t begin = line.find_first_of("<\""), end = line.find_first_of(">\"", begin + 1);
      if (begin == std::string::npos || end == std::string::npos) continue;
      found.push_back({relative.generic_string(), room, line.substr(begin + 1, end - begin - 1)});
    }
  }
  return found;
}

std::string room_of_header(const std::string& target) {
  if (target.rfind("engine/", 0) != 0) return "";
  size_t slash = target.find('/', 7);
  return target.substr(7, slash - 7);
}

TEST(Rooms, IncludesPointUpTheList) {
  std::vector<Include> includes = engine_includes();
  if (includes.empty()) GTEST_SKIP() << "sources cannot be read at " << MONET_SOURCE_DIR;
  EXPECT_GT(includes.size(), 50u);
  for (const Include& include : includes) {
    EXPECT_LT(place(include.room), kRooms.size()) << include.file << " is in no room of the house";
    std::string target = room_of_header(include.target);
    if (target.empty()) continue;
    EXPECT_LE(place(target), place(include.room)) << include.file << " includes " << include.target;
  }
}

TEST(Rooms, OnlyTheSolverSeesHighs) {
  std::vector<Include> includes = engine_includes();
  if (includes.empty()) GTEST_SKIP() << "sources cannot be read at " << MONET_SOURCE_DIR;
  bool seen = false;
  for (const Include& include : includes) {
    bool foreign = include.target == "Highs.h" || include.target.rfind("lp_data/", 0) == 0;
    seen = seen || foreign;
    EXPECT_TRUE(!foreign || include.room == "solver") << include.file << " includes " << include.target;
  }
  EXPECT_TRUE(seen);
}

TEST(Rooms, OnlyOnnxSeesOnnx) {
  std::vector<Include> includes = engine_includes();
  if (includes.empty()) GTEST_SKIP() << "sources cannot be read at " << MONET_SOURCE_DIR;
  bool seen = false;
  for (const Include& include : includes) {
    bool foreign = include.target.rfind("onnx/", 0) == 0 || include.target.rfind("google/protobuf", 0) == 0;
    seen = seen || foreign;
    EXPECT_TRUE(!foreign || include.room == "onnx") << include.file << " includes " << include.target;
  }
  // The room's own files prove that the test would find such a line; they may not be there yet in a partial tree.
  EXPECT_TRUE(seen || !std::filesystem::exists(std::filesystem::path(MONET_SOURCE_DIR) / "engine/onnx/model.cc"));
}

// Two types of one name in two rooms would be one to the linker (a room's own types stand in anonymous namespaces).
TEST(Rooms, TypesHaveNamesOfTheirOwn) {
  std::filesystem::path top = MONET_SOURCE_DIR;
  if (!std::filesystem::exists(top / "engine")) GTEST_SKIP() << "sources cannot be read at " << MONET_SOURCE_DIR;
  std::map<std::string, std::string> where;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(top / "engine")) {
    if (entry.path().extension() != ".h") continue;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      std::istringstream words(line);
      std::string keyword, type, next;
      words >> keyword >> type >> next;
      if (line.rfind(" ", 0) == 0 || (keyword != "struct" && keyword != "class") || (next != "{" && next != ":"))
        continue;
      auto [at, first] = where.emplace(type, entry.path().filename().string());
      EXPECT_TRUE(first) << type << " is defined in " << at->second << " and in " << entry.path().filename();
    }
  }
  EXPECT_GT(where.size(), 50u);
}

}  // namespace
}  // namespace monet
