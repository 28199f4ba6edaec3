// JSON -> Accelerator: one function per object of the format, each adding to the same Findings.
#include <algorithm>
#include <set>

#include "engine/hardware/accelerator.h"
#include "engine/ir/fields.h"

namespace monet {

namespace {

// Upper ends that keep sums and products of a description's numbers in range; far above anything built.
constexpr int64_t kMaxBits = 1'000'000'000'000'000'000;  // Stream's FuseMax DRAM has 10^16
constexpr int64_t kMaxBandwidth = 1'000'000'000'000;     // bit/cycle
constexpr int64_t kMaxArray = 1'000'000'000;             // PEs of one core
constexpr double kMaxEnergy = 1e18;                      // pJ
constexpr int64_t kMaxCoreId = 1'000'000;
constexpr int64_t kMaxPorts = 64;                        // v1: ports of one type
constexpr int64_t kLeastOffchipBits = int64_t{1} << 30;  // 128 MiB

const std::vector<std::string> kOperands = {"I1", "I2", "O"};

bool contains(const std::vector<std::string>& list, const std::string& item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  return text;
}

std::string file_name(const std::string& path) { return path.substr(path.find_last_of("/\\") + 1); }

// A list of ids: [0, 1] or "0, 1". `path` names it in problems; nothing when it is wrong.
std::optional<std::vector<int>> id_list(const Json& value, const std::string& path, Findings& findings) {
  std::vector<int> ids;
  bool fine = value.is_array() || value.is_string();
  auto add = [&](const Json& item) {
    std::optional<int64_t> id = integer_in(item);
    fine = fine && id && *id >= 0 && *id <= kMaxCoreId;
    if (fine) ids.push_back(static_cast<int>(*id));
  };
  if (value.is_string())
    for (const std::string& part : split(value.get<std::string>())) add(Json(part));
  if (value.is_array())
    for (const Json& item : value) add(item);
  if (fine) return ids;
  findings.problem("bad-field", path, "must list core ids, as [0, 1] or \"0, 1\", is " + describe(value));
  return {};
}

// --- memories
// ---------------------------------------------------------------------------------------------------------

bool writes(const std::string& direction) { return direction == "fh" || direction == "fl"; }

void allocate(Port& port, const std::string& operand, const std::string& direction, const Memory& memory,
              const std::string& path, Findings& findings) {
  if (!contains(memory.operands, operand)) {
    findings.problem("bad-field", path, "operand \"" + operand + "\" is not among the memory's operands");
  } else if (direction != "fh" && direction != "tl" && direction != "fl" && direction != "th") {
    findings.problem("bad-field", path, "direction \"" + direction + "\" must be fh, tl, fl or th");
  } else if (port.type != Port::Type::read_write && writes(direction) != (port.type == Port::Type::write)) {
    findings.problem(
        "bad-field", path,
        direction + " is a " + (writes(direction) ? "write" : "read") + ", which port " + port.name + " cannot do");
  } else {
    port.allocation.emplace_back(operand, direction);
  }
}

void parse_v2_ports(Fields& fields, const Json& list, Memory& memory, Findings& findings) {
  std::set<std::string> names;
  for (size_t i = 0; i < list.size(); ++i) {
    std::string path = join_path(fields.path(), "ports." + std::to_string(i));
    if (!list[i].is_object()) {
      findings.problem("bad-field", path, "must be an object, is " + describe(list[i]));
      continue;
    }
    Fields entry(list[i], path, findings);
    entry.require({"name", "type", "bandwidth_max", "allocation"});
    Port port;
    port.name = entry.text("name").value_or("");
    if (!port.name.empty() && !names.insert(port.name).second)
      findings.problem("bad-field", join_path(path, "name"), "\"" + port.name + "\" names two ports of the memory");
    std::string type = entry.text("type").value_or("read_write");
    if (type == "read") {
      port.type = Port::Type::read;
    } else if (type == "write") {
      port.type = Port::Type::write;
    } else if (type != "read_write") {
      findings.problem("bad-field", join_path(path, "type"), "must be read, write or read_write, is \"" + type + "\"");
    }
    std::optional<int64_t> bandwidth = entry.integer("bandwidth_max", 1, kMaxBandwidth);
    port.bandwidth_max = bandwidth.value_or(1);
    port.bandwidth_min = entry.integer("bandwidth_min", 1, kMaxBandwidth).value_or(port.bandwidth_max);
    if (bandwidth && port.bandwidth_min > *bandwidth)
      findings.problem("bad-field", join_path(path, "bandwidth_min"), "must not be above bandwidth_max");
    std::vector<std::string> allocation = entry.texts("allocation");
    for (size_t a = 0; a < allocation.size(); ++a) {
      std::string where = join_path(path, "allocation." + std::to_string(a));
      std::vector<std::string> parts = split(allocation[a]);
      if (parts.size() == 2) {
        allocate(port, parts[0], parts[1], memory, where, findings);
      } else {
        findings.problem("bad-field", where,
                         "must be an operand and a direction, as \"I1, tl\", is \"" + allocation[a] + "\"");
      }
    }
    entry.finish();
    memory.ports.push_back(std::move(port));
  }
}

// v1: ports are counted (r_port, w_port, rw_port) and share the memory's r_bw and w_bw; `ports` holds one object per
// operand that says which port each direction uses.
void parse_v1_ports(Fields& fields, const Json& list, Memory& memory, Findings& findings) {
  fields.require({"r_bw", "w_bw"});
  std::optional<int64_t> read_bandwidth = fields.integer("r_bw", 1, kMaxBandwidth);
  std::optional<int64_t> write_bandwidth = fields.integer("w_bw", 1, kMaxBandwidth);
  int64_t read_max = read_bandwidth.value_or(1), write_max = write_bandwidth.value_or(1);
  // ZigZag's default granularity is the whole word.
  int64_t read_min = fields.integer("min_r_granularity", 1, kMaxBandwidth).value_or(read_max);
  int64_t write_min = fields.integer("min_w_granularity", 1, kMaxBandwidth).value_or(write_max);
  if (read_bandwidth && read_min > read_max)
    findings.problem("bad-field", join_path(fields.path(), "min_r_granularity"), "must not be above r_bw");
  if (write_bandwidth && write_min > write_max)
    findings.problem("bad-field", join_path(fields.path(), "min_w_granularity"), "must not be above w_bw");
  auto add = [&](const char* count, const char* prefix, Port::Type type, int64_t low, int64_t high) {
    int64_t n = fields.integer(count, 0, kMaxPorts).value_or(0);
    for (int64_t i = 1; i <= n; ++i) memory.ports.push_back(Port{prefix + std::to_string(i), type, low, high, {}});
  };
  add("r_port", "r_port_", Port::Type::read, read_min, read_max);
  add("w_port", "w_port_", Port::Type::write, write_min, write_max);
  add("rw_port", "rw_port_", Port::Type::read_write, std::max(read_min, write_min), std::max(read_max, write_max));
  if (list.size() != memory.operands.size()) {
    findings.problem("bad-field", join_path(fields.path(), "ports"),
                     "must have one entry per operand (" + std::to_string(memory.operands.size()) + "), has " +
                         std::to_string(list.size()));
    return;
  }
  for (size_t i = 0; i < list.size(); ++i) {
    std::string path = join_path(fields.path(), "ports." + std::to_string(i));
    if (!list[i].is_object()) {
      findings.problem("bad-field", path, "must be an object, is " + describe(list[i]));
      continue;
    }
    for (auto it = list[i].begin(); it != list[i].end(); ++it) {
      std::string where = join_path(path, it.key());
      auto named = std::find_if(memory.ports.begin(), memory.ports.end(),
                                [&](const Port& port) { return it.value().is_string() && it.value() == port.name; });
      if (named != memory.ports.end()) {
        allocate(*named, memory.operands[i], it.key(), memory, where, findings);
      } else {
        findings.problem("bad-field", where, "must name one of the memory's ports, is " + describe(it.value()),
                         "ports are called r_port_1, w_port_1, rw_port_1, ... up to the counts given");
      }
    }
  }
}

void parse_regions(Fields& memory_fields, Memory& memory, Findings& findings) {
  const Json* value = memory_fields.object("regions");
  if (!value) return;
  Fields regions(*value, join_path(memory_fields.path(), "regions"), findings);
  int64_t left = memory.size;
  for (int kind = 0; kind < kMemoryRegions; ++kind) {
    MemoryRegion region;
    region.holds = static_cast<MemoryRegion::Holds>(kind);
    const Json* given = regions.object(name(region.holds));
    if (!given) continue;
    Fields fields(*given, join_path(regions.path(), name(region.holds)), findings);
    fields.require({"size", "bandwidth"});
    region.size = fields.integer("size", 1, kMaxBits).value_or(1);
    region.bandwidth = fields.integer("bandwidth", 1, kMaxBits).value_or(1);
    fields.finish();
    left -= std::min(region.size, left + 1);
    memory.regions.push_back(region);
  }
  if (left < 0)
    findings.problem("bad-field", regions.path(),
                     "take more than the memory's " + std::to_string(memory.size) + " bits");
  regions.finish();
}

Memory parse_memory(const std::string& name, const Json& value, const std::string& path,
                    const std::vector<std::string>& dimensions, Findings& findings) {
  Memory memory;
  memory.name = name;
  if (!value.is_object()) {
    findings.problem("bad-field", path, "must be an object, is " + describe(value));
    return memory;
  }
  Fields fields(value, path, findings);
  fields.accept({"latency", "force_double_buffering", "auto_cost_extraction", "double_buffering_support"});
  fields.require({"size", "r_cost", "w_cost", "operands", "ports", "served_dimensions"});
  memory.size = fields.integer("size", 1, kMaxBits).value_or(1);
  memory.read_cost = fields.number("r_cost", 0, kMaxEnergy).value_or(0);
  memory.write_cost = fields.number("w_cost", 0, kMaxEnergy).value_or(0);
  memory.area = fields.number("area", 0, kMaxEnergy).value_or(0);
  memory.operands = fields.texts("operands");
  std::set<std::string> seen;
  for (const std::string& operand : memory.operands) {
    if (!contains(kOperands, operand))
      findings.problem("bad-field", join_path(path, "operands"), "must be of I1, I2 and O, has \"" + operand + "\"");
    if (!seen.insert(operand).second)
      findings.problem("bad-field", join_path(path, "operands"), "has \"" + operand + "\" twice");
  }
  if (const Json* given = fields.find("operands"); given && given->is_array() && given->empty())
    findings.problem("bad-field", join_path(path, "operands"), "must not be empty");
  memory.served_dimensions = fields.texts("served_dimensions");
  for (const std::string& dimension : memory.served_dimensions)
    if (!contains(dimensions, dimension))
      findings.problem("bad-field", join_path(path, "served_dimensions"),
                       "\"" + dimension + "\" is not a dimension of the operational array");
  if (const Json* list = fields.array("ports")) {
    bool old = false;
    for (const char* field : {"r_bw", "w_bw", "r_port", "w_port", "rw_port"}) old = fields.has(field) || old;
    if (old) {
      parse_v1_ports(fields, *list, memory, findings);
    } else {
      parse_v2_ports(fields, *list, memory, findings);
    }
    if (memory.ports.empty()) findings.problem("bad-field", join_path(path, "ports"), "the memory has no port");
    std::set<std::pair<std::string, std::string>> uses;
    for (const Port& port : memory.ports)
      for (const auto& [operand, direction] : port.allocation)
        if (!uses.emplace(operand, direction).second)
          findings.problem("bad-field", join_path(path, "ports"),
                           "\"" + operand + ", " + direction + "\" is allocated twice");
  }
  parse_regions(fields, memory, findings);
  fields.finish();
  return memory;
}

// --- cores
// ------------------------------------------------------------------------------------------------------------

void parse_array(Fields& core_fields, Core& core, Findings& findings) {
  // ZigZag called it "multipliers" first, with energies called after the multiplier.
  const char* name =
      core_fields.has("operational_array") || !core_fields.has("multipliers") ? "operational_array" : "multipliers";
  core_fields.require({name});
  const Json* value = core_fields.object(name);
  if (!value) return;
  Fields fields(*value, join_path(core_fields.path(), name), findings);
  fields.accept({"input_precision"});
  const char* energy = fields.has("multiplier_energy") ? "multiplier_energy" : "unit_energy";
  const char* area = fields.has("multiplier_area") ? "multiplier_area" : "unit_area";
  fields.require({"dimensions", "sizes", energy});
  core.unit_energy = fields.number(energy, 0, kMaxEnergy).value_or(0);
  core.unit_area = fields.number(area, 0, kMaxEnergy).value_or(0);
  core.dimensions = fields.texts("dimensions");
  std::set<std::string> seen;
  for (const std::string& dimension : core.dimensions)
    if (!seen.insert(dimension).second)
      findings.problem("bad-field", join_path(fields.path(), "dimensions"), "has \"" + dimension + "\" twice");
  if (const Json* sizes = fields.array("sizes")) {
    int64_t product = 1;
    for (size_t i = 0; i < sizes->size(); ++i) {
      std::optional<int64_t> size = integer_in((*sizes)[i]);
      if (!size || *size < 0 || *size > kMaxArray) {
        findings.problem(
            "bad-field", join_path(fields.path(), "sizes." + std::to_string(i)),
            "must be a whole number from 0 to " + std::to_string(kMaxArray) + ", is " + describe((*sizes)[i]));
        size = 1;
      }
      core.sizes.push_back(*size);
      product = product > kMaxArray ? product : product * *size;
    }
    if (product > kMaxArray)
      findings.problem("bad-field", join_path(fields.path(), "sizes"),
                       "more than " + std::to_string(kMaxArray) + " PEs in one core");
    if (const Json* given = fields.find("dimensions");
        given && given->is_array() && core.sizes.size() != core.dimensions.size())
      findings.problem("bad-field", join_path(fields.path(), "sizes"),
                       "must have as many entries as dimensions (" + std::to_string(core.dimensions.size()) +
                           "), has " + std::to_string(core.sizes.size()));
    // Keeps pes() and instances() defined while the other problems are collected.
    core.sizes.resize(core.dimensions.size(), 1);
  }
  fields.finish();
}

void parse_dataflows(Fields& core_fields, Core& core, Findings& findings) {
  const Json* value = core_fields.object("dataflows");
  if (!value) return;
  for (auto it = value->begin(); it != value->end(); ++it) {
    std::string path = join_path(core_fields.path(), "dataflows." + it.key());
    if (!contains(core.dimensions, it.key())) {
      findings.problem("bad-field", path, "\"" + it.key() + "\" is not a dimension of the operational array");
      continue;
    }
    if (!it.value().is_array()) {
      findings.problem("bad-field", path, "must be an array as [\"K, 8\"], is " + describe(it.value()));
      continue;
    }
    for (const Json& item : it.value()) {
      if (std::optional<std::pair<std::string, int64_t>> unrolling = unrolling_in(item)) {
        core.dataflows[it.key()].push_back(*unrolling);
      } else {
        findings.problem("bad-field", path, "must hold a loop and its unrolling, as \"K, 8\", has " + describe(item));
      }
    }
  }
}

void parse_vector(Fields& core_fields, Core& core, Findings& findings) {
  const Json* value = core_fields.object("vector");
  if (!value) return;
  Fields fields(*value, join_path(core_fields.path(), "vector"), findings);
  core.vector_lanes = fields.integer("lanes", 1, kMaxArray);
  core.vector_memory = fields.text("memory").value_or("");
  fields.finish();
}

std::string recognised_type(const Core& core, const std::string& file) {
  if (core.pes() == 0) return "memory";
  for (const std::string& name : {lower(file_name(file)), lower(core.name)}) {
    if (name.find("simd") != std::string::npos || name.find("vec") != std::string::npos) return "simd";
    if (name.find("pool") != std::string::npos) return "pooling";
  }
  auto large = std::count_if(core.sizes.begin(), core.sizes.end(), [](int64_t size) { return size > 1; });
  return large <= 1 ? "simd" : "compute";
}

// `file`: the path that names the core's file, or its core type; empty for a definition in place.
Core parse_core(const Json& value, const std::string& path, const std::string& file, Findings& findings) {
  Core core;
  if (!value.is_object()) {
    findings.problem("bad-field", path, "must be a core description (an object), is " + describe(value));
    return core;
  }
  Fields fields(value, path, findings);
  if (fields.has("cores")) {
    findings.problem("bad-field", path, "describes a system, where a core must stand", "name a core file instead");
    return core;
  }
  fields.accept({"description", "source"});
  fields.require({"memories"});
  core.name = fields.text("name").value_or("");
  parse_array(fields, core, findings);
  if (const Json* memories = fields.object("memories"))
    for (auto it = memories->begin(); it != memories->end(); ++it)
      core.memories.push_back(
          parse_memory(it.key(), it.value(), join_path(path, "memories." + it.key()), core.dimensions, findings));
  parse_dataflows(fields, core, findings);
  parse_vector(fields, core, findings);
  core.type = fields.text("type").value_or("");
  if (core.type.empty()) core.type = recognised_type(core, file);
  fields.finish();
  return core;
}

// --- systems
// ----------------------------------------------------------------------------------------------------------

class SystemParser {
 public:
  SystemParser(const Json& document, const FileResolver& resolve, Findings& findings)
      : fields_(document, "", findings), resolve_(resolve), findings_(findings) {}

  Accelerator parse() {
    Accelerator result;
    result.name = fields_.text("name").value_or("");
    result.description = fields_.text("description").value_or("");
    result.source = fields_.text("source").value_or("");
    core_types_ = fields_.object("core_types");
    parse_cores(result);
    result.unit_energy_cost = fields_.number("unit_energy_cost", 0, kMaxEnergy).value_or(0);
    parse_connections(result);
    parse_sharing(result);
    parse_coordinates(result);
    check_core_types();
    fields_.finish();
    return result;
  }

 private:
  void parse_cores(Accelerator& result) {
    const Json* cores = fields_.object("cores");
    if (cores && cores->empty()) findings_.problem("bad-field", "cores", "must not be empty");
    for (auto it = cores ? cores->begin() : Json::const_iterator(); cores && it != cores->end(); ++it) {
      std::optional<int64_t> id = integer_in(Json(it.key()));
      std::string path = "cores." + it.key();
      if (!id || *id < 0 || *id > kMaxCoreId) {
        findings_.problem("bad-field", path,
                          "a core's key must be its id, a whole number from 0 to " + std::to_string(kMaxCoreId));
        continue;
      }
      Core core = core_of(it.value(), path);
      core.id = static_cast<int>(*id);
      if (!ids_.insert(core.id).second) findings_.problem("bad-field", path, "is the id of two cores");
      result.cores.push_back(std::move(core));
    }
    std::stable_sort(result.cores.begin(), result.cores.end(),
                     [](const Core& a, const Core& b) { return a.id < b.id; });
    const Json* described = fields_.find("offchip_core");
    std::optional<int64_t> id = fields_.integer("offchip_core_id", 0, kMaxCoreId);
    if (described && fields_.has("offchip_core_id"))
      findings_.problem("bad-field", "offchip_core_id", "stands beside offchip_core; give one of them");
    if (described) {
      Core core = core_of(*described, "offchip_core");
      core.id = ids_.empty() ? 0 : *ids_.rbegin() + 1;  // Stream's numbering
      ids_.insert(core.id);
      result.cores.push_back(std::move(core));
      result.offchip_core = static_cast<int>(result.cores.size()) - 1;
    } else if (id) {
      auto at = std::find_if(result.cores.begin(), result.cores.end(), [&](const Core& c) { return c.id == *id; });
      if (at == result.cores.end()) {
        findings_.problem("bad-field", "offchip_core_id", "no core has the id " + std::to_string(*id));
      } else {
        std::rotate(at, at + 1, result.cores.end());
        result.offchip_core = static_cast<int>(result.cores.size()) - 1;
      }
    }
    if (result.offchip_core >= 0 && result.cores.back().memories.empty() && findings_.problems.empty())
      findings_.problem("bad-field", described ? "offchip_core" : "offchip_core_id", "the core has no memory");
  }

  // A definition in place, the name of a core type, or a path.
  Core core_of(const Json& value, const std::string& path) {
    if (!value.is_string()) return parse_core(value, path, "", findings_);
    std::string name = value.get<std::string>();
    // Parsed once however many cores use it, so that a problem is reported once.
    if (auto known = parsed_.find(name); known != parsed_.end()) return known->second;
    Core core;
    if (core_types_ && core_types_->contains(name)) {
      core = parse_core(core_types_->at(name), "core_types." + name, name, findings_);
    } else if (std::optional<std::string> text = file(name)) {
      std::string shown = file_name(name);
      if (std::optional<Json> document = read_json(*text, "\"" + shown + "\"", path, findings_))
        core = parse_core(*document, shown + ":", name, findings_);
    } else {
      std::vector<std::string> types;
      if (core_types_)
        for (auto it = core_types_->begin(); it != core_types_->end(); ++it) types.push_back(it.key());
      std::string meant = closest(name, types);
      findings_.problem(
          "file-not-found", path,
          (types.empty() ? "core file " : "no core type and no file is called ") + describe(value) +
              (types.empty() ? " cannot be found" : ""),
          meant.empty() ? "give the system's file and its core files together" : "did you mean \"" + meant + "\"?");
    }
    parsed_.emplace(name, core);
    return core;
  }

  std::optional<std::string> file(const std::string& path) const {
    if (!resolve_) return {};
    std::vector<std::string> candidates = {path, file_name(path)};
    for (size_t i = 0; i < 2; ++i) {
      size_t dot = candidates[i].rfind('.');
      std::string extension = dot == std::string::npos ? "" : candidates[i].substr(dot);
      if (extension == ".yaml" || extension == ".yml") candidates.push_back(candidates[i].substr(0, dot) + ".json");
    }
    for (const std::string& candidate : candidates)
      if (std::optional<std::string> text = resolve_(candidate)) return text;
    return {};
  }

  bool known_ids(const std::vector<int>& ids, const std::string& path) {
    std::set<int> seen;
    for (int id : ids) {
      if (!ids_.count(id)) {
        findings_.problem("bad-field", path, "no core has the id " + std::to_string(id));
        return false;
      }
      if (!seen.insert(id).second) {
        findings_.problem("bad-field", path, "has core " + std::to_string(id) + " twice");
        return false;
      }
    }
    if (ids.size() >= 2) return true;
    findings_.problem("bad-field", path, "must have at least two cores");
    return false;
  }

  void parse_connections(Accelerator& result) {
    const Json* list = fields_.array("core_connectivity");
    std::optional<int64_t> bandwidth = fields_.integer("bandwidth", 1, kMaxBandwidth);
    bool missing = false;  // said once, not per link
    for (size_t i = 0; list && i < list->size(); ++i) {
      const Json& item = (*list)[i];
      std::string path = "core_connectivity." + std::to_string(i);
      Connection connection;
      connection.unit_energy_cost = result.unit_energy_cost;
      if (item.is_object()) {
        Fields entry(item, path, findings_);
        entry.require({"type", "cores", "bandwidth"});
        std::string type = entry.text("type").value_or("link");
        if (type == "bus") {
          connection.type = Connection::Type::bus;
        } else if (type != "link") {
          findings_.problem("bad-field", join_path(path, "type"), "must be link or bus, is \"" + type + "\"");
        }
        connection.bandwidth = entry.integer("bandwidth", 1, kMaxBandwidth).value_or(1);
        if (std::optional<double> energy = entry.number("unit_energy_cost", 0, kMaxEnergy))
          connection.unit_energy_cost = *energy;
        if (const Json* cores = entry.find("cores")) {
          if (std::optional<std::vector<int>> ids = id_list(*cores, join_path(path, "cores"), findings_))
            if (known_ids(*ids, join_path(path, "cores"))) connection.cores = *ids;
        }
        if (connection.type == Connection::Type::link && connection.cores.size() > 2)
          findings_.problem("bad-field", join_path(path, "cores"), "a link joins two cores", "use type bus");
        entry.finish();
      } else if (std::optional<std::vector<int>> ids = id_list(item, path, findings_)) {
        if (known_ids(*ids, path)) connection.cores = *ids;
        if (ids->size() > 2) connection.type = Connection::Type::bus;
        connection.bandwidth = bandwidth.value_or(1);
        if (!fields_.has("bandwidth") && !missing)
          findings_.problem("missing-field", "bandwidth", "is missing; connections without their own need it");
        missing = missing || !fields_.has("bandwidth");
      }
      result.connections.push_back(std::move(connection));
    }
  }

  void parse_sharing(Accelerator& result) {
    const Json* list = fields_.array("core_memory_sharing");
    for (size_t i = 0; list && i < list->size(); ++i) {
      std::string path = "core_memory_sharing." + std::to_string(i);
      if (std::optional<std::vector<int>> ids = id_list((*list)[i], path, findings_))
        if (known_ids(*ids, path)) result.memory_sharing.push_back(*ids);
    }
  }

  void parse_coordinates(Accelerator& result) {
    const Json* map = fields_.object("core_coordinates");
    if (!map) return;
    for (auto it = map->begin(); it != map->end(); ++it) {
      std::string path = "core_coordinates." + it.key();
      std::optional<int64_t> id = integer_in(Json(it.key()));
      auto core =
          std::find_if(result.cores.begin(), result.cores.end(), [&](const Core& c) { return id && c.id == *id; });
      if (core == result.cores.end()) {
        findings_.problem("bad-field", path, "no core has this id");
        continue;
      }
      std::vector<double> at;
      if (it.value().is_array())
        for (const Json& item : it.value())
          if (std::optional<double> number = number_in(item)) at.push_back(*number);
      if (it.value().is_string())
        for (const std::string& part : split(it.value().get<std::string>()))
          if (std::optional<double> number = number_in(Json(part))) at.push_back(*number);
      if (at.size() == 2) {
        core->coordinates = {at[0], at[1]};
      } else {
        findings_.problem("bad-field", path, "must be two numbers, as [0, 1], is " + describe(it.value()));
      }
    }
  }

  // Definitions that no core uses are checked too: a typing error should not hide until they are used.
  void check_core_types() {
    if (!core_types_) return;
    for (auto it = core_types_->begin(); it != core_types_->end(); ++it) {
      if (parsed_.count(it.key())) continue;
      parse_core(it.value(), "core_types." + it.key(), it.key(), findings_);
      findings_.warning("unused-core-type", "core_types." + it.key(), "is used by no core");
    }
  }

  Fields fields_;
  const FileResolver& resolve_;
  Findings& findings_;
  const Json* core_types_ = nullptr;
  std::map<std::string, Core> parsed_;
  std::set<int> ids_;
};

bool is_offchip(const Memory& memory, const Core& core) {
  if (core.instances(memory) != 1 || memory.operands.size() != kOperands.size()) return false;
  std::string name = lower(memory.name);
  name.erase(std::remove_if(name.begin(), name.end(), [](char c) { return c == '_' || c == '-' || c == ' '; }),
             name.end());
  for (const char* word : {"dram", "ddr", "hbm", "offchip"})
    if (name.find(word) != std::string::npos) return true;
  return memory.size >= kLeastOffchipBits;
}

Accelerator one_core_system(const Json& document, Findings& findings) {
  Accelerator result;
  Core core = parse_core(document, "", "", findings);
  if (!findings.problems.empty()) return result;
  result.name = core.name;
  if (document.contains("description") && document["description"].is_string())
    result.description = document["description"].get<std::string>();
  if (document.contains("source") && document["source"].is_string())
    result.source = document["source"].get<std::string>();
  if (!core.memories.empty() && is_offchip(core.memories.back(), core)) {
    Core offchip;
    offchip.id = 1;
    offchip.name = core.memories.back().name;
    offchip.type = "memory";
    offchip.dimensions = core.dimensions;
    offchip.sizes.assign(core.sizes.size(), 0);
    offchip.memories = {core.memories.back()};
    core.memories.pop_back();
    result.cores = {std::move(core), std::move(offchip)};
    result.offchip_core = 1;
  } else {
    result.cores = {std::move(core)};
  }
  return result;
}

void mark_contraction_cores(Accelerator& accelerator, Findings& findings) {
  bool any = false, computes = false;
  for (size_t i = 0; i < accelerator.cores.size(); ++i) {
    Core& core = accelerator.cores[i];
    if (static_cast<int>(i) == accelerator.offchip_core) core.type = "memory";
    if (core.type == "memory" || core.pes() == 0) continue;
    computes = true;
    core.runs_contractions = core.type != "pooling" && core.type != "simd" && core.type != "vector";
    any = any || core.runs_contractions;
  }
  if (!computes) findings.problem("no-compute", "", "the hardware description has no core that computes");
  if (any) return;
  for (Core& core : accelerator.cores) core.runs_contractions = core.type != "memory" && core.pes() > 0;
}

// Operands of vector work stream from a memory of the core or from off-chip.
void check_vector_memories(const Accelerator& accelerator, Findings& findings) {
  std::set<std::string> seen;  // cores of one type share a definition, which is reported once
  for (const Core& core : accelerator.cores) {
    if (core.vector_memory.empty() || !seen.insert(core.name).second) continue;
    bool reads = false, writes = false;
    std::vector<const Core*> places = {&core};
    if (accelerator.offchip_core >= 0) places.push_back(&accelerator.cores[accelerator.offchip_core]);
    std::vector<std::string> names;
    for (const Core* place : places)
      for (const Memory& memory : place->memories) {
        names.push_back(memory.name);
        if (memory.name != core.vector_memory) continue;
        reads = reads || contains(memory.operands, "I1") || contains(memory.operands, "I2");
        writes = writes || contains(memory.operands, "O");
      }
    std::string path = "core " + core.name + ": vector.memory";
    if (!contains(names, core.vector_memory)) {
      std::string meant = closest(core.vector_memory, names);
      findings.problem("bad-field", path, "no memory is called \"" + core.vector_memory + "\"",
                       meant.empty() ? "" : "did you mean \"" + meant + "\"?");
    } else if (!reads || !writes) {
      findings.problem("bad-field", path,
                       "memory \"" + core.vector_memory + "\" must hold an input (I1 or I2) and the output (O)");
    }
  }
}

}  // namespace

Accelerator parse_accelerator(const std::string& text, const FileResolver& resolve) {
  Findings findings;
  Accelerator result;
  if (std::optional<Json> document = read_json(text, "the hardware description", "", findings)) {
    if (!document->is_object()) {
      findings.problem("not-hardware", "", "the hardware description must be an object, is " + describe(*document));
    } else if (document->contains("cores")) {
      result = SystemParser(*document, resolve, findings).parse();
    } else if (document->contains("memories") || document->contains("operational_array")) {
      result = one_core_system(*document, findings);
    } else {
      findings.problem("not-hardware", "", "the file describes neither a system (no cores) nor a core (no memories)",
                       "hardware files are Stream's or ZigZag's, as YAML or JSON");
    }
  }
  if (findings.problems.empty()) mark_contraction_cores(result, findings);
  check_vector_memories(result, findings);
  if (!findings.problems.empty()) throw Refusal(std::move(findings.problems));
  if (result.offchip_core < 0)
    findings.warning("no-offchip", "", "no off-chip memory is described, so traffic over the chip's edge has no bound");
  result.warnings = std::move(findings.warnings);
  return result;
}

}  // namespace monet
