// libFuzzer target for what people write about hardware: any bytes are a hardware description, a mapping file or a
// workload file, or are refused; on a hardware that is accepted, a small layer and a vector operation cost something or
// are refused. Run: descriptions_fuzz tests/fuzz/corpus/descriptions
#include <cstdint>
#include <cstdlib>
#include <string>

#include "engine/cost/layer_cost.h"
#include "engine/cost/unit_cost.h"
#include "engine/cost/vector_cost.h"
#include "engine/hardware/access_energy.h"

namespace {

// Runs it; a refusal must say why, naming one line a problem.
template <typename Work>
void refused_or_done(const Work& work) {
  try {
    work();
  } catch (const monet::Refusal& refusal) {
    if (refusal.problems().empty()) std::abort();
    for (const monet::Diagnostic& problem : refusal.problems())
      if (problem.message.empty() || problem.message.find('\n') != std::string::npos) std::abort();
  }
}

monet::Layer small_layer() {
  monet::Layer layer;
  layer.name = "small";
  layer.op = "Gemm";
  layer.loops = {{"C", 4}, {"D", 6}, {"K", 3}};
  const std::vector<int> indexes[] = {{0, 1}, {0, 2}, {1, 2}};
  for (int i = 0; i < 3; ++i) {
    monet::LayerOperand operand;
    operand.name = std::string("IWO").substr(i, 1);
    operand.loops = indexes[i];
    layer.operands.push_back(operand);
  }
  return layer;
}

void cost_on(monet::Accelerator& accelerator) {
  monet::apply_access_energy(accelerator, "hp_22nm");
  const monet::Layer layer = small_layer();
  size_t tried = 0;
  for (size_t core = 0; core < accelerator.cores.size() && tried < 4; ++core) {
    if (!accelerator.cores[core].runs_contractions) continue;
    ++tried;
    monet::Core whole = monet::with_offchip(accelerator, core);
    monet::vector_cost(whole, 100, 1000, 1000);
    for (bool room : {false, true}) {
      monet::CostOptions options;
      options.leave_room_above = room;
      refused_or_done([&] { monet::cost_layer(layer, whole, monet::LayerMapping{}, options); });
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string text(reinterpret_cast<const char*>(data), size);
  refused_or_done([&] {
    monet::Accelerator accelerator = monet::parse_accelerator(text);
    cost_on(accelerator);
  });
  refused_or_done([&] { monet::parse_mapping(text).of(small_layer()); });
  refused_or_done([&] { monet::parse_workload(text); });
  return 0;
}
