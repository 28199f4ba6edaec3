// ZigZag's and Stream's mapping files -> what they fix of each layer's mapping.
#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "engine/cost/mapping.h"
#include "engine/ir/fields.h"

namespace monet {

namespace {

constexpr int64_t kMaxLoop = 1'000'000'000;

Dataflow parse_spatial(Fields& entry, Findings& findings) {
  Dataflow dataflow;
  const Json* value = entry.object("spatial_mapping");
  if (!value) return dataflow;
  for (auto it = value->begin(); it != value->end(); ++it) {
    std::string path = join_path(entry.path(), "spatial_mapping." + it.key());
    // One unrolling may stand without its list.
    Json list = it.value().is_string() ? Json::array({it.value()}) : it.value();
    if (!list.is_array()) {
      findings.problem("bad-field", path, "must be an array as [\"K, 8\"], is " + describe(list));
      continue;
    }
    for (size_t i = 0; i < list.size(); ++i) {
      if (std::optional<std::pair<std::string, int64_t>> unrolling = unrolling_in(list[i])) {
        dataflow[it.key()].push_back(*unrolling);
      } else {
        findings.problem("bad-field", join_path(path, std::to_string(i)),
                         "must be a loop and its unrolling, as \"K, 8\", is " + describe(list[i]));
      }
    }
  }
  return dataflow;
}

std::map<std::string, std::string> parse_links(Fields& entry, Findings& findings) {
  std::map<std::string, std::string> links;
  const Json* value = entry.object("memory_operand_links");
  if (!value) return links;
  std::set<std::string> used;
  for (auto it = value->begin(); it != value->end(); ++it) {
    std::string path = join_path(entry.path(), "memory_operand_links." + it.key());
    std::string operand = it.value().is_string() ? it.value().get<std::string>() : "";
    if (operand != "I1" && operand != "I2" && operand != "O") {
      findings.problem("bad-field", path, "must be I1, I2 or O, is " + describe(it.value()));
    } else if (!used.insert(operand).second) {
      findings.problem("bad-field", path, operand + " is linked twice");
    } else {
      links[it.key()] = operand;
    }
  }
  return links;
}

std::vector<FixedLoop> parse_ordering(Fields& entry, Findings& findings) {
  std::vector<FixedLoop> ordering;
  const Json* list = entry.array("temporal_ordering");
  for (size_t i = 0; list && i < list->size(); ++i) {
    const Json& item = (*list)[i];
    FixedLoop loop;
    bool fine = item.is_array() && item.size() == 2 && item[0].is_string();
    if (fine) {
      loop.loop = item[0].get<std::string>();
      std::optional<int64_t> size = integer_in(item[1]);
      bool any = item[1].is_string() && item[1].get<std::string>() == "*";
      fine = any || (size && *size >= 1 && *size <= kMaxLoop);
      loop.size = any ? 0 : size.value_or(1);
    }
    if (fine) {
      ordering.push_back(loop);
    } else {
      findings.problem("bad-field", join_path(entry.path(), "temporal_ordering." + std::to_string(i)),
                       "must be a loop and its size or \"*\", as [\"OX\", 4], is " + item.dump().substr(0, 40));
    }
  }
  return ordering;
}

std::vector<int> parse_cores(Fields& entry, Findings& findings) {
  std::vector<int> cores;
  const Json* list = entry.array("core_allocation");
  for (size_t i = 0; list && i < list->size(); ++i) {
    std::optional<int64_t> core = integer_in((*list)[i]);
    if (core && *core >= 0 && *core < kMaxLoop) {
      cores.push_back(static_cast<int>(*core));
    } else {
      findings.problem("bad-field", join_path(entry.path(), "core_allocation." + std::to_string(i)),
                       "must be the id of a core, is " + describe((*list)[i]));
    }
  }
  return cores;
}

std::vector<LoopParts> parse_tiling(Fields& entry, const std::string& field, Findings& findings) {
  std::vector<LoopParts> tiling;
  const Json* list = entry.array(field);
  for (size_t i = 0; list && i < list->size(); ++i) {
    std::vector<std::string> words;
    if ((*list)[i].is_string()) words = split((*list)[i].get<std::string>());
    if (words.size() == 2 && words[1] == "*") continue;  // for whoever schedules to choose
    if (words.size() == 2 && words[1] == "all") {
      tiling.push_back({words[0], 0});
    } else if (std::optional<std::pair<std::string, int64_t>> parts = unrolling_in((*list)[i])) {
      tiling.push_back({parts->first, parts->second});
    } else {
      findings.problem("bad-field", join_path(entry.path(), field + "." + std::to_string(i)),
                       "must be a loop and its parts, as \"OY, 8\" or \"OY, all\", is " + describe((*list)[i]));
    }
  }
  return tiling;
}

}  // namespace

std::map<std::string, std::string> default_links(const Layer& layer) {
  std::map<std::string, std::string> links;
  links[layer.output().name] = "O";
  std::vector<std::string> free = {"I1", "I2"};
  auto link = [&](const std::string& name, const std::string& operand) {
    links[name] = operand;
    free.erase(std::find(free.begin(), free.end(), operand));
  };
  size_t inputs = layer.operands.size() - 1;
  for (size_t i = 0; i < inputs; ++i) {
    if (layer.operands[i].name == "I") link("I", "I1");
    if (layer.operands[i].name == "W") link("W", "I2");
  }
  for (size_t i = 0; i < inputs; ++i)
    if (!links.count(layer.operands[i].name)) link(layer.operands[i].name, free.front());
  return links;
}

LayerMapping MappingFile::of(const std::string& layer_name, const std::string& op) const {
  for (const std::string& name : {layer_name, op, std::string("default")})
    for (const LayerMapping& mapping : mappings)
      if (mapping.name == name) return mapping;
  return {};
}

MappingFile parse_mapping(const std::string& text) {
  Findings findings;
  MappingFile file;
  std::optional<Json> document = read_json(text, "the mapping file", "", findings);
  if (document && !document->is_array())
    findings.problem("not-a-mapping", "", "the mapping file must be an array of entries, is " + describe(*document),
                     "mapping files are ZigZag's or Stream's, as YAML or JSON");
  std::set<std::string> names;
  for (size_t i = 0; document && document->is_array() && i < document->size(); ++i) {
    const Json& value = (*document)[i];
    std::string path = std::to_string(i);
    if (!value.is_object()) {
      findings.problem("bad-field", path, "must be an entry (an object), is " + describe(value));
      continue;
    }
    Fields entry(value, path, findings);
    entry.require({"name"});
    LayerMapping mapping;
    mapping.name = entry.text("name").value_or("");
    if (!mapping.name.empty() && !names.insert(mapping.name).second)
      findings.problem("bad-field", join_path(path, "name"), "\"" + mapping.name + "\" names two entries");
    mapping.spatial = parse_spatial(entry, findings);
    mapping.links = parse_links(entry, findings);
    mapping.temporal_ordering = parse_ordering(entry, findings);
    mapping.core_allocation = parse_cores(entry, findings);
    mapping.intra_core_tiling = parse_tiling(entry, "intra_core_tiling", findings);
    mapping.inter_core_tiling = parse_tiling(entry, "inter_core_tiling", findings);
    entry.finish();
    file.mappings.push_back(std::move(mapping));
  }
  if (!findings.problems.empty()) throw Refusal(std::move(findings.problems));
  file.warnings = std::move(findings.warnings);
  return file;
}

}  // namespace monet
