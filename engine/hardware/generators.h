// Hardware files of accelerators that are described by a few numbers, for sweeps over these: MONET's Edge TPU and
// FuseMax (arXiv 2603.15002; COST_MODEL section 4). The defaults are the presets of the same names. Access energies are
// those of the default sizes, whatever the sizes (a law of size is a setting: access_energy.h).
#pragma once

#include <cstdint>
#include <string>

namespace monet {

// MONET's ranges: PEs x and y 1, 2, 4, 6, 8; SIMD units 16 to 128; lanes 1 to 8; memory 0.5 to 4 MB; registers 8 to
// 64 KB (10,000 combinations).
struct EdgeTpu {
  int64_t rows = 4, columns = 4;      // of the mesh of PEs
  int64_t simd_units = 64;            // of a PE: output channels side by side
  int64_t lanes = 4;                  // of a SIMD unit: input channels side by side
  int64_t memory_bytes = 2 << 20;     // of a PE
  int64_t register_bytes = 32 << 10;  // for weights, of each multiplier
  int64_t offchip_bits_per_cycle = 64;
};

// MONET's ranges: array 64 to 512 squared; vector 32 to 256 lanes; buffer 4 to 32 MB at 2,048 to 16,384 bit/cycle;
// off-chip 512 to 8,192 bit/cycle.
struct FuseMax {
  int64_t rows = 256, columns = 256;
  int64_t vector_lanes = 256;
  int64_t buffer_bytes = 2 << 20;
  int64_t buffer_bits_per_cycle = 8192;
  int64_t offchip_bits_per_cycle = 3200;
};

// JSON that parse_accelerator reads. Throw Refusal with every parameter that is out of range: at least 1; a mesh of at
// most 120 PEs; sizes and bandwidths of at most 2^40.
std::string hardware_json(const EdgeTpu& parameters);
std::string hardware_json(const FuseMax& parameters);

}  // namespace monet
