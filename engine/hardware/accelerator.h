// Accelerator description: Stream's and ZigZag's own format (COST_MODEL.md section 1: v2 fields, and the older v1 ones
// r_bw, w_bw, r_port, ..., min_r_granularity, one `ports` object per operand), as JSON. Sizes in bits, bandwidths in
// bits per cycle, energies in pJ per access of one full word, as in those tools.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/ir/diagnostic.h"

namespace monet {

struct Port {
  std::string name;
  enum class Type : uint8_t { read, write, read_write } type = Type::read_write;
  int64_t bandwidth_min = 0;  // bit/cycle: access granularity
  int64_t bandwidth_max = 0;  // bit/cycle
  // Operand ("I1", "I2", "O") and direction ("fh", "tl", "fl", "th").
  std::vector<std::pair<std::string, std::string>> allocation;
};

struct Memory {
  std::string name;
  int64_t size = 0;  // bits per instance
  double read_cost = 0, write_cost = 0;  // pJ per access of one bandwidth_max word
  double area = 0;
  std::vector<std::string> operands;           // subset of I1, I2, O
  std::vector<std::string> served_dimensions;  // array dimensions one instance serves; [] = one per PE
  std::vector<Port> ports;
};

struct Core {
  int id = 0;
  std::string name;
  std::string type;               // "compute", "memory", "pooling", "simd", ... as in the file or recognised
  std::vector<Memory> memories;   // lowest to highest
  std::vector<std::string> dimensions;  // "D1", ...
  std::vector<int64_t> sizes;           // PEs per dimension
  double unit_energy = 0;               // pJ per MAC (per operation for vector cores)
  double unit_area = 0;
  std::map<std::string, std::vector<std::pair<std::string, int64_t>>> dataflows;  // "D1" -> {("K", 64)}
  int64_t pes() const;                  // product of sizes
};

struct Connection {
  enum class Type : uint8_t { link, bus } type = Type::link;
  std::vector<int> cores;
  int64_t bandwidth = 0;        // bit/cycle
  double unit_energy_cost = 0;  // pJ per active cycle
};

struct Accelerator {
  std::string name;
  std::string source;       // where the numbers come from (our presets say it)
  std::vector<Core> cores;  // compute, pooling, SIMD cores; the off-chip core last
  int offchip_core = -1;    // index into `cores`; -1: no off-chip memory described
  std::vector<Connection> connections;
  std::vector<std::vector<int>> memory_sharing;
  std::vector<Diagnostic> warnings;  // fields that are accepted and have no effect, guesses made

  // What bounds need; see cost/bounds.h.
  double mac_units() const;         // multiply-accumulates per cycle of all cores that run contractions
  double mac_energy() const;        // pJ per MAC of the cheapest such core
  double vector_units() const;      // element operations per cycle, all cores that run anything but contractions
  double vector_energy() const;     // pJ per such operation of the cheapest such core
  double offchip_bandwidth() const; // bits per cycle of the off-chip memory, all its ports
  double offchip_energy() const;    // pJ per bit, the cheaper of read and write
  int64_t offchip_bytes() const;    // capacity of the off-chip memory; 0 when none is described
  int64_t onchip_bytes() const;     // sum of the top memories of all cores
};

// Finds a file that a system description names by path (core files, off-chip core); nothing when it cannot be had.
using FileResolver = std::function<std::optional<std::string>(const std::string& path)>;

// `text`: JSON of a system, or of a single core (becomes a one-core system whose top memory is off-chip when it is a
// DRAM level as ZigZag writes it). Throws Refusal with every problem found, each naming its field by path.
Accelerator parse_accelerator(const std::string& text, const FileResolver& resolve = {});

struct Preset {
  std::string name;   // file name without .json
  std::string title;  // its `description` field
  std::string json;
};
std::vector<Preset> hardware_presets();  // examples/hardware/*.json, compiled in; by name

}  // namespace monet
