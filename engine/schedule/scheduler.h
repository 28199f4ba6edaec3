// When everything runs: list scheduling of a program (Stream's scheduler, arXiv 2212.10612; COST_MODEL section 3).
//
// Steps are taken in order. A tile starts when its core is idle, its inputs have arrived, its memory has room for what
// it makes and the links it streams over are free; transfers begin as late as they can without being late (the sum of
// the tile's transfers before its core is idle) and hold all links of their way. Where space is short, what has the
// least (remaining uses x size) goes, written off the chip first if it is not there yet.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/schedule/program.h"

namespace monet {

enum class EnergyTerm : uint8_t { mac, registers, sram, links, offchip, eviction };
constexpr int kEnergyTerms = 6;
const char* name(EnergyTerm term);
using Energy = std::array<double, kEnergyTerms>;  // pJ, indexed by EnergyTerm
double total(const Energy& energy);

enum class Cause : uint8_t {
  load,        // from off the chip
  move,        // from core to core
  eviction,    // off the chip, to make room
  write_back,  // off the chip, because it crosses groups
  output,      // off the chip, because it is a result
  stream,      // while a tile runs
};
const char* name(Cause cause);

struct Event {
  int32_t core = kNone;  // that a tile runs on: index into Accelerator::cores
  int32_t link = kNone;  // that a transfer holds: index into Interconnect::links()
  UnitId unit = kNone;   // that runs, or that the transfer is for; kNone when space is made
  int32_t slot = 0, tile = 0;
  TensorId tensor = kNone;  // transferred; of a stream the first of its operands
  Cause cause = Cause::load;
  int64_t bits = 0;
  int64_t start = 0, end = 0;  // cycles
};

// What a unit's time goes to, summed over its tiles: cycles.
struct Waits {
  double compute = 0, memory = 0, offchip = 0, link = 0;
  double space = 0;  // for room in a memory
  double units = 0;  // for other units' results
};

struct UnitRun {
  int64_t start = -1, end = -1;  // -1: a view
  int64_t busy = 0;              // cycles of its tiles, summed
  Energy energy{};
  Waits waits;
  std::string memory;                       // that its tiles wait for longest, if any
  double utilisation = 0;                   // of the PEs it runs on, by multiply-accumulates
  int64_t read_bits = 0, written_bits = 0;  // off the chip
};

struct FootprintPoint {
  int64_t time = 0;
  BytesByCategory bytes{};
};

struct Schedule {
  int64_t latency = 0;  // cycles
  std::array<int64_t, kPhases> phase_end{};
  std::vector<UnitRun> units;
  std::vector<Event> events;                    // in the order in which they were decided
  std::vector<int64_t> core_busy, link_busy;    // cycles; of a link, of all its bandwidth
  std::vector<int64_t> store_peak;              // bits, by store
  std::vector<FootprintPoint> onchip, offchip;  // from each time on
  // Off-chip traffic: bits by cause.
  std::array<int64_t, 6> traffic{};
  int64_t read_bits = 0, written_bits = 0;
};

// Makes schedules of one graph on one accelerator, one after the other in the same memory.
class Scheduler {
 public:
  explicit Scheduler(const Planner& planner);  // kept by reference
  ~Scheduler();

  // A program of that planner. `works[u].times`: schedules hold one micro-batch. Throws Refusal "tile-too-large" where
  // a fused group's tile and what it reads do not fit a memory, "offchip-full".
  Schedule schedule(const Program& program, bool keep_events = true);

  // The same, of which only this is wanted: for searches, in less time than a schedule of a few units takes.
  struct Totals {
    int64_t latency = 0;  // cycles
    double energy = 0;    // pJ
    int64_t offchip_bits = 0;
  };
  Totals totals(const Program& program);

 private:
  class Run;
  std::unique_ptr<Run> run_;
};

}  // namespace monet
