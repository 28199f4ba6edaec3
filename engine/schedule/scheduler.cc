#include "engine/schedule/scheduler.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "engine/schedule/store.h"

namespace monet {

namespace {

constexpr int64_t kNever = -1;
constexpr int32_t kNotAgain = std::numeric_limits<int32_t>::max();

double words(double bits, int64_t bandwidth) { return std::ceil(bits / static_cast<double>(bandwidth)); }

}  // namespace

// Everything about a schedule being made. Its memory is kept for the next one.
class Scheduler::Run {
 public:
  explicit Run(const Planner& planner)
      : planner_(planner),
        accelerator_(planner.accelerator()),
        interconnect_(planner.interconnect()),
        stores_(planner.stores()),
        options_(planner.options()),
        n_(stores_.all().size()),
        off_(stores_.offchip()),
        words_((n_ + 63) / 64),
        held_by_(n_),
        rank_(n_),
        received_(n_, nullptr) {
    for (const StoreInfo& info : stores_.all()) has_regions_ = has_regions_ || info.region;
    for (const Link& link : interconnect_.links())
      if (link.offchip) offchip_bandwidth_ = link.bandwidth;
  }

  Schedule take(const Program& program, bool keep_events) {
    begin(program, keep_events);
    for (const Step& step : program.steps) run(step);
    finish();
    units_clean_ = false;
    return std::move(result_);
  }

  Totals totals(const Program& program) {
    begin(program, false);
    units_clean_ = false;
    for (const Step& step : program.steps) run(step);
    Totals all{last_, 0, result_.read_bits + result_.written_bits};
    for (const Step& step : program.steps) {
      UnitRun& unit = result_.units[step.unit];
      all.energy += total(unit.energy);
      unit = {};
    }
    units_clean_ = true;
    return all;
  }

 private:
  void begin(const Program& program, bool keep_events) {
    program_ = &program;
    keep_events_ = keep_events;
    if (units_clean_) {
      result_.read_bits = result_.written_bits = 0;
      result_.traffic.fill(0);
    } else {
      result_ = {};
      result_.units.resize(planner_.graph().units.size());
    }
    result_.core_busy.assign(accelerator_.cores.size(), 0);
    idle_.assign(accelerator_.cores.size(), 0);
    if (store_.empty())
      for (const StoreInfo& info : stores_.all()) store_.emplace_back(info.capacity);
    for (Store& store : store_) store.clear();
    if (links_.empty())
      for (const Link& link : interconnect_.links()) links_.emplace_back(link.bandwidth);
    for (LinkTimeline& link : links_) link.clear();
    result_.link_busy.assign(links_.size(), 0);
    copies_.assign(program.pieces.size() * n_, {});
    where_.assign(program.pieces.size() * words_, 0);
    uses_.assign(program.pieces.size(), 0);
    pinned_.assign(program.pieces.size(), -1);
    for (std::vector<int32_t>& held : held_by_) held.clear();
    for (Rank& rank : rank_) rank.step = -1;
    std::fill(received_.begin(), received_.end(), nullptr);
    changes_.clear();
    last_ = 0;
    step_ = -1;
    for (const Step& step : program.steps)
      for (int32_t i = 0; i < step.needs; ++i) {
        const Need& need = program.needs[step.first_need + i];
        each_tile(need, [&](int p) {
          ++uses_[need.piece];
          if (!need.streamed) ++copy(need.piece, store_of(step, p, need)).uses;
        });
      }
    next_need_.assign(program.needs.size(), kNotAgain);
    next_use_.assign(program.pieces.size(), kNotAgain);
    for (size_t s = program.steps.size(); s-- > 0;) {
      const Step& step = program.steps[s];
      for (int32_t i = step.needs; i-- > 0;)
        next_need_[step.first_need + i] = next_use_[program.needs[step.first_need + i].piece];
      for (int32_t i = 0; i < step.needs; ++i)
        next_use_[program.needs[step.first_need + i].piece] = static_cast<int32_t>(s);
    }
    if (program.state_bits > 0) {
      store_[off_].hold(0, program.state_bits);
      changes_.push_back({0, false, MemoryCategory::optimizer_state, program.state_bits});
    }
    for (size_t p = 0; p < program.pieces.size(); ++p)
      if (program.pieces[p].stored) put(static_cast<int32_t>(p), off_, 0, 0);
  }

  // What is known of a piece in a store.
  struct Copy {
    int64_t available = kNever;  // from when on it is there
    int64_t last_use = 0;
    int32_t uses = 0;   // by tiles that are to run there
    int32_t place = 0;  // its index in held_by_
  };
  Copy& copy(int32_t piece, int store) { return copies_[static_cast<size_t>(piece) * n_ + static_cast<size_t>(store)]; }
  const Copy& copy(int32_t piece, int store) const {
    return copies_[static_cast<size_t>(piece) * n_ + static_cast<size_t>(store)];
  }
  int store_of(const Step& step, int tile, const Need& need) const {
    auto core = static_cast<size_t>(program_->tiles[step.first_tile + tile].core);
    return stores_.of(core, need.second ? 1 : 0, program_->pieces[need.piece].region);
  }
  int store_of_output(const Tile& tile, int32_t piece) const {
    return stores_.of(static_cast<size_t>(tile.core), 2, program_->pieces[piece].region);
  }
  // Calls visit(store) for every store that has the piece, the one off the chip included, until it returns true.
  template <typename Visit>
  bool any_store(int32_t piece, Visit&& visit) const {
    for (size_t w = 0; w < words_; ++w)
      for (uint64_t left = where_[static_cast<size_t>(piece) * words_ + w]; left; left &= left - 1)
        if (visit(static_cast<int>(w * 64) + __builtin_ctzll(left))) return true;
    return false;
  }
  // Calls visit(place in the step) for the tiles that need it.
  template <typename Visit>
  static void each_tile(const Need& need, Visit&& visit) {
    for (int w = 0; w < 2; ++w)
      for (uint64_t left = need.tiles.bits[static_cast<size_t>(w)]; left; left &= left - 1)
        visit(w * 64 + __builtin_ctzll(left));
  }

  // Whether the piece is in a store of the core; then the time from which it is.
  int64_t available_at(int32_t piece, size_t core) const {
    int64_t first = kNever;
    for (int store : stores_.of_core(core)) {
      int64_t t = copy(piece, store).available;
      if (t != kNever && (first == kNever || t < first)) first = t;
    }
    return first;
  }

  struct Change {
    int64_t time;
    bool onchip;
    MemoryCategory category;
    int64_t bits;
  };
  // `held_from`: its bits are held from then on already.
  void put(int32_t piece, int store, int64_t from, int64_t available, int64_t held_from = kNever) {
    const Piece& p = program_->pieces[piece];
    copy(piece, store).available = available;
    copy(piece, store).last_use = available;
    where_[static_cast<size_t>(piece) * words_ + static_cast<size_t>(store >> 6)] |= uint64_t{1} << (store & 63);
    // An update lies where the old one did.
    if (store == off_ && p.has_place) return;
    if (held_from != from) {
      if (held_from != kNever) store_[store].release(held_from, p.bits);
      store_[store].hold(from, p.bits);
    }
    if (store != off_) {
      copy(piece, store).place = static_cast<int32_t>(held_by_[store].size());
      held_by_[store].push_back(piece);
    }
    if (keep_events_) changes_.push_back({from, store != off_, p.category, p.bits});
  }
  void drop(int32_t piece, int store, int64_t time) {
    const Piece& p = program_->pieces[piece];
    time = std::max({time, copy(piece, store).last_use, copy(piece, store).available});
    copy(piece, store).available = kNever;
    where_[static_cast<size_t>(piece) * words_ + static_cast<size_t>(store >> 6)] &= ~(uint64_t{1} << (store & 63));
    if (store == off_ && p.has_place) return;
    store_[store].release(time, p.bits);
    if (store != off_) {
      std::vector<int32_t>& held = held_by_[store];
      int32_t place = copy(piece, store).place;
      held[place] = held.back();
      copy(held[place], store).place = place;
      held.pop_back();
    }
    if (keep_events_) changes_.push_back({time, store != off_, p.category, -p.bits});
  }

  void count(UnitId unit, EnergyTerm term, double pj) {
    if (unit != kNone) result_.units[unit].energy[static_cast<size_t>(term)] += pj;
  }
  void move_energy(UnitId unit, bool eviction, int from, int to, double bits) {
    const StoreInfo &a = stores_.all()[from], &b = stores_.all()[to];
    if (from >= 0 && from != to) {
      double read = words(bits, a.read_bandwidth) * a.read_cost;
      count(unit, eviction ? EnergyTerm::eviction : from == off_ ? EnergyTerm::offchip : EnergyTerm::sram, read);
    }
    double written = words(bits, b.write_bandwidth) * b.write_cost;
    count(unit, eviction ? EnergyTerm::eviction : to == off_ ? EnergyTerm::offchip : EnergyTerm::sram, written);
  }

  struct Arrival {
    int64_t start = 0, end = 0;
    bool offchip = false;
  };
  // Moves bits over a way, from `earliest` on.
  Arrival move(const std::vector<int>& path, int64_t duration, int64_t earliest, Event event) {
    Arrival arrival;
    earliest = std::max<int64_t>(earliest, 0);
    arrival.start = monet::earliest(links_, path, earliest, duration, std::numeric_limits<int64_t>::max());
    arrival.end = arrival.start + duration;
    for (int link : path) {
      links_[link].take(arrival.start, duration, links_[link].bandwidth());
      result_.link_busy[link] += duration;
      arrival.offchip = arrival.offchip || interconnect_.links()[link].offchip;
      if (!keep_events_) continue;
      event.link = link;
      event.start = arrival.start;
      event.end = arrival.end;
      result_.events.push_back(event);
    }
    double pj = 0;
    for (int link : path) pj += interconnect_.links()[link].unit_energy_cost * static_cast<double>(duration);
    count(event.unit, event.cause == Cause::eviction ? EnergyTerm::eviction : EnergyTerm::links, pj);
    last_ = std::max(last_, arrival.end);
    return arrival;
  }
  int64_t duration_of(const std::vector<int>& path, int64_t bits, int from, int to) const {
    // A link to the memory off the chip has that memory's bandwidth.
    int64_t least = std::numeric_limits<int64_t>::max();
    if (from != off_) least = std::min(least, stores_.all()[from].read_bandwidth);
    if (to != off_) least = std::min(least, stores_.all()[to].write_bandwidth);
    for (int link : path) least = std::min(least, interconnect_.links()[link].bandwidth);
    if (least == std::numeric_limits<int64_t>::max()) return 0;
    return (bits + least - 1) / least;
  }
  void traffic(Cause cause, int64_t read, int64_t written, UnitId unit) {
    result_.traffic[static_cast<size_t>(cause)] += read + written;
    result_.read_bits += read;
    result_.written_bits += written;
    if (unit == kNone) return;
    result_.units[unit].read_bits += read;
    result_.units[unit].written_bits += written;
  }

  // Writes a piece off the chip from a store that has it.
  Arrival write_off(int32_t piece, int from, int64_t earliest, Cause cause, UnitId unit) {
    const Piece& p = program_->pieces[piece];
    size_t core = stores_.core_of(from);
    static const std::vector<int> kNoPath;
    const std::vector<int>& path = core < accelerator_.cores.size() && accelerator_.offchip_core >= 0
                                       ? interconnect_.path(core, static_cast<size_t>(accelerator_.offchip_core))
                                       : kNoPath;
    Event event;
    event.unit = unit;
    event.tensor = p.tensor;
    event.cause = cause;
    event.bits = p.bits;
    Arrival arrival =
        move(path, duration_of(path, p.bits, from, off_), std::max(earliest, copy(piece, from).available), event);
    move_energy(unit, cause == Cause::eviction, from, off_, static_cast<double>(p.bits));
    traffic(cause, 0, p.bits, unit);
    put(piece, off_, arrival.start, arrival.end);
    if (store_[off_].held_last() > store_[off_].capacity()) {
      throw Refusal({"offchip-full",
                     "the off-chip memory of " + std::to_string(store_[off_].capacity() / 8) +
                         " bytes does not hold what the schedule puts there",
                     "", planner_.graph().tensors[p.tensor].name,
                     "at least " + std::to_string(store_[off_].held_last() / 8) + " bytes"});
    }
    copy(piece, from).last_use = std::max(copy(piece, from).last_use, arrival.end);
    return arrival;
  }

  // What has least goes first to make room.
  double importance(int32_t piece, int store) const {
    if (options_.as_stream)
      return static_cast<double>(uses_[piece]) * static_cast<double>(program_->pieces[piece].bits);
    double away = static_cast<double>(next_use_[piece] == kNotAgain ? kNotAgain : next_use_[piece] - step_);
    bool elsewhere = any_store(piece, [&](int s) { return s != store; });
    return -away * (elsewhere ? 2 : 1);
  }

  // The first time at or after `from` at which the store has room, making some if it must; kNever if it cannot.
  int64_t make_space(int store, int64_t bits, int64_t from, UnitId unit) {
    Store& memory = store_[store];
    int64_t time = memory.earliest(from, bits);
    if (time != kNever) return time;
    if (bits > memory.capacity()) return kNever;
    // Mostly few have to go: a heap, not a sorted list. While a step is made ready nothing changes in it.
    Rank& ranked = rank_[store];
    std::vector<std::pair<double, int32_t>>& rank = ranked.pieces;
    if (ranked.step != step_) {
      ranked.step = step_;
      rank.clear();
      for (int32_t piece : held_by_[store])
        if (pinned_[piece] != step_) rank.push_back({importance(piece, store), piece});
      std::make_heap(rank.begin(), rank.end(), std::greater<>());
    }
    for (int64_t room = memory.capacity() - memory.held_last(); room < bits && !rank.empty(); rank.pop_back()) {
      std::pop_heap(rank.begin(), rank.end(), std::greater<>());
      int32_t piece = rank.back().second;
      if (pinned_[piece] == step_ || copy(piece, store).available == kNever) continue;
      int64_t gone = from;
      if (!any_store(piece, [&](int s) { return s != store; }))
        gone = write_off(piece, store, from, Cause::eviction, unit).end;
      room += program_->pieces[piece].bits;
      drop(piece, store, gone);
    }
    return memory.earliest(from, bits);
  }

  // Where a transfer of the piece to a core begins: on the chip if it is there, the earliest of those.
  int source(int32_t piece, size_t core) const {
    int best = -1;
    any_store(piece, [&](int store) {
      bool reaches =
          store != off_ && (stores_.core_of(store) == core || interconnect_.way(stores_.core_of(store), core) != 0);
      if (reaches && (best < 0 || copy(piece, store).available < copy(piece, best).available)) best = store;
      return false;
    });
    if (best >= 0) return best;
    return copy(piece, off_).available != kNever ? off_ : -1;
  }

  void bring_off(int32_t piece, UnitId unit, Cause cause) {
    if (copy(piece, off_).available != kNever) return;
    any_store(piece, [&](int store) {
      write_off(piece, store, 0, cause, unit);
      return true;
    });
  }

  [[noreturn]] void refuse(const Step& step, int store, int64_t bits) const {
    const Graph& graph = planner_.graph();
    std::string called = unit_name(graph, graph.units[step.unit]);
    throw Refusal({"tile-too-large",
                   "a tile of " + called + " and what it reads do not fit " + stores_.all()[store].name + " (" +
                       std::to_string(store_[store].capacity() / 8) + " bytes)",
                   called, "",
                   "at least " + std::to_string((bits + 7) / 8) + " bytes, more tiles, or a smaller fused group"});
  }

  // Brings what tiles of the step need of one tensor, all that goes the same way in one transfer.
  void load(const Step& step, const Need* first, const Need* last) {
    batches_.clear();
    deliveries_.clear();
    for (const Need* need = first; need != last; ++need) {
      each_tile(*need, [&](int p) {
        auto core = static_cast<size_t>(program_->tiles[step.first_tile + p].core);
        int64_t here = available_at(need->piece, core);
        if (here != kNever) {
          if (here > ready_[p].end) ready_[p] = {here, here, false};
          return;
        }
        int from = source(need->piece, core);
        if (from < 0) {  // made elsewhere, with no way but over the memory off the chip
          bring_off(need->piece, step.unit, Cause::move);
          from = off_;
        }
        size_t sender = stores_.core_of(from);
        size_t way = sender < accelerator_.cores.size() ? interconnect_.way(sender, core) : 0;
        bool offchip = from == off_;
        auto batch = std::find_if(batches_.begin(), batches_.end(), [&](const Batch& b) {
          return b.way == way && b.offchip == offchip && (way != 0 || b.core == core);
        });
        if (batch == batches_.end())
          batch = batches_.insert(batches_.end(), {way, core, offchip, from, 0, std::numeric_limits<int64_t>::max()});
        int64_t& available = copy(need->piece, from).available;
        batch->ready = std::max(batch->ready, available);
        batch->begin = std::min(batch->begin, begin_[p]);
        int to = store_of(step, p, *need);
        auto index = static_cast<int>(batch - batches_.begin());
        // One sending serves all that receive it on the way, and all cores that share a memory.
        bool sent = batch->last == need, received = received_[to] == need;
        batch->last = need;
        received_[to] = need;
        if (!sent) batch->bits += need->bits;
        deliveries_.push_back({need, p, index, from, to, !sent, !received});
      });
    }
    if (batches_.empty()) return;
    for (Delivery& d : deliveries_) {
      if (!d.arrives || d.need->partial) continue;
      Batch& batch = batches_[d.batch];
      const Piece& piece = program_->pieces[d.need->piece];
      int64_t room = make_space(d.to, piece.bits, std::max(batch.begin, batch.ready), step.unit);
      if (room == kNever) {
        if (!piece.stored && !piece.crossing && step_in_group_) refuse(step, d.to, needed_bits(step, d.tile));
        d.passes = true;  // used as it comes
        continue;
      }
      batch.ready = std::max(batch.ready, room);
      // Kept from the time that is decided below: held already, so that what follows finds less room.
      store_[d.to].hold(room, piece.bits);
      d.held_from = room;
    }
    Event event;
    event.unit = step.unit;
    event.slot = step.slot;
    event.tensor = program_->pieces[first->piece].tensor;
    for (Batch& batch : batches_) {
      event.cause = batch.offchip ? Cause::load : Cause::move;
      event.bits = batch.bits;
      const std::vector<int>& path = interconnect_.links_of(batch.way);
      int to = stores_.of(batch.core, 0, program_->pieces[first->piece].region);
      batch.arrival = move(path, duration_of(path, batch.bits, batch.from, std::max(to, 0)),
                           std::max(batch.begin, batch.ready), event);
      if (batch.offchip) traffic(Cause::load, batch.bits, 0, step.unit);
    }
    for (const Delivery& d : deliveries_) {
      const Batch& batch = batches_[d.batch];
      if (batch.arrival.end > ready_[d.tile].end) ready_[d.tile] = batch.arrival;
      int64_t& used = copy(d.need->piece, d.from).last_use;
      used = std::max(used, batch.arrival.end);
      if (!d.arrives) continue;
      move_energy(step.unit, false, d.sends ? d.from : d.to, d.to, static_cast<double>(d.need->bits));
      if (d.need->partial || d.passes) continue;
      put(d.need->piece, d.to, batch.arrival.start, batch.arrival.end, d.held_from);
    }
  }

  int64_t needed_bits(const Step& step, int tile) const {
    int64_t bits = 0;
    for (int32_t i = 0; i < step.needs; ++i) {
      const Need& need = program_->needs[step.first_need + i];
      if (need.tiles.has(tile) && !need.streamed) bits += need.bits;
    }
    const Tile& t = program_->tiles[step.first_tile + tile];
    for (int32_t i = 0; i < t.made; ++i) bits += program_->pieces[program_->made[t.first_made + i]].bits;
    return bits + t.cost->scratch_bits;
  }

  void run(const Step& step) {
    step_ = static_cast<int32_t>(&step - program_->steps.data());
    UnitRun& unit = result_.units[step.unit];
    bool first_slot = step.slot == 0;
    step_in_group_ = step_ > 0 && (&step)[-1].group == step.group;
    if (static_cast<size_t>(step_) + 1 < program_->steps.size())
      step_in_group_ = step_in_group_ || (&step)[1].group == step.group;
    if (options_.as_stream && first_slot) {
      int64_t all = *std::max_element(idle_.begin(), idle_.end());
      std::fill(idle_.begin(), idle_.end(), all);
    }
    const Need* needs = program_->needs.data() + step.first_need;
    for (int32_t i = 0; i < step.needs; ++i)
      if (!needs[i].streamed) pinned_[needs[i].piece] = step_;

    // Transfers begin as late as they can without being late.
    begin_.fill(0);
    for (int p = 0; p < step.tiles; ++p) {
      auto core = static_cast<size_t>(program_->tiles[step.first_tile + p].core);
      begin_[p] = idle_[core];
      ready_[p] = {0, 0, false};
    }
    parts_.fill(0);
    for (int32_t i = 0; i < step.needs; ++i) {
      if (needs[i].streamed) continue;
      if (needs[i].partial) each_tile(needs[i], [&](int p) { parts_[p] += needs[i].bits; });
      int64_t takes = offchip_bandwidth_ > 0 ? (needs[i].bits + offchip_bandwidth_ - 1) / offchip_bandwidth_ : 0;
      each_tile(needs[i], [&](int p) { begin_[p] -= takes; });
    }
    for (int32_t i = 0; i < step.needs; ++i) {
      const Need& need = needs[i];
      if (!need.streamed) {
        int32_t end = i + 1;
        while (end < step.needs && !needs[end].streamed &&
               program_->pieces[needs[end].piece].tensor == program_->pieces[need.piece].tensor)
          ++end;
        load(step, needs + i, needs + end);
        i = end - 1;
        continue;
      }
      bring_off(need.piece, step.unit, Cause::eviction);
      int64_t there = copy(need.piece, off_).available;
      each_tile(need, [&](int p) {
        if (there > ready_[p].end) ready_[p] = {there, there, true};
      });
    }

    for (int p = 0; p < step.tiles; ++p) end_[p] = run_tile(step, p, unit);
    for (int32_t i = 0; i < step.needs; ++i) {
      const Need& need = needs[i];
      each_tile(need, [&](int p) {
        auto core = static_cast<size_t>(program_->tiles[step.first_tile + p].core);
        auto used = [&](int store) {
          int64_t& last = copy(need.piece, store).last_use;
          last = std::max(last, end_[p]);
        };
        for (int store : stores_.of_core(core))
          if (copy(need.piece, store).available != kNever) used(store);
        if (need.streamed) used(off_);
      });
    }

    // What is no longer needed goes; results go off the chip.
    for (int32_t i = 0; i < step.needs; ++i) {
      const Need& need = needs[i];
      next_use_[need.piece] = next_need_[step.first_need + i];
      each_tile(need, [&](int p) {
        --uses_[need.piece];
        if (!need.streamed) --copy(need.piece, store_of(step, p, need)).uses;
      });
      release(need.piece);
    }
    for (int p = 0; p < step.tiles; ++p) {
      const Tile& tile = program_->tiles[step.first_tile + p];
      for (int32_t i = 0; i < tile.made; ++i) {
        int32_t piece = program_->made[tile.first_made + i];
        const Piece& made = program_->pieces[piece];
        bool leaves = (made.output && !options_.as_stream) || (made.crossing && options_.write_back);
        if (leaves) bring_off(piece, step.unit, made.output ? Cause::output : Cause::write_back);
        release(piece);
      }
    }
    bool group_ends = &step == &program_->steps.back() || (&step)[1].group != step.group;
    if (group_ends && options_.write_back)
      for (int store = 0; store < off_; ++store)
        while (!held_by_[store].empty()) {
          int32_t piece = held_by_[store].back();
          bring_off(piece, step.unit, Cause::write_back);
          drop(piece, store, 0);
        }
  }

  // Drops copies that nobody needs any more.
  void release(int32_t piece) {
    const Piece& p = program_->pieces[piece];
    bool off = copy(piece, off_).available != kNever;
    if (uses_[piece] == 0) {
      bool stays = p.output && !off;  // (as Stream, outputs are not written)
      int64_t end = 0;
      any_store(piece, [&](int store) {
        end = std::max(end, copy(piece, store).last_use);
        if (store != off_ && !stays) drop(piece, store, 0);
        return false;
      });
      if (off && !p.stored && !p.output) drop(piece, off_, end);
      return;
    }
    any_store(piece, [&](int store) {
      if (store == off_ || copy(piece, store).uses > 0) return false;
      if (off || any_store(piece, [&](int other) { return other != store; })) drop(piece, store, 0);
      return false;
    });
  }

  // Cycles that the tile's tensors take from and to regions of the core's memory; each of these works by itself.
  int64_t region_cycles(const Step& step, int p) {
    if (!has_regions_) return 0;
    const Tile& tile = program_->tiles[step.first_tile + p];
    std::array<int64_t, kMemoryRegions> bits{}, bandwidth{};
    auto add = [&](int32_t piece, int store, int64_t moved) {
      if (store < 0 || !stores_.all()[store].region) return;
      auto region = static_cast<size_t>(program_->pieces[piece].region);
      bits[region] += moved;
      bandwidth[region] = stores_.all()[store].read_bandwidth;
    };
    for (int32_t i = 0; i < step.needs; ++i) {
      const Need& need = program_->needs[step.first_need + i];
      if (need.tiles.has(p) && !need.streamed) add(need.piece, store_of(step, p, need), need.bits);
    }
    for (int32_t i = 0; i < tile.made; ++i) {
      int32_t piece = program_->made[tile.first_made + i];
      add(piece, store_of_output(tile, piece), program_->pieces[piece].bits);
    }
    int64_t cycles = 0;
    for (size_t r = 0; r < bits.size(); ++r)
      if (bits[r] > 0) cycles = std::max(cycles, (bits[r] + bandwidth[r] - 1) / bandwidth[r]);
    return cycles;
  }

  // Every tile sends its partial sums to all others, halfway through.
  void exchange(const Step& step, int64_t from) {
    exchange_cycles_ = 0;
    if (step.exchanged_bits == 0 || step.tiles < 2) return;
    auto core = [&](int p) { return static_cast<size_t>(program_->tiles[step.first_tile + p].core); };
    const std::vector<int>& path = interconnect_.path(core(0), core(1));
    Event event;
    event.unit = step.unit;
    event.slot = step.slot;
    event.cause = Cause::move;
    event.bits = step.exchanged_bits * step.tiles;
    int store = stores_.of(core(0), 2);
    Arrival arrival = move(path, duration_of(path, event.bits, store, store), from, event);
    exchange_cycles_ = arrival.end - from;
    for (int p = 0; p < step.tiles; ++p) {
      int own = stores_.of(core(p), 2);
      const StoreInfo& info = stores_.all()[own];
      auto bits = static_cast<double>(step.exchanged_bits);
      count(step.unit, EnergyTerm::sram,
            words(bits, info.read_bandwidth) * info.read_cost +
                words(bits * (step.tiles - 1), info.write_bandwidth) * info.write_cost);
    }
  }

  int64_t run_tile(const Step& step, int p, UnitRun& unit) {
    const Tile& tile = program_->tiles[step.first_tile + p];
    const TileCost& cost = *tile.cost;
    auto core = static_cast<size_t>(tile.core);
    int64_t idle = idle_[core], start = std::max(idle, ready_[p].end);
    bool output_streams = cost.all_stream || (cost.rule == UnitCost::Rule::mapping && cost.streams[2].streams);

    // Room for what it makes and for what streams through.
    int64_t begun = start;
    by_store_.assign(n_, 0);
    bool direct = output_streams;
    if (!output_streams)
      for (int32_t i = 0; i < tile.made; ++i) {
        int32_t piece = program_->made[tile.first_made + i];
        int store = store_of_output(tile, piece);
        if (store < 0) {
          direct = true;
        } else {
          by_store_[store] += program_->pieces[piece].bits;
        }
      }
    int64_t parts = cost.scratch_bits + parts_[p];
    int scratch_store = parts > 0 ? stores_.of(core, 2) : -1;
    int64_t scratch = 0;
    if (scratch_store >= 0) {
      scratch = std::min(parts, store_[scratch_store].capacity());
      by_store_[scratch_store] += scratch;
    }
    for (int store = 0; store < off_; ++store) {
      if (by_store_[store] == 0) continue;
      int64_t room = make_space(store, by_store_[store], start, step.unit);
      if (room == kNever) {
        bool inner = false;
        for (int32_t i = 0; i < tile.made; ++i) {
          const Piece& made = program_->pieces[program_->made[tile.first_made + i]];
          inner = inner || (!made.crossing && !made.output);
        }
        if (inner && step_in_group_) refuse(step, store, needed_bits(step, p));
        direct = true;  // it goes off the chip as it is made
        if (store == scratch_store) scratch = 0;
        continue;
      }
      start = std::max(start, room);
    }
    int64_t with_room = start;

    // Links that it streams over.
    struct Taken {
      int link;
      int64_t bandwidth;
    };
    std::array<Taken, 32> taken{};
    size_t count_taken = 0;
    if (p == 0) exchange(step, start + cost.cycles / 2);
    int64_t waits_for_region = std::max<int64_t>(0, region_cycles(step, p) - cost.cycles);
    int64_t duration = cost.cycles + exchange_cycles_ + waits_for_region;
    auto add = [&](const std::vector<int>& path, int64_t bandwidth) {
      for (int link : path) {
        size_t k = 0;
        while (k < count_taken && taken[k].link != link) ++k;
        if (k == count_taken && count_taken < taken.size()) taken[count_taken++] = {link, 0};
        if (k < taken.size()) taken[k].bandwidth += bandwidth;
      }
    };
    auto offchip = static_cast<size_t>(std::max(accelerator_.offchip_core, 0));
    bool streams = accelerator_.offchip_core >= 0 &&
                   (cost.streams[0].streams || cost.streams[1].streams || cost.streams[2].streams);
    bool rides = false;  // along with the stream of an earlier tile of the step
    if (streams) {
      const std::vector<int>&in = interconnect_.path(offchip, core), &out = interconnect_.path(core, offchip);
      auto window = [&](int64_t from, bool shared_too) {
        count_taken = 0;
        for (int o = 0; o < 2; ++o)
          if (cost.streams[o].streams && (shared_too || !step.shared[o])) add(in, cost.streams[o].bandwidth);
        if (cost.streams[2].streams) add(out, cost.streams[2].bandwidth);
        int64_t t = from;
        for (bool moved = true; moved;) {
          moved = false;
          for (size_t k = 0; k < count_taken; ++k) {
            LinkTimeline& link = links_[taken[k].link];
            taken[k].bandwidth = std::min(taken[k].bandwidth, link.bandwidth());
            int64_t next = link.earliest(t, duration, taken[k].bandwidth);
            moved = moved || next > t;
            t = next;
          }
        }
        return t;
      };
      bool shares = p > 0 && (step.shared[0] || step.shared[1]) && first_.cost == tile.cost;
      int64_t alone = window(start, true);
      if (shares && first_.start >= start) {
        // Stream asks for room for all of it, though the shared part is then taken once.
        int64_t with = options_.as_stream ? alone : window(first_.start, false);
        rides = with == first_.start;
      }
      if (rides) {
        start = first_.start;
        window(start, false);
      } else {
        start = window(start, true);
      }
      for (size_t k = 0; k < count_taken; ++k) {
        links_[taken[k].link].take(start, duration, taken[k].bandwidth);
        result_.link_busy[taken[k].link] +=
            duration * taken[k].bandwidth / std::max<int64_t>(1, links_[taken[k].link].bandwidth());
        double pj = options_.as_stream
                        ? 0
                        : interconnect_.links()[taken[k].link].unit_energy_cost * static_cast<double>(duration) *
                              (static_cast<double>(taken[k].bandwidth) /
                               static_cast<double>(links_[taken[k].link].bandwidth()));
        count(step.unit, EnergyTerm::links, pj);
        if (!keep_events_) continue;
        Event event;
        event.link = taken[k].link;
        event.unit = step.unit;
        event.slot = step.slot;
        event.tile = p;
        event.cause = Cause::stream;
        event.bits = taken[k].bandwidth * duration;
        event.start = start;
        event.end = start + duration;
        result_.events.push_back(event);
      }
    }
    int64_t end = start + duration;
    if (p == 0 || !rides) first_ = {tile.cost, start};

    // Counted.
    for (int o = 0; o < 3; ++o) {
      const TileCost::Stream& stream = cost.streams[o];
      if (!stream.streams) continue;
      // (Stream counts the energy of each tile's stream, shared or not.)
      bool counted = !(rides && o < 2 && step.shared[o]);
      if (counted || options_.as_stream) count(step.unit, EnergyTerm::offchip, stream.energy);
      if (counted)
        traffic(Cause::stream, static_cast<int64_t>(stream.read_bits), static_cast<int64_t>(stream.written_bits),
                step.unit);
    }
    count(step.unit, EnergyTerm::mac, cost.mac_energy);
    count(step.unit, EnergyTerm::registers, cost.register_energy);
    count(step.unit, EnergyTerm::sram, cost.sram_energy);
    unit.waits.compute += cost.compute_cycles;
    unit.waits.memory += cost.memory_cycles + static_cast<double>(waits_for_region);
    unit.waits.link += static_cast<double>(exchange_cycles_);
    unit.waits.offchip += cost.stream_cycles + static_cast<double>(start - with_room);
    unit.waits.space += static_cast<double>(with_room - begun);
    if (int64_t gap = begun - idle; gap > 0) {
      // Of the wait for the last arrival, its transfer; before it began, other units.
      int64_t moving = std::clamp<int64_t>(ready_[p].end - std::max(idle, ready_[p].start), 0, gap);
      (ready_[p].offchip ? unit.waits.offchip : unit.waits.link) += static_cast<double>(moving);
      unit.waits.units += static_cast<double>(gap - moving);
    }
    if (unit.memory.empty()) unit.memory = cost.memory;
    unit.utilisation = cost.utilisation;
    unit.busy += duration;
    unit.start = unit.start < 0 ? start : std::min(unit.start, start);
    unit.end = std::max(unit.end, end);
    idle_[core] = end;
    last_ = std::max(last_, end);
    result_.core_busy[core] += duration;
    if (keep_events_) {
      Event event;
      event.core = tile.core;
      event.unit = step.unit;
      event.slot = step.slot;
      event.tile = p;
      event.start = start;
      event.end = end;
      result_.events.push_back(event);
    }

    // What it made is there; what it read was used.
    int64_t written = end;
    for (int32_t i = 0; i < tile.made; ++i) {
      int32_t piece = program_->made[tile.first_made + i];
      const Piece& made = program_->pieces[piece];
      int store = direct ? off_ : store_of_output(tile, piece);
      pinned_[piece] = step_;
      if (!direct || output_streams) {
        put(piece, store, start, end);
        continue;
      }
      // No room for it on the chip.
      const std::vector<int>& out = interconnect_.path(core, offchip);
      Event event;
      event.unit = step.unit;
      event.tensor = made.tensor;
      event.cause = Cause::eviction;
      event.bits = made.bits;
      int64_t takes = duration_of(out, made.bits, off_, off_);
      Arrival arrival = move(out, takes, end - std::min(takes, duration), event);
      const StoreInfo& memory = stores_.all()[off_];
      count(step.unit, EnergyTerm::eviction,
            words(static_cast<double>(made.bits), memory.write_bandwidth) * memory.write_cost);
      traffic(Cause::eviction, 0, made.bits, step.unit);
      put(piece, off_, arrival.start, std::max(arrival.end, end));
      written = std::max(written, arrival.end);
    }
    if (scratch > 0) {
      store_[scratch_store].hold(start, scratch);
      store_[scratch_store].release(end, scratch);
      if (keep_events_) {
        changes_.push_back({start, true, MemoryCategory::workspace, scratch});
        changes_.push_back({end, true, MemoryCategory::workspace, -scratch});
      }
    }
    return end;
  }

  void finish() {
    result_.latency = last_;
    for (size_t u = 0; u < result_.units.size(); ++u) {
      int64_t& end = result_.phase_end[static_cast<size_t>(planner_.graph().units[u].phase)];
      end = std::max(end, result_.units[u].end);
    }
    for (const Store& store : store_) result_.store_peak.push_back(store.peak());
    std::stable_sort(changes_.begin(), changes_.end(),
                     [](const Change& a, const Change& b) { return a.time < b.time; });
    BytesByCategory on{}, off{};
    auto record = [](std::vector<FootprintPoint>& list, int64_t time, const BytesByCategory& bits) {
      if (list.empty() || list.back().time != time) list.push_back({time, {}});
      for (size_t c = 0; c < bits.size(); ++c) list.back().bytes[c] = (bits[c] + 7) / 8;
    };
    for (const Change& change : changes_) {
      BytesByCategory& bits = change.onchip ? on : off;
      bits[static_cast<size_t>(change.category)] += change.bits;
      record(change.onchip ? result_.onchip : result_.offchip, change.time, bits);
    }
  }

  const Planner& planner_;
  const Program* program_ = nullptr;
  const Accelerator& accelerator_;
  const Interconnect& interconnect_;
  const Stores& stores_;
  const ScheduleOptions& options_;
  bool keep_events_ = false, has_regions_ = false;
  size_t n_;
  int off_;
  int64_t offchip_bandwidth_ = 0;  // bit/cycle

  std::vector<Store> store_;
  std::vector<LinkTimeline> links_;
  std::vector<int64_t> idle_;       // by core
  std::vector<Copy> copies_;        // by piece and store
  std::vector<int32_t> uses_;       // by piece
  std::vector<int32_t> next_need_;  // by need: the step that needs its piece next
  std::vector<int32_t> next_use_;   // by piece: likewise, as of the step that runs
  std::vector<int32_t> pinned_;     // by piece: the step that it must stay for
  size_t words_;
  std::vector<uint64_t> where_;                // by piece: the set of stores that have it
  std::vector<std::vector<int32_t>> held_by_;  // pieces, by store
  // Pieces that may go from a store to make room, the least important first: a heap, as of a step.
  struct Rank {
    int32_t step = -1;
    std::vector<std::pair<double, int32_t>> pieces;
  };
  std::vector<Rank> rank_;
  std::vector<Change> changes_;
  int64_t last_ = 0;

  // Of the step that runs.
  int32_t step_ = -1;
  bool step_in_group_ = false;  // its group has other units' steps beside it
  // By tile: when transfers for it may begin, bits of parts of pieces (which stay as long as it runs), its end.
  std::array<int64_t, kMaxCores> begin_{}, parts_{}, end_{};
  std::array<Arrival, kMaxCores> ready_{};
  // What goes one way in one transfer, and what of it arrives where.
  struct Batch {
    size_t way;
    size_t core;  // a receiver
    bool offchip;
    int from;  // a store
    int64_t ready;
    int64_t begin;
    int64_t bits = 0;
    Arrival arrival{};
    const Need* last = nullptr;  // that was added
  };
  struct Delivery {
    const Need* need;
    int tile, batch, from, to;
    bool sends, arrives;  // the first of its piece in the batch; the first to that store
    bool passes = false;  // there is no room to keep it
    int64_t held_from = 0;
  };
  std::vector<Batch> batches_;
  std::vector<Delivery> deliveries_;
  std::vector<const Need*> received_;  // by store: the last need that is to arrive there
  std::vector<int64_t> by_store_;
  int64_t exchange_cycles_ = 0;
  struct First {
    const TileCost* cost = nullptr;
    int64_t start = 0;
  } first_;

  Schedule result_;
  bool units_clean_ = false;  // result_.units is as begun
};

const char* name(EnergyTerm term) {
  constexpr const char* kNames[] = {"mac", "registers", "sram", "links", "offchip", "eviction"};
  return kNames[static_cast<size_t>(term)];
}

double total(const Energy& energy) { return std::accumulate(energy.begin(), energy.end(), 0.0); }

const char* name(Cause cause) {
  constexpr const char* kNames[] = {"load", "move", "eviction", "write_back", "output", "stream"};
  return kNames[static_cast<size_t>(cause)];
}

Scheduler::Scheduler(const Planner& planner) : run_(std::make_unique<Run>(planner)) {}
Scheduler::~Scheduler() = default;

Schedule Scheduler::schedule(const Program& program, bool keep_events) { return run_->take(program, keep_events); }
Scheduler::Totals Scheduler::totals(const Program& program) { return run_->totals(program); }

}  // namespace monet
