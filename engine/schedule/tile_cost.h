// What a tile costs on its core: a slice of a unit's work, its operands in the core's highest memory (COST_MODEL
// section 3: the cost of section 2 without the memory off the chip). Operands that do not fit there, or are not to
// stay, stream: the off-chip memory closes their hierarchy, its energy counts as off-chip and its link is taken while
// the tile runs.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/cost/layer_cost.h"
#include "engine/cost/mapping.h"
#include "engine/cost/unit_cost.h"
#include "engine/hardware/accelerator.h"
#include "engine/workload/layer.h"

namespace monet {

struct TileCost {
  UnitCost::Rule rule = UnitCost::Rule::nothing;
  int64_t cycles = 0;
  // Of these, what the array computes, what it waits for a memory of its core, and what it waits for streams.
  double compute_cycles = 0, memory_cycles = 0, stream_cycles = 0;
  std::string memory;  // that is waited for longest
  // pJ: operations, memories with several instances (registers), with one (SRAM).
  double mac_energy = 0, register_energy = 0, sram_energy = 0;
  double utilisation = 0;  // of the PEs by multiply-accumulates; mapping only
  // An operand of the layer (I, W, O) that streams; of other units all inputs (0) and all outputs (2).
  struct Stream {
    bool streams = false;
    int64_t bandwidth = 0;                   // bit/cycle of the off-chip link, while the tile runs
    double read_bits = 0, written_bits = 0;  // off the chip
    double energy = 0;                       // pJ, of the off-chip memory
  };
  std::array<Stream, 3> streams;
  bool all_stream = false;             // vector: nothing is held
  int64_t scratch_bits = 0;            // of the highest memory, for what streams through it
  const LayerCost* mapping = nullptr;  // stays as long as the cache does
};

class TileCosts {
 public:
  // Everything is kept by reference.
  TileCosts(const Accelerator& accelerator, const MappingFile& mapping, const CostOptions& options, CostCache& cache);

  // Cores of one class have equal memories, arrays and dataflows: what a tile costs on one, it costs on all.
  int core_class(size_t core) const { return class_of_[core]; }

  // A slice of a contraction (or of a layer that is to cost as one). `stream`: every operand; otherwise those that are
  // too large. `parallel`: CostOptions::parallel_tiles. Throws Refusal as cost_layer does.
  TileCost layer(const Layer& tile, size_t core, bool stream, int parallel = 0);
  // Why the tile has no mapping on the core, and the smallest growth of one memory that would give it one.
  Diagnostic unmapped(const Layer& tile, size_t core, bool stream);
  // Anything else, by the vector rule: what it reads and writes in the core's memory, and what streams besides.
  struct Moved {
    double read_bits = 0, written_bits = 0;
  };
  TileCost vector(size_t core, double operations, Moved held, Moved streamed);

 private:
  const Core& whole(size_t core, const std::vector<std::string>& streamed);
  std::vector<std::string> streamed(const Layer& tile, size_t core, bool all) const;

  const Accelerator& accelerator_;
  const MappingFile& mapping_;
  CostOptions options_;
  CostCache& cache_;
  std::vector<int> class_of_;
  std::vector<std::pair<std::string, Core>> whole_;  // cores with what closes their hierarchy, by class and operands
};

}  // namespace monet
