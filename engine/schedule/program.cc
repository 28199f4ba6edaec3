#include "engine/schedule/program.h"

#include <algorithm>
#include <limits>

#include "engine/workload/stream_layer.h"

namespace monet {

namespace {

// Readers cut a tensor into at most so many pieces: beyond that they take parts of larger ones.
constexpr size_t kMaxPieces = 64;
// Partial sums are exchanged in this width (fp32).
constexpr int64_t kPartialBits = 32;

bool pools(const Unit& unit) { return unit.op.find("Pool") != std::string::npos; }

// Share of the axis that the largest of so many slices takes.
double largest_share(const AxisUse& use, int64_t size, int64_t slices) {
  if (use.axis == kNone || use.size == 0) return 1;
  // The first slices are the longest, but windows reach over both ends of the second one only.
  int64_t largest = use.range(slice(size, slices, 0)).size();
  if (slices > 1) largest = std::max(largest, use.range(slice(size, slices, 1)).size());
  return static_cast<double>(largest) / static_cast<double>(use.size);
}

// The largest divisor of n that is at most `limit`.
int64_t largest_divisor(int64_t n, int64_t limit) {
  if (n <= limit) return n;
  int64_t largest = 1;
  for (int64_t d = 1; d * d <= n; ++d)
    if (n % d == 0)
      for (int64_t either : {d, n / d})
        if (either <= limit) largest = std::max(largest, either);
  return largest;
}

}  // namespace

double Placement::share(const UnitParts& unit, int64_t parts, const std::vector<AxisUse> SliceAxis::*uses,
                        size_t i) const {
  auto of = [&](int axis, int64_t slices) {
    if (axis == kNone) return 1.0;
    const SliceAxis& sliced = unit.axes[static_cast<size_t>(axis)];
    return largest_share((sliced.*uses)[i], sliced.size, slices);
  };
  return split == tiled ? of(split, parts * tiles) : of(split, parts) * of(tiled, tiles);
}

// Where the tensor that a unit made is while units are placed.
struct Planner::Held {
  const Placement* by = nullptr;  // nothing: off the chip
  AxisUse split;                  // how it lies across those cores
  int64_t positions = 1;
};

Planner::Planner(const Graph& graph, const std::vector<Work>& works, const Accelerator& accelerator,
                 const Precision& precision, const MappingFile& mapping, const CostOptions& costs,
                 const ScheduleOptions& options, CostCache& cache)
    : graph_(graph),
      works_(works),
      accelerator_(accelerator),
      mapping_(mapping),
      options_(options),
      interconnect_(accelerator),
      stores_(accelerator),
      costs_(accelerator, mapping, costs, cache),
      storage_(storage(graph)) {
  if (accelerator.cores.size() > kMaxCores)
    throw Refusal({"too-many-cores", "the accelerator has " + std::to_string(accelerator.cores.size()) + " cores",
                   "cores", "", "schedules are made for at most " + std::to_string(kMaxCores)});
  std::vector<int32_t> arrays, vectors, poolers;
  for (size_t c = 0; c < accelerator.cores.size(); ++c) {
    const Core& core = accelerator.cores[c];
    if (static_cast<int>(c) == accelerator.offchip_core || core.pes() == 0) continue;
    auto index = static_cast<int32_t>(c);
    if (core.runs_contractions) arrays.push_back(index);
    if (core.type == "simd" || core.type == "vector") vectors.push_back(index);
    if (core.type == "pooling") poolers.push_back(index);
  }
  for (const Link& link : interconnect_.links())
    if (link.offchip) offchip_bandwidth_ = std::max(offchip_bandwidth_, link.bandwidth);
  if (!arrays.empty()) arrays_ = {arrays};
  if (!vectors.empty()) vectors_ = {vectors};
  if (!poolers.empty()) poolers_ = {poolers};

  element_bits_.resize(graph.tensors.size());
  for (size_t t = 0; t < element_bits_.size(); ++t) {
    int64_t n = std::max<int64_t>(elements(graph.tensors[t].shape), 1);
    element_bits_[t] = std::max<int64_t>(1, 8 * bytes(graph, static_cast<TensorId>(t), precision) / n);
  }
  for (size_t u = 0; u < graph.units.size(); ++u) {
    const Unit& unit = graph.units[u];
    const Work& work = works[u];
    UnitParts parts;
    if (!work.view) {
      parts.axes = slice_axes(graph, storage_, unit, work);
      parts.second = second_operands(graph, storage_, unit, work);
      for (size_t i = 0; i < work.reads.size(); ++i) {
        bool constant = graph.tensors[work.reads[i]].kind == TensorKind::constant;
        parts.read_bits.push_back(constant ? 0 : work.read_elements[i] * element_bits_[work.reads[i]]);
        parts.read_streams.push_back(graph.tensors[work.reads[i]].kind == TensorKind::state);
      }
      for (TensorId t : work.writes) {
        parts.written_bits.push_back(elements(graph.tensors[t].shape) * element_bits_[t]);
        TensorId of = graph.tensors[t].of;
        parts.write_streams.push_back(unit.phase == Phase::optimizer && of != kNone &&
                                      graph.tensors[of].kind == TensorKind::state);
      }
      parts.layer = options.as_stream ? stream_layer_of(graph, unit) : layer_of(graph, unit, precision);
    }
    parts_.push_back(std::move(parts));
  }
  edges_ = unit_edges(graph, works);
  maker_.assign(graph.tensors.size(), kNone);
  readers_.resize(graph.tensors.size());
  is_output_.assign(graph.tensors.size(), 0);
  saved_.assign(graph.tensors.size(), 0);
  for (size_t u = 0; u < graph.units.size(); ++u) {
    if (works[u].view) continue;
    for (TensorId t : works[u].writes) maker_[t] = static_cast<UnitId>(u);
    for (TensorId t : works[u].reads) readers_[t].push_back(static_cast<UnitId>(u));
  }
  for (TensorId t : graph.outputs) is_output_[storage_[t]] = 1;
  for (size_t t = 0; t < saved_.size(); ++t)
    saved_[t] = maker_[t] != kNone && graph.units[maker_[t]].phase == Phase::forward &&
                std::any_of(readers_[t].begin(), readers_[t].end(),
                            [&](UnitId u) { return graph.units[u].phase == Phase::backward; });
  for (TensorId t : graph.inputs)
    if (graph.tensors[t].kind == TensorKind::state) state_bits_ += elements(graph.tensors[t].shape) * element_bits_[t];
}

int Planner::region(TensorId t) const {
  switch (category_of(graph_, graph_.tensors[t])) {
    case MemoryCategory::parameters:
    case MemoryCategory::buffers:
      return static_cast<int>(MemoryRegion::Holds::parameters);
    case MemoryCategory::gradients:
      return static_cast<int>(MemoryRegion::Holds::gradients);
    default:
      return saved_[t] ? static_cast<int>(MemoryRegion::Holds::checkpoints) : Stores::kNoRegion;
  }
}

// A unit alone, when what crosses groups goes off the chip, has nothing to keep.
bool Planner::streams(const FusedGroup& group) const {
  return options_.write_back &&
         std::count_if(group.units.begin(), group.units.end(), [&](UnitId u) { return !works_[u].view; }) == 1;
}

void Planner::hold(std::vector<Held>& held, UnitId u, const Placement& placement) const {
  for (size_t i = 0; i < works_[u].writes.size(); ++i) {
    Held& at = held[works_[u].writes[i]];
    at = {&placement, {}, 1};
    if (placement.split == kNone) continue;
    const SliceAxis& axis = parts_[u].axes[placement.split];
    at.split = axis.writes[i];
    at.positions = axis.size;
  }
}

std::vector<Placement> Planner::placed(const FusedGroup& group) {
  std::vector<Held> held(graph_.tensors.size());
  std::vector<Placement> placements(group.units.size());
  for (size_t i = 0; i < group.units.size(); ++i) {
    if (works_[group.units[i]].view) continue;
    placements[i] = place(group.units[i], group, streams(group), held);
    hold(held, group.units[i], placements[i]);
  }
  return placements;
}

const TileCost& Planner::tile_cost(UnitId id, int32_t core, const Placement& placement, int64_t parts, bool stream) {
  int core_class = costs_.core_class(static_cast<size_t>(core));
  uint64_t key = static_cast<uint64_t>(id) << 40 | static_cast<uint64_t>(core_class) << 33 |
                 static_cast<uint64_t>(parts) << 25 | static_cast<uint64_t>(placement.split + 1) << 22 |
                 static_cast<uint64_t>(placement.tiled + 1) << 19 | static_cast<uint64_t>(stream) << 18;
  bool remember = placement.tiles < 1 << 18;
  if (remember) {
    key |= static_cast<uint64_t>(placement.tiles);
    auto at = known_.find(key);
    if (at != known_.end()) return tile_costs_[at->second];
  }
  const UnitParts& own = parts_[id];
  const SliceAxis* split = placement.split == kNone ? nullptr : &own.axes[placement.split];
  const SliceAxis* tiled = placement.tiled == kNone ? nullptr : &own.axes[placement.tiled];
  TileCost cost;
  if (own.layer) {
    Layer layer = *own.layer;
    if (split && split == tiled) {
      layer = sliced(layer, split->dim, parts * placement.tiles);
    } else {
      if (split) layer = sliced(layer, split->dim, parts);
      if (tiled) layer = sliced(layer, tiled->dim, placement.tiles);
    }
    cost = costs_.layer(layer, static_cast<size_t>(core), stream, options_.as_stream ? static_cast<int>(parts) : 0);
  } else if (options_.as_stream) {
    cost.all_stream = true;  // free
  } else {
    TileCosts::Moved held, streamed;
    for (size_t i = 0; i < own.read_bits.size(); ++i)
      (own.read_streams[i] ? streamed : held).read_bits +=
          placement.share(own, parts, &SliceAxis::reads, i) * static_cast<double>(own.read_bits[i]);
    for (size_t i = 0; i < own.written_bits.size(); ++i)
      (own.write_streams[i] ? streamed : held).written_bits +=
          placement.share(own, parts, &SliceAxis::writes, i) * static_cast<double>(own.written_bits[i]);
    // A sum of gradients is read, added to and written where it lies; the new part comes from the array that made it.
    const Unit& unit = graph_.units[id];
    if (options_.accumulate_in_place && unit.role == Role::accumulate && !works_[id].reads.empty() &&
        graph_.tensors[works_[id].reads.front()].kind == TensorKind::sum)
      held.read_bits = held.written_bits;
    const auto& all = stores_.all();
    int input = stores_.of(static_cast<size_t>(core), 0);
    int output = stores_.of(static_cast<size_t>(core), 2);
    if (stream || input < 0 || output < 0 ||
        held.read_bits + (input == output ? held.written_bits : 0) > static_cast<double>(all[input].capacity) ||
        held.written_bits > static_cast<double>(all[output].capacity)) {
      streamed.read_bits += held.read_bits;
      streamed.written_bits += held.written_bits;
      held = {};
    }
    int64_t pieces = (split ? parts : 1) * (tiled ? placement.tiles : 1);
    double operations = static_cast<double>(works_[id].operations) / static_cast<double>(pieces);
    cost = costs_.vector(static_cast<size_t>(core), operations, held, streamed);
    cost.all_stream = held.read_bits + held.written_bits == 0;
  }
  if (remember) known_.emplace(key, tile_costs_.size());
  tile_costs_.push_back(std::move(cost));
  return tile_costs_.back();
}

Placement Planner::place(UnitId id, const FusedGroup& group, bool stream, const std::vector<Held>& held) {
  const Unit& unit = graph_.units[id];
  const UnitParts& own = parts_[id];
  const Work& work = works_[id];
  std::string called = unit_name(graph_, unit);
  Placement best;

  // Over time: along the group's axis, or the one that stands for it.
  int64_t tiles = group.tiles;
  LayerMapping fixed = mapping_.of(called, unit.op);
  auto axis_of_kind = [&](SliceAxis::Kind kind) {
    int found = kNone;
    for (size_t a = 0; a < own.axes.size(); ++a) {
      // (Sums over an axis are not known before its last slice.)
      if (own.axes[a].kind != kind || own.axes[a].exchanged > 0) continue;
      if (own.axes[a].size >= tiles) return static_cast<int>(a);
      if (found == kNone) found = static_cast<int>(a);
    }
    return found;
  };
  auto axis_of_dim = [&](const std::string& dim) {
    for (size_t a = 0; a < own.axes.size(); ++a)
      if (own.axes[a].dim == dim) return static_cast<int>(a);
    return kNone;
  };
  if (options_.as_stream && group.units.size() > 1 && !fixed.intra_core_tiling.empty()) {
    const LoopParts& wanted = fixed.intra_core_tiling.front();
    if (int tiled = axis_of_dim(wanted.loop); tiled != kNone) {
      best.tiled = tiled;
      best.tiles = wanted.parts == 0 ? own.axes[tiled].size : std::min(wanted.parts, own.axes[tiled].size);
    }
  } else if (tiles > 1) {
    int tiled = unit.role == Role::weight_gradient ? axis_of_kind(SliceAxis::Kind::channels)
                : unit.role == Role::update        ? axis_of_kind(SliceAxis::Kind::batch)
                                                   : axis_of_kind(group.axis);
    // As many as a smaller axis has room for, so that its tiles still end where those of others do.
    if (tiled != kNone) best.tiles = largest_divisor(tiles, own.axes[tiled].size);
    if (best.tiles > 1) best.tiled = tiled;
  }

  std::vector<const std::vector<int32_t>*> sets;
  std::vector<int32_t> allowed;
  for (int wanted : fixed.core_allocation)
    for (size_t c = 0; c < accelerator_.cores.size(); ++c)
      if (accelerator_.cores[c].id == wanted && static_cast<int>(c) != accelerator_.offchip_core &&
          accelerator_.cores[c].pes() > 0)
        allowed.push_back(static_cast<int32_t>(c));
  if (!fixed.core_allocation.empty() && allowed.empty())
    throw Refusal({"no-core", "the mapping file allows " + called + " no core that computes", called, "",
                   "core_allocation lists ids of the accelerator's cores"});
  if (!allowed.empty()) {
    sets = {&allowed};
  } else if (own.layer && unit.contraction != kNone) {
    for (const auto& set : arrays_) sets.push_back(&set);
  } else {
    if (pools(unit))
      for (const auto& set : poolers_) sets.push_back(&set);
    for (const auto& set : vectors_) sets.push_back(&set);
    for (const auto& set : arrays_) sets.push_back(&set);
  }
  if (sets.empty())
    throw Refusal({"no-core", "no core can run " + called + " (" + unit.op + ")", called, "",
                   unit.contraction != kNone ? "contractions need a core with an operational array that is neither "
                                               "\"pooling\" nor \"simd\""
                                             : "a core with an operational array of type \"simd\" would"});

  // Cycles until its inputs are there and it is done, judged alone: the least wins, the first of equals.
  double least = std::numeric_limits<double>::infinity();
  auto consider = [&](const std::vector<int32_t>& cores, int split, int64_t parts) {
    Placement candidate = best;
    candidate.split = parts > 1 ? split : kNone;
    candidate.cores.assign(cores.begin(), cores.begin() + static_cast<long>(parts));
    double cycles = 0, streamed = 0;
    for (size_t i = 0; i < candidate.cores.size(); ++i) {
      if (i > 0 && costs_.core_class(static_cast<size_t>(candidate.cores[i])) ==
                       costs_.core_class(static_cast<size_t>(candidate.cores[i - 1])))
        continue;
      const TileCost& cost = tile_cost(id, candidate.cores[i], candidate, parts, stream);
      cycles = std::max(cycles, static_cast<double>(cost.cycles));
      double own_bits = 0;
      for (const TileCost::Stream& s : cost.streams) own_bits += s.read_bits + s.written_bits;
      streamed = std::max(streamed, own_bits);
    }
    // All tiles stream over the same link.
    if (streamed > 0 && offchip_bandwidth_ > 0)
      cycles = std::max(cycles, streamed * static_cast<double>(parts) / static_cast<double>(offchip_bandwidth_));
    cycles *= static_cast<double>(candidate.tiles);
    for (size_t i = 0; i < work.reads.size() && !stream; ++i) {
      const Held& at = held[work.reads[i]];
      if (!at.by) continue;
      const AxisUse use = candidate.split == kNone ? AxisUse{} : own.axes[candidate.split].reads[i];
      bool same = at.by->cores == candidate.cores;
      bool aligned = same && (candidate.cores.size() == 1 ||
                              (use.axis != kNone && use.axis == at.split.axis && at.by->cores.size() > 1));
      if (aligned) continue;
      auto from = static_cast<size_t>(at.by->cores.front());
      auto to = static_cast<size_t>(candidate.cores.front() == at.by->cores.front() && candidate.cores.size() > 1
                                        ? candidate.cores[1]
                                        : candidate.cores.front());
      if (from == to && at.by->cores.size() > 1) from = static_cast<size_t>(at.by->cores[1]);
      int64_t bandwidth = interconnect_.bandwidth(from, to);
      if (bandwidth > 0) cycles += static_cast<double>(own.read_bits[i]) / static_cast<double>(bandwidth);
    }
    // What it makes moves once more where its first reader cannot be cut the same way.
    for (size_t i = 0; i < work.writes.size() && candidate.split != kNone && !stream; ++i) {
      if (readers_[work.writes[i]].empty()) continue;
      UnitId reader = readers_[work.writes[i]].front();
      const std::vector<TensorId>& reads = works_[reader].reads;
      auto r = static_cast<size_t>(std::find(reads.begin(), reads.end(), work.writes[i]) - reads.begin());
      int axis = own.axes[candidate.split].writes[i].axis;
      const std::vector<SliceAxis>& theirs = parts_[reader].axes;
      if (std::any_of(theirs.begin(), theirs.end(), [&](const SliceAxis& a) { return a.reads[r].axis == axis; }))
        continue;
      int64_t bandwidth =
          interconnect_.bandwidth(static_cast<size_t>(candidate.cores[0]), static_cast<size_t>(candidate.cores[1]));
      if (bandwidth > 0) cycles += static_cast<double>(own.written_bits[i]) / static_cast<double>(bandwidth);
    }
    if (candidate.split != kNone && own.axes[candidate.split].exchanged > 0) {
      int64_t bandwidth =
          interconnect_.bandwidth(static_cast<size_t>(candidate.cores[0]), static_cast<size_t>(candidate.cores[1]));
      if (bandwidth == 0) return;  // no way to add up
      cycles += static_cast<double>(own.axes[candidate.split].exchanged * kPartialBits * parts) /
                static_cast<double>(bandwidth);
    }
    if (cycles < least) {
      least = cycles;
      best = std::move(candidate);
    }
  };
  for (const std::vector<int32_t>* set : sets) {
    auto all = static_cast<int64_t>(set->size());
    if (!fixed.inter_core_tiling.empty()) {
      int split = axis_of_dim(fixed.inter_core_tiling.front().loop);
      int64_t wanted = fixed.inter_core_tiling.front().parts;
      int64_t parts = split == kNone ? 1 : std::min({wanted == 0 ? all : wanted, all, own.axes[split].size});
      consider(*set, split, parts);
      continue;
    }
    consider(*set, kNone, 1);
    if (!own.axes.empty() && all > 1)
      for (size_t a = 0; a < own.axes.size(); ++a) {
        int64_t room = static_cast<int>(a) == best.tiled ? own.axes[a].size / best.tiles : own.axes[a].size;
        if (int64_t parts = std::min(all, room); parts > 1) consider(*set, static_cast<int>(a), parts);
      }
  }
  return best;
}

// The pieces of a tensor: a grid of cuts along some of its axes.
struct Planner::Build {
  struct Cut {
    int axis = kNone;
    std::vector<int64_t> at;  // where pieces begin, sorted, and the end
  };
  struct Grid {
    int32_t first = -1;  // index of its first piece; -1: not read or made
    std::vector<Cut> cuts;
    size_t count() const {
      size_t n = 1;
      for (const Cut& cut : cuts) n *= cut.at.size() - 1;
      return n;
    }
    Cut* cut(int axis) {
      for (Cut& c : cuts)
        if (c.axis == axis) return &c;
      return nullptr;
    }
  };
  std::vector<Grid> grids;

  void add(Grid& grid, const AxisUse& use, int64_t positions, int64_t parts, bool must) {
    if (use.axis == kNone || parts < 2 || (!must && !use.exact())) return;
    Cut* cut = grid.cut(use.axis);
    if (!must && grid.count() / (cut ? cut->at.size() - 1 : 1) * static_cast<size_t>(parts) > kMaxPieces) return;
    if (!cut) {
      grid.cuts.push_back({use.axis, {0, use.size}});
      cut = &grid.cuts.back();
    }
    for (int64_t i = 1; i < parts; ++i) {
      int64_t at = use.range(slice(positions, parts, i)).begin;
      auto place = std::lower_bound(cut->at.begin(), cut->at.end(), at);
      if (place == cut->at.end() || *place != at) cut->at.insert(place, at);
    }
  }
};

Program Planner::program(const Partition& partition, const std::function<void(double done)>& progress) {
  Program program;
  std::vector<size_t> order = group_order(graph_, edges_, partition);
  size_t n = graph_.tensors.size();
  std::vector<int32_t> group_of(graph_.units.size(), kNone);
  std::vector<UnitId> units;  // that run, in execution order
  for (size_t g = 0; g < partition.groups.size(); ++g)
    for (UnitId u : partition.groups[g].units) {
      group_of[u] = static_cast<int32_t>(g);
      if (!works_[u].view) units.push_back(u);
    }
  std::sort(units.begin(), units.end());
  std::vector<char> streaming;  // by group
  for (const FusedGroup& group : partition.groups) streaming.push_back(streams(group));

  // Where everything runs.
  program.placements.resize(graph_.units.size());
  std::vector<Held> held(n);
  std::vector<Diagnostic> problems;
  std::vector<UnitId> unmapped;
  size_t placed = 0;
  for (size_t g : order) {
    const FusedGroup& group = partition.groups[g];
    if (options_.write_back && !options_.as_stream) std::fill(held.begin(), held.end(), Held{});  // nothing stays
    for (UnitId u : group.units) {
      if (progress) progress(static_cast<double>(placed++) / static_cast<double>(graph_.units.size()));
      if (works_[u].view) continue;
      try {
        program.placements[u] = place(u, group, streaming[g], held);
        hold(held, u, program.placements[u]);
      } catch (const Refusal& refusal) {
        if (refusal.problems().front().code == "no-mapping") {
          unmapped.push_back(u);
        } else {
          problems.insert(problems.end(), refusal.problems().begin(), refusal.problems().end());
        }
      }
    }
  }
  if (!unmapped.empty()) {  // of what is mostly one reason, one line
    UnitId u = unmapped.front();
    size_t core = static_cast<size_t>(arrays_.empty() ? 0 : arrays_.front().front());
    Diagnostic why = costs_.unmapped(*parts_[u].layer, core, streaming[group_of[u]]);
    if (unmapped.size() > 1)
      why.message = std::to_string(unmapped.size()) + " layers cannot run; the first of them, " + why.message;
    problems.push_back(std::move(why));
  }
  if (!problems.empty()) throw Refusal(std::move(problems));

  // How tensors are cut: by their producers, then by what reads them. Where nothing stays on the chip after a group,
  // each group has its own cuts of what no unit makes (parameters): grids beyond the n-th, by (group, tensor).
  Build build;
  build.grids.resize(n);
  std::unordered_map<uint64_t, size_t> own_grids;
  auto grid_of = [&](TensorId t, UnitId u) {
    auto index = static_cast<size_t>(t);
    if (!options_.write_back || options_.as_stream || maker_[t] != kNone) return index;
    uint64_t key = static_cast<uint64_t>(group_of[u]) << 32 | static_cast<uint32_t>(t);
    auto [at, fresh] = own_grids.emplace(key, build.grids.size());
    if (fresh) build.grids.emplace_back();
    return at->second;
  };
  auto cut_by = [&](UnitId u, bool reads) {
    const Placement& placement = program.placements[u];
    const UnitParts& own = parts_[u];
    const std::vector<TensorId>& tensors = reads ? works_[u].reads : works_[u].writes;
    for (size_t i = 0; i < tensors.size(); ++i) {
      Build::Grid& grid = build.grids[grid_of(tensors[i], u)];
      auto add = [&](int axis, int64_t parts) {
        const SliceAxis& a = own.axes[axis];
        build.add(grid, (reads ? a.reads : a.writes)[i], a.size, parts, !reads);
      };
      auto cores = static_cast<int64_t>(placement.cores.size());
      if (placement.split != kNone && placement.split == placement.tiled) {
        add(placement.split, cores * placement.tiles);
        continue;
      }
      if (placement.split != kNone) add(placement.split, cores);
      if (placement.tiled != kNone) add(placement.tiled, placement.tiles);
    }
  };
  for (bool reads : {false, true})
    for (UnitId u : units) cut_by(u, reads);

  // Made by a unit that runs here.
  auto made_here = [&](TensorId t) { return maker_[t] != kNone && group_of[maker_[t]] != kNone; };
  std::vector<char> counted(n, 0);  // it has pieces already, of another group
  auto pieces_of = [&](TensorId t, UnitId u) -> Build::Grid& {
    Build::Grid& grid = build.grids[grid_of(t, u)];
    if (grid.first >= 0) return grid;
    grid.first = static_cast<int32_t>(program.pieces.size());
    const Tensor& tensor = graph_.tensors[t];
    Piece piece;
    piece.tensor = t;
    piece.category = category_of(graph_, tensor);
    piece.region = region(t);
    piece.stored = !made_here(t);
    piece.output = is_output_[t];
    piece.crossing = maker_[t] != kNone && std::any_of(readers_[t].begin(), readers_[t].end(),
                                                       [&](UnitId u) { return group_of[u] != group_of[maker_[t]]; });
    bool updates =
        !piece.stored && tensor.of != kNone && piece.output && graph_.tensors[tensor.of].kind != TensorKind::computed;
    piece.has_place = updates || counted[t];
    counted[t] = 1;
    int64_t rest = elements(tensor.shape) * element_bits_[t];
    for (const Build::Cut& cut : grid.cuts) rest /= std::max<int64_t>(cut.at.back(), 1);
    std::vector<size_t> at(grid.cuts.size(), 0);
    for (size_t i = 0, count = grid.count(); i < count; ++i) {
      piece.bits = rest;
      for (size_t d = 0; d < at.size(); ++d) piece.bits *= grid.cuts[d].at[at[d] + 1] - grid.cuts[d].at[at[d]];
      program.pieces.push_back(piece);
      for (size_t d = at.size(); d-- > 0;) {
        if (++at[d] + 1 < grid.cuts[d].at.size()) break;
        at[d] = 0;
      }
    }
    return grid;
  };

  // What slice `p` at time `slot` takes of a tensor: calls visit(piece, bits) for each piece of it.
  struct Extent {
    size_t begin = 0, end = 0;
    Range range;
  };
  std::vector<Extent> extents;
  std::vector<size_t> at;
  auto visit = [&](UnitId u, const std::vector<AxisUse> SliceAxis::*uses, size_t i, TensorId t, int64_t p, int64_t slot,
                   auto&& call) {
    Build::Grid& grid = pieces_of(t, u);
    const Placement& placement = program.placements[u];
    const UnitParts& own = parts_[u];
    extents.assign(grid.cuts.size(), {});
    double uncut = 1;  // its share along axes that the tensor is not cut along
    auto share_uncut = [&](int axis, int64_t parts) {
      if (axis == kNone || options_.as_stream) return;
      const SliceAxis& a = own.axes[axis];
      const AxisUse& use = (a.*uses)[i];
      if (use.axis != kNone && !grid.cut(use.axis)) uncut *= largest_share(use, a.size, parts);
    };
    if (placement.split != kNone && placement.split == placement.tiled) {
      share_uncut(placement.split, static_cast<int64_t>(placement.cores.size()) * placement.tiles);
    } else {
      share_uncut(placement.split, static_cast<int64_t>(placement.cores.size()));
      share_uncut(placement.tiled, placement.tiles);
    }
    for (size_t d = 0; d < grid.cuts.size(); ++d) {
      const Build::Cut& cut = grid.cuts[d];
      Range range{0, cut.at.back()};
      auto narrow = [&](int axis, int64_t parts, int64_t index) {
        if (axis == kNone) return;
        const SliceAxis& a = own.axes[axis];
        const AxisUse& use = (a.*uses)[i];
        if (use.axis != cut.axis) return;
        Range r = use.range(slice(a.size, parts, index));
        range = {std::max(range.begin, r.begin), std::min(range.end, r.end)};
      };
      auto cores = static_cast<int64_t>(placement.cores.size());
      if (placement.split != kNone && placement.split == placement.tiled) {
        narrow(placement.split, cores * placement.tiles, slot * cores + p);
      } else {
        narrow(placement.split, cores, p);
        narrow(placement.tiled, placement.tiles, slot);
      }
      auto begin = std::upper_bound(cut.at.begin(), cut.at.end() - 1, range.begin) - cut.at.begin() - 1;
      auto end = std::lower_bound(cut.at.begin(), cut.at.end(), range.end) - cut.at.begin();
      extents[d] = {static_cast<size_t>(begin), static_cast<size_t>(std::max(begin, end)), range};
      if (range.end <= range.begin) return;
    }
    at.resize(extents.size());
    for (size_t d = 0; d < at.size(); ++d) at[d] = extents[d].begin;
    while (true) {
      size_t index = 0;
      double part = uncut;
      for (size_t d = 0; d < at.size(); ++d) {
        const std::vector<int64_t>& cuts = grid.cuts[d].at;
        index = index * (cuts.size() - 1) + at[d];
        int64_t low = std::max(cuts[at[d]], extents[d].range.begin);
        int64_t high = std::min(cuts[at[d] + 1], extents[d].range.end);
        if (high - low < cuts[at[d] + 1] - cuts[at[d]])
          part *= static_cast<double>(high - low) / static_cast<double>(cuts[at[d] + 1] - cuts[at[d]]);
      }
      call(grid.first + static_cast<int32_t>(index), part);
      size_t d = at.size();
      while (d > 0) {
        --d;
        if (++at[d] < extents[d].end) break;
        at[d] = extents[d].begin;
        if (d == 0) return;
      }
      if (at.empty()) return;
    }
  };

  program.state_bits = state_bits_;

  std::vector<int32_t> need_at;  // by piece, of the step being made: its whole need
  // What passes between the units of a fused group has to stay on the chip.
  auto too_large = [&](UnitId u) {
    const UnitParts& own = parts_[u];
    const Placement& placement = program.placements[u];
    auto core = static_cast<size_t>(placement.cores.front());
    const StoreInfo& store = stores_.all()[stores_.of(core, 0)];
    double bits = 0;
    auto add = [&](const std::vector<int64_t>& list, const std::vector<AxisUse> SliceAxis::*uses) {
      auto cores = static_cast<int64_t>(placement.cores.size());
      for (size_t i = 0; i < list.size(); ++i)
        bits += placement.share(own, cores, uses, i) * static_cast<double>(list[i]);
    };
    add(own.read_bits, &SliceAxis::reads);
    add(own.written_bits, &SliceAxis::writes);
    std::string called = unit_name(graph_, graph_.units[u]);
    throw Refusal(
        {"tile-too-large",
         "a tile of " + called + " in its fused group and what it reads take " +
             std::to_string(static_cast<int64_t>(bits / 8)) + " bytes, " + store.name + " has " +
             std::to_string(store.capacity / 8),
         called, "",
         "a memory of that many bytes, more tiles than " + std::to_string(placement.tiles) + ", or a smaller group"});
  };
  auto make_step = [&](UnitId u, int64_t slot) {
    const Placement& placement = program.placements[u];
    const UnitParts& own = parts_[u];
    const Work& work = works_[u];
    bool stream = streaming[group_of[u]];
    Step step;
    step.unit = u;
    step.slot = static_cast<int32_t>(slot);
    step.group = group_of[u];
    step.first_tile = static_cast<int32_t>(program.tiles.size());
    step.first_need = static_cast<int32_t>(program.needs.size());
    auto parts = static_cast<int64_t>(placement.cores.size());
    for (int64_t p = 0; p < parts; ++p) {
      Tile tile;
      tile.core = placement.cores[p];
      tile.cost = &tile_cost(u, tile.core, placement, parts, stream);
      tile.first_made = static_cast<int32_t>(program.made.size());
      for (size_t i = 0; i < work.writes.size(); ++i)
        // What is not cut is the first one's.
        if (!own.write_streams[i] && (p == 0 || own.axes[placement.split].writes[i].axis != kNone))
          visit(u, &SliceAxis::writes, i, work.writes[i], p, slot,
                [&](int32_t piece, double) { program.made.push_back(piece); });
      tile.made = static_cast<int32_t>(program.made.size()) - tile.first_made;
      program.tiles.push_back(tile);
    }
    step.tiles = static_cast<int32_t>(parts);
    if (placement.split != kNone) step.exchanged_bits = own.axes[placement.split].exchanged * kPartialBits;
    const TileCost& cost = *program.tiles[step.first_tile].cost;
    for (size_t i = 0; i < work.reads.size(); ++i) {
      if (own.read_bits[i] == 0) continue;
      TensorId t = work.reads[i];
      if (own.read_streams[i]) continue;  // it is off the chip, and stays there
      bool streamed = own.layer ? cost.streams[own.second[i] ? 1 : 0].streams : cost.all_stream;
      if (streamed && made_here(t) && group_of[maker_[t]] == group_of[u] && !options_.as_stream) too_large(u);
      double selected = std::min(
          1.0, static_cast<double>(own.read_bits[i]) /
                   static_cast<double>(std::max<int64_t>(elements(graph_.tensors[t].shape) * element_bits_[t], 1)));
      if (parts > 1 && (placement.split == kNone || own.axes[placement.split].reads[i].axis == kNone))
        step.shared[own.layer && own.second[i] ? 1 : 0] = true;
      bool sliced_here = (placement.split != kNone && own.axes[placement.split].reads[i].axis != kNone);
      for (int64_t p = 0; p < parts; ++p) {
        visit(u, &SliceAxis::reads, i, t, p, slot, [&](int32_t piece, double part) {
          if (need_at.size() < program.pieces.size()) need_at.resize(program.pieces.size(), -1);
          bool partial = part < 1;
          int32_t& known = need_at[piece];
          if (!partial && known >= step.first_need && program.needs[known].streamed == streamed) {
            program.needs[known].tiles.add(static_cast<int>(p));
            return;
          }
          Need need;
          need.piece = piece;
          need.tiles.add(static_cast<int>(p));
          need.bits = static_cast<int64_t>(static_cast<double>(program.pieces[piece].bits) * part *
                                               (sliced_here || selected < 1 ? selected : 1) +
                                           0.5);
          need.streamed = streamed;
          need.partial = partial || selected < 1;
          need.second = own.second[i];
          if (!partial) known = static_cast<int32_t>(program.needs.size());
          program.needs.push_back(need);
        });
      }
    }
    step.needs = static_cast<int32_t>(program.needs.size()) - step.first_need;
    program.steps.push_back(step);
  };

  // Time slices in turn, each unit's as soon as what it reads is made.
  std::vector<int64_t> done(graph_.units.size(), 0);
  auto run = [&](auto&& self, UnitId u, int64_t slot) -> void {
    const Placement& placement = program.placements[u];
    for (size_t i = 0; i < works_[u].reads.size(); ++i) {
      TensorId t = works_[u].reads[i];
      UnitId from = maker_[t];
      if (from == kNone || from == u || group_of[from] != group_of[u]) continue;
      const Placement& made = program.placements[from];
      int64_t wanted = made.tiles;
      if (made.tiled != kNone && placement.tiled != kNone) {
        const SliceAxis &theirs = parts_[from].axes[made.tiled], &mine = parts_[u].axes[placement.tiled];
        size_t w = static_cast<size_t>(std::find(works_[from].writes.begin(), works_[from].writes.end(), t) -
                                       works_[from].writes.begin());
        const AxisUse &written = theirs.writes[w], &read = mine.reads[i];
        if (read.axis != kNone && read.axis == written.axis) {
          Range needed = read.range(slice(mine.size, placement.tiles, slot));
          wanted = 0;
          while (wanted < made.tiles && written.range(slice(theirs.size, made.tiles, wanted)).begin < needed.end)
            ++wanted;
        }
      }
      while (done[from] < wanted) self(self, from, done[from]);
    }
    if (done[u] > slot) return;
    make_step(u, slot);
    done[u] = slot + 1;
  };
  for (size_t g : order) {
    const FusedGroup& group = partition.groups[g];
    int64_t slots = 1;
    for (UnitId u : group.units) slots = std::max(slots, program.placements[u].tiles);
    for (int64_t slot = 0; slot < slots; ++slot)
      for (UnitId u : group.units)
        if (!works_[u].view && slot < program.placements[u].tiles && done[u] <= slot) run(run, u, slot);
  }
  return program;
}

}  // namespace monet
