// libFuzzer target for the importer: any bytes are either a model (bound, exported, shortened, read back) or refused;
// nothing else may happen. Run: import_fuzz tests/fuzz/corpus/import
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/onnx/model.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  monet::MemorySource source({reinterpret_cast<const char*>(data), size});
  try {
    monet::Model model = monet::Model::open(source, "fuzz.onnx");
    model.structure(true);
    monet::BindOptions options;
    options.has_rule = [](const std::string&, const std::string&) { return false; };  // expand all that can be
    options.assume_batch_norm = true;
    monet::Graph graph = model.bind(options).graph;
    options.has_rule = nullptr;
    options.batch = 3;
    model.bind(options);
  } catch (const monet::Refusal& refusal) {
    if (refusal.problems().empty()) std::abort();  // a refusal says why
  }
  return 0;
}
