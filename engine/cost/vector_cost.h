// The vector rule: what an operator that is no contraction costs on a core (COST_MODEL section 2, last paragraph;
// ZigZag leaves these operators free).
//
// cycles = max(operations / lanes, cycles of the busiest port of the memory that the operands stream from and to);
// energy = operations x unit energy + accesses: every element is read once from that memory and written once to it, and
// on its way passes each lower memory that holds such operands, written there once and read once.
#pragma once

#include <cstddef>
#include <vector>

#include "engine/hardware/accelerator.h"

namespace monet {

struct VectorCost {
  struct Passed {
    size_t memory;      // index into Core::memories
    double energy = 0;  // pJ
  };
  double compute_cycles = 0, traffic_cycles = 0;
  double compute_energy = 0;       // pJ
  std::vector<Passed> passed;      // memories, lowest first
  const Memory* stream = nullptr;  // of the core: streamed from and to; nothing where it has none
  double cycles() const { return compute_cycles > traffic_cycles ? compute_cycles : traffic_cycles; }
  double energy() const;
};

// `core`: with the memory that closes its hierarchy (with_offchip). `operations` as workload/operations.h counts them.
// A core without memories for inputs and outputs costs its operations alone.
VectorCost vector_cost(const Core& core, double operations, double read_bits, double written_bits);

}  // namespace monet
