// Accelerator description: Stream's and ZigZag's own format (arXiv 2212.10612, 2007.11360; COST_MODEL section 1: v2
// fields, and the older v1 ones r_bw, w_bw, r_port, ..., min_r_granularity, one `ports` object per operand), as JSON.
// Sizes in bits, bandwidths in bits per cycle, energies in pJ per access of one full word, as in those tools.
//
// Our extensions, all optional: `description` and `source` at the top; `core_types`, an object of core definitions that
// `cores` may name instead of a file, so that a mesh of equal cores is one file; `vector` in a core; in a memory
// `regions`: {"parameters": {"size": 4194304, "bandwidth": 512}, "gradients": {...}, "checkpoints": {...}}, the last
// for forward tensors that the backward pass reads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/ir/diagnostic.h"

namespace monet {

struct Port {
  std::string name;
  enum class Type : uint8_t { read, write, read_write } type = Type::read_write;
  int64_t bandwidth_min = 0;  // bit/cycle: access granularity
  int64_t bandwidth_max = 0;  // bit/cycle
  // Operand ("I1", "I2", "O") and direction: "fh" and "th" are written from and read to the next higher level, "fl" and
  // "tl" written from and read to the next lower one.
  std::vector<std::pair<std::string, std::string>> allocation;
  bool operator==(const Port&) const = default;
};

// A part of a core's highest memory that is kept for one kind of tensor, with a bandwidth of its own (ours; the
// training accelerator's parameter buffer, gradient accumulation buffer and activation checkpoint region).
struct MemoryRegion {
  enum class Holds : uint8_t { parameters, gradients, checkpoints } holds = Holds::parameters;
  int64_t size = 0;       // bits, of the memory's
  int64_t bandwidth = 0;  // bit/cycle, each way
  bool operator==(const MemoryRegion&) const = default;
};
constexpr int kMemoryRegions = 3;
const char* name(MemoryRegion::Holds holds);

struct Memory {
  std::string name;
  int64_t size = 0;                      // bits per instance
  double read_cost = 0, write_cost = 0;  // pJ per access of one bandwidth_max word
  double area = 0;
  std::vector<std::string> operands;           // subset of I1, I2, O
  std::vector<std::string> served_dimensions;  // array dimensions one instance serves; [] = one per PE
  std::vector<Port> ports;
  std::vector<MemoryRegion> regions;  // each kind once, together at most as large as the memory
  bool operator==(const Memory&) const = default;
};

struct Core {
  int id = 0;
  std::string name;
  // As in the file ("compute", "memory", "pooling", "simd", ...) or, where the file does not say, recognised:
  // - "memory": an array without PEs, or the off-chip core;
  // - "pooling" or "simd": the name of the core's file, or else of the core, contains "pool", or "simd" or "vec"
  // (Stream's
  //   simd.yaml calls itself "pooling", hence the file's name first);
  // - "simd": at most one array dimension is larger than 1, so operands can be neither shared nor reduced in two ways;
  // - else "compute".
  std::string type;
  // Whether contractions run here: every core with PEs whose type is not "pooling", "simd" or "vector". If none is
  // left, every core with PEs (a chip that has a vector unit only computes everything there).
  bool runs_contractions = false;
  std::vector<Memory> memories;         // lowest to highest
  std::vector<std::string> dimensions;  // "D1", ...
  std::vector<int64_t> sizes;           // PEs per dimension
  double unit_energy = 0;               // pJ per MAC (per operation for vector cores)
  double unit_area = 0;
  std::map<std::string, std::vector<std::pair<std::string, int64_t>>> dataflows;  // "D1" -> {("K", 64)}
  // Ours: "vector": {"lanes": 256, "memory": "sram_2MB"}: how operators that are no contraction run here.
  std::optional<int64_t> vector_lanes;  // operations per cycle; absent: one per PE
  std::string vector_memory;            // the level that they stream from and to; "": the highest, off-chip included
  std::optional<std::pair<double, double>> coordinates;  // from `core_coordinates`: where a drawing places the core
  int64_t pes() const;                                   // product of sizes; 0 for memory cores
  int64_t instances(const Memory& memory) const;         // product of the dimensions that the memory does not serve
};

struct Connection {
  enum class Type : uint8_t { link, bus } type = Type::link;
  std::vector<int> cores;       // ids; two for a link
  int64_t bandwidth = 0;        // bit/cycle, of each direction of a link, of a bus in all
  double unit_energy_cost = 0;  // pJ per active cycle
};

struct Accelerator {
  std::string name;
  std::string description;  // one line, for lists
  std::string source;       // where the numbers come from (our presets say it)
  std::vector<Core> cores;  // compute, pooling, SIMD cores by id; the off-chip core last
  int offchip_core = -1;    // index into `cores`; -1: no off-chip memory described
  // As described. Where no connection includes the off-chip core, every core reaches it over links that have the
  // bandwidth of its ports and cost unit_energy_cost (Stream's rule).
  std::vector<Connection> connections;
  double unit_energy_cost = 0;                   // pJ per active cycle of connections that do not say their own
  std::vector<std::vector<int>> memory_sharing;  // ids of cores whose top memory is one and the same
  std::vector<Diagnostic> warnings;              // unknown fields, guesses made

  // What bounds need (cost/bounds.h): peaks are never too low, energies never too high.
  double mac_units() const;   // multiply-accumulates per cycle of all cores that run contractions
  double mac_energy() const;  // pJ per MAC of the cheapest such core
  // Vector operations may be mapped to any core with PEs, one operation per PE and cycle (MONET and Stream put
  // elementwise operators on the PE cores).
  double vector_units() const;   // operations per cycle of all cores
  double vector_energy() const;  // pJ per operation of the cheapest core
  // Bits per cycle over the chip's edge: all ports of the off-chip memories, or the connections of the off-chip core
  // where they are described and narrower (a link counts in both directions). 0 when no off-chip memory is described.
  double offchip_bandwidth() const;
  double offchip_energy() const;  // pJ per bit, the cheaper of read and write, whole words; 0 likewise
  int64_t offchip_bytes() const;  // capacity of the off-chip memory; 0 when none is described
  // Sum over cores of every memory that is the highest of one of its operands, all instances; shared ones once.
  int64_t onchip_bytes() const;
};

// Finds a file that a system description names by path (core files, off-chip core) and gives its text as JSON; nothing
// when it cannot be had. Asked for the path as written, then for the file's name alone, then for these with .json in
// place of .yaml or .yml.
using FileResolver = std::function<std::optional<std::string>(const std::string& path)>;

// `text`: JSON of a system (has `cores`), or of a single core (has `memories`), which becomes a one-core system. A
// single core's last memory is taken for the off-chip memory when one instance of it serves the whole array and all
// operands and its name says so (contains dram, ddr, hbm or offchip), or when it has 128 MiB or more, which no chip's
// SRAM has (ZigZag closes every hierarchy with such a level; Stream's core files do not).
//
// Whole numbers may be written as YAML strings ("16_777_216"). latency, area, force_double_buffering,
// auto_cost_extraction and input_precision are accepted and have no effect on cost.
//
// Throws Refusal with every problem found (the first hundred), each naming its field by path:
//   "cores.0.memories.sram.r_cost: must be a number >= 0, is "abc"", in a core file "pe.json:memories.sram.r_cost:
//   ...".
Accelerator parse_accelerator(const std::string& text, const FileResolver& resolve = {});

struct Preset {
  std::string name;   // file name without .json
  std::string title;  // its `description` field
  std::string json;
};
const std::vector<Preset>& hardware_presets();  // examples/hardware/*.json, compiled in; by name

}  // namespace monet
