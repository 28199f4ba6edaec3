// Names handed out once each: the wish itself, then wish_1, wish_2, ...
#pragma once

#include <string>
#include <unordered_map>

namespace monet {

class Names {
 public:
  void add(const std::string& name) { next_.try_emplace(name, 1); }
  bool has(const std::string& name) const { return next_.count(name) > 0; }
  // A name not added and not given before. Constant time, however often the same is wished for.
  std::string unique(const std::string& wish) {
    auto [at, free] = next_.try_emplace(wish, 1);
    if (free) return wish;
    int& number = at->second;  // stays where it is when the table grows
    for (;;) {
      std::string name = wish + "_" + std::to_string(number++);
      if (next_.try_emplace(name, 1).second) return name;
    }
  }

 private:
  std::unordered_map<std::string, int> next_;  // by name in use: the number to try next
};

}  // namespace monet
