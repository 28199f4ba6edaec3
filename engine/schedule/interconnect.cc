#include "engine/schedule/interconnect.h"

#include <algorithm>
#include <limits>

namespace monet {

namespace {

struct Edge {
  size_t to = 0;
  std::vector<int> links;
};

bool reads(const Port& port) { return port.type != Port::Type::write; }
bool writes(const Port& port) { return port.type != Port::Type::read; }

}  // namespace

Interconnect::Interconnect(const Accelerator& accelerator) : cores_(accelerator.cores.size()) {
  std::vector<std::vector<int>> paths(cores_ * cores_);
  std::vector<std::vector<Edge>> edges(cores_);
  auto index_of = [&](int id) {
    for (size_t i = 0; i < cores_; ++i)
      if (accelerator.cores[i].id == id) return i;
    return cores_;
  };
  auto add = [&](std::string name, int64_t bandwidth, double energy, bool offchip = false) {
    links_.push_back({std::move(name), std::max<int64_t>(bandwidth, 1), energy, offchip});
    return static_cast<int>(links_.size()) - 1;
  };
  size_t off = accelerator.offchip_core < 0 ? cores_ : static_cast<size_t>(accelerator.offchip_core);
  bool connected = false;  // the file says how the off-chip core is reached
  for (const Connection& connection : accelerator.connections)
    for (int id : connection.cores) connected = connected || index_of(id) == off;

  // One port serves both directions; with several, reads and writes have one each (Stream).
  int from_offchip = -1, to_offchip = -1;
  if (off < cores_ && !accelerator.cores[off].memories.empty()) {
    const std::vector<Port>& ports = accelerator.cores[off].memories.back().ports;
    int64_t read = 0, write = 0;
    for (const Port& port : ports) {
      if (reads(port)) read = std::max(read, port.bandwidth_max);
      if (writes(port)) write = std::max(write, port.bandwidth_max);
    }
    double energy = connected ? 0 : accelerator.unit_energy_cost;
    if (ports.size() > 1) {
      from_offchip = add("off-chip reads", read, energy, true);
      to_offchip = add("off-chip writes", write, energy, true);
    } else {
      from_offchip = to_offchip = add("off-chip", std::max(read, write), energy, true);
    }
  }
  auto connect = [&](size_t a, size_t b, int link) {
    if (a >= cores_ || b >= cores_ || a == b) return;
    std::vector<int> way{link};
    if (a == off && from_offchip >= 0) way.insert(way.begin(), from_offchip);
    if (b == off && to_offchip >= 0) way.push_back(to_offchip);
    edges[a].push_back({b, way});
  };
  int buses = 0;
  for (const Connection& connection : accelerator.connections) {
    bool bus = connection.type == Connection::Type::bus || connection.cores.size() != 2;
    int shared = bus ? add("bus " + std::to_string(buses++), connection.bandwidth, connection.unit_energy_cost) : -1;
    for (int a : connection.cores)
      for (int b : connection.cores) {
        if (a == b) continue;
        int link = bus ? shared
                       : add("core " + std::to_string(a) + " -> core " + std::to_string(b), connection.bandwidth,
                             connection.unit_energy_cost);
        connect(index_of(a), index_of(b), link);
      }
  }
  if (off < cores_ && !connected)
    for (size_t core = 0; core < cores_; ++core) {
      if (core == off) continue;
      if (from_offchip >= 0) edges[off].push_back({core, {from_offchip}});
      if (to_offchip >= 0) edges[core].push_back({off, {to_offchip}});
    }

  auto width = [&](const std::vector<int>& way) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int link : way) least = std::min(least, links_[link].bandwidth);
    return least;
  };
  for (size_t from = 0; from < cores_; ++from) {
    std::vector<char> reached(cores_, 0);
    std::vector<size_t> frontier{from};
    reached[from] = 1;
    while (!frontier.empty()) {
      std::vector<size_t> next;
      for (size_t at : frontier) {
        if (at == off && at != from) continue;  // a way ends in memory, it does not lead through it
        for (const Edge& edge : edges[at]) {
          if (reached[edge.to] == 1) continue;
          std::vector<int> way = paths[from * cores_ + at];
          way.insert(way.end(), edge.links.begin(), edge.links.end());
          std::vector<int>& best = paths[from * cores_ + edge.to];
          if (reached[edge.to] == 0) next.push_back(edge.to);
          if (reached[edge.to] == 0 || width(way) > width(best)) best = std::move(way);
          reached[edge.to] = 2;  // in this round: may still be widened
        }
      }
      for (size_t core : next) reached[core] = 1;
      frontier = std::move(next);
    }
  }
  ways_ = {{}};
  for (std::vector<int>& path : paths) {
    size_t way = static_cast<size_t>(std::find(ways_.begin(), ways_.end(), path) - ways_.begin());
    if (way == ways_.size()) ways_.push_back(std::move(path));
    way_of_.push_back(way);
  }
}

int64_t Interconnect::bandwidth(size_t from, size_t to) const {
  int64_t least = 0;
  for (int link : path(from, to)) least = least == 0 ? links_[link].bandwidth : std::min(least, links_[link].bandwidth);
  return least;
}

int64_t LinkTimeline::earliest(int64_t from, int64_t duration, int64_t need) const {
  int64_t room = bandwidth_ - need;
  // The step that holds at `from`: mostly one of the last.
  size_t i = steps_.size() - 1;
  if (steps_[i].time > from)
    i = static_cast<size_t>(
            std::upper_bound(steps_.begin(), steps_.end(), from, [](int64_t t, const Step& s) { return t < s.time; }) -
            steps_.begin()) -
        1;
  int64_t start = from;
  for (; i < steps_.size(); ++i) {
    if (steps_[i].time >= start + duration && i > 0 && steps_[i].time > start) break;
    if (steps_[i].used > room) start = i + 1 < steps_.size() ? std::max(from, steps_[i + 1].time) : start;
  }
  return start;
}

void LinkTimeline::take(int64_t start, int64_t duration, int64_t need) {
  if (duration <= 0 || need <= 0) return;
  auto place = [&](int64_t time) {  // the step that begins there, made if there is none
    size_t i = steps_.size();
    while (i > 0 && steps_[i - 1].time > time) --i;
    if (i > 0 && steps_[i - 1].time == time) return i - 1;
    steps_.insert(steps_.begin() + static_cast<long>(i), {time, steps_[i - 1].used});
    return i;
  };
  size_t first = place(start), end = place(start + duration);
  for (size_t i = first; i < end; ++i) steps_[i].used += need;
  // Neighbours alike are one.
  if (steps_[end].used == steps_[end - 1].used) steps_.erase(steps_.begin() + static_cast<long>(end));
  if (first > 0 && steps_[first].used == steps_[first - 1].used)
    steps_.erase(steps_.begin() + static_cast<long>(first));
}

int64_t earliest(const std::vector<LinkTimeline>& timelines, const std::vector<int>& path, int64_t from,
                 int64_t duration, int64_t need) {
  int64_t start = from;
  for (bool moved = true; moved;) {
    moved = false;
    for (int link : path) {
      int64_t t = timelines[link].earliest(start, duration, std::min(need, timelines[link].bandwidth()));
      moved = moved || t > start;
      start = t;
    }
  }
  return start;
}

}  // namespace monet
