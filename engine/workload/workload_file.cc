// ZigZag's and Stream's workload files -> layers. Every problem of every layer is collected.
#include <algorithm>
#include <cctype>
#include <limits>
#include <set>
#include <utility>

#include "engine/ir/fields.h"
#include "engine/workload/layer.h"

namespace monet {

namespace {

constexpr int64_t kMaxLoop = 1'000'000'000;  // keeps the product of two extents in range
constexpr int64_t kMaxId = 1'000'000'000;
constexpr int64_t kMaxPrecision = 1024;  // bits of an element
constexpr int64_t kMaxStep = 1'000'000;  // strides, dilations
constexpr size_t kMaxLoops = 16;

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string without_blanks(const std::string& text) {
  std::string result;
  for (char c : text)
    if (!std::isspace(static_cast<unsigned char>(c))) result += c;
  return result;
}

bool is_name(const std::string& text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text[0]))) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

struct Indexed {
  std::string name;
  std::vector<std::string> indexes;  // upper case
};

// "W[k][c]", from `at` on; nothing when it is not of this form.
std::optional<Indexed> indexed(const std::string& text, size_t& at) {
  size_t begin = at;
  while (at < text.size() && (std::isalnum(static_cast<unsigned char>(text[at])) || text[at] == '_')) ++at;
  Indexed result;
  result.name = text.substr(begin, at - begin);
  if (!is_name(result.name)) return {};
  while (at < text.size() && text[at] == '[') {
    size_t close = text.find(']', at);
    if (close == std::string::npos) return {};
    std::string index = text.substr(at + 1, close - at - 1);
    at = close + 1;
    if (index.empty()) continue;  // "W[]": a scalar
    if (!is_name(index)) return {};
    result.indexes.push_back(upper(index));
  }
  return result;
}

// "O[b][k]+=W[k][c]*I[b][c]" -> O, then the one or two inputs; empty when it is not of this form.
std::vector<Indexed> parse_equation(const std::string& equation) {
  std::string text = without_blanks(equation);
  size_t at = 0;
  std::optional<Indexed> output = indexed(text, at);
  if (!output) return {};
  if (text.compare(at, 2, "+=") == 0) {
    at += 2;
  } else if (text.compare(at, 1, "=") == 0) {
    at += 1;
  } else {
    return {};
  }
  std::vector<Indexed> operands = {*output};
  for (;;) {
    std::optional<Indexed> input = indexed(text, at);
    if (!input || operands.size() == 3) return {};
    operands.push_back(*input);
    if (at == text.size()) return operands;
    if (text[at] != '*' && text[at] != '+' && text[at] != '-' && text[at] != '/') return {};
    ++at;
  }
}

// "2*ox" -> 2, "OX"; "ox" -> 1, "OX".
std::optional<std::pair<int64_t, std::string>> parse_term(const std::string& term) {
  size_t star = term.find('*');
  std::string factor = star == std::string::npos ? "1" : term.substr(0, star);
  std::string name = star == std::string::npos ? term : term.substr(star + 1);
  if (!is_name(name)) std::swap(factor, name);  // "ox*2"
  std::optional<int64_t> value = integer_in(Json(factor));
  if (!value || *value < 1 || *value > kMaxStep || !is_name(name)) return {};
  return std::make_pair(*value, upper(name));
}

struct Relation {
  std::string axis;
  std::pair<int64_t, std::string> point, tap;
};

// "ix=2*ox+1*fx"
std::optional<Relation> parse_relation(const std::string& relation) {
  std::string text = without_blanks(relation);
  size_t equals = text.find('='), plus = text.find('+', equals == std::string::npos ? 0 : equals);
  if (equals == std::string::npos || plus == std::string::npos || !is_name(text.substr(0, equals))) return {};
  auto point = parse_term(text.substr(equals + 1, plus - equals - 1)), tap = parse_term(text.substr(plus + 1));
  if (!point || !tap || point->second == tap->second) return {};
  return Relation{upper(text.substr(0, equals)), *point, *tap};
}

class LayerParser {
 public:
  LayerParser(const Json& value, const std::string& path, Findings& findings)
      : fields_(value, path, findings), path_(path), findings_(findings) {}

  Layer parse() {
    fields_.require({"id", "operator_type", "equation", "loop_dims", "loop_sizes"});
    layer_.id = fields_.integer("id", 0, kMaxId).value_or(0);
    layer_.name = fields_.text("name").value_or("Layer" + std::to_string(layer_.id));
    layer_.op = fields_.text("operator_type").value_or("");
    parse_loops();
    parse_windows();
    parse_operands();
    parse_precision();
    parse_sources();
    fields_.finish();
    return std::move(layer_);
  }

 private:
  std::string at(const std::string& field) const { return join_path(path_, field); }
  int loop(const std::string& dim) const {
    for (size_t i = 0; i < layer_.loops.size(); ++i)
      if (layer_.loops[i].dim == dim) return static_cast<int>(i);
    return -1;
  }
  // Whole numbers of an array field, each checked.
  std::vector<int64_t> integers(const char* field, int64_t low, int64_t high) {
    std::vector<int64_t> result;
    const Json* list = fields_.array(field);
    for (size_t i = 0; list && i < list->size(); ++i) {
      std::optional<int64_t> number = integer_in((*list)[i]);
      if (!number || *number < low || *number > high)
        findings_.problem("bad-field", at(std::string(field) + "." + std::to_string(i)),
                          "must be a whole number from " + std::to_string(low) + " to " + std::to_string(high) +
                              ", is " + describe((*list)[i]));
      result.push_back(number.value_or(low));
    }
    return result;
  }

  void parse_loops() {
    std::vector<std::string> dims = fields_.texts("loop_dims");
    std::vector<int64_t> sizes = integers("loop_sizes", 1, kMaxLoop);
    if (dims.size() > kMaxLoops)
      findings_.problem("bad-field", at("loop_dims"), "must have at most " + std::to_string(kMaxLoops) + " loops");
    if (fields_.has("loop_dims") && fields_.has("loop_sizes") && dims.size() != sizes.size())
      findings_.problem("bad-field", at("loop_sizes"),
                        "must have as many entries as loop_dims (" + std::to_string(dims.size()) + "), has " +
                            std::to_string(sizes.size()));
    for (size_t i = 0; i < dims.size(); ++i) {
      std::string dim = upper(dims[i]);
      std::string where = at("loop_dims." + std::to_string(i));
      if (!is_name(dim)) findings_.problem("bad-field", where, "must be a loop's name, is " + describe(Json(dims[i])));
      if (loop(dim) >= 0) findings_.problem("bad-field", where, "names loop " + dim + " twice");
      layer_.loops.push_back({dim, i < sizes.size() ? sizes[i] : 1});
    }
  }

  void parse_windows() {
    std::vector<std::string> relations = fields_.texts("dimension_relations");
    for (size_t i = 0; i < relations.size(); ++i) {
      std::string where = at("dimension_relations." + std::to_string(i));
      std::optional<Relation> relation = parse_relation(relations[i]);
      if (!relation) {
        findings_.problem(
            "bad-field", where,
            "must be an axis as the sum of two loops, as \"ix=2*ox+1*fx\", is " + describe(Json(relations[i])));
        continue;
      }
      WindowedAxis axis;
      axis.stride = relation->point.first;
      axis.dilation = relation->tap.first;
      axis.point = loop(relation->point.second);
      axis.tap = loop(relation->tap.second);
      axis.size = std::numeric_limits<int64_t>::max();
      for (const std::string& dim : {relation->point.second, relation->tap.second})
        if (loop(dim) < 0) findings_.problem("bad-field", where, "loop " + dim + " is not among loop_dims");
      if (axis.point < 0 || axis.tap < 0) continue;
      axis.size = window_span(axis, layer_.loops[axis.point].size, layer_.loops[axis.tap].size);
      if (!axes_.emplace(relation->axis, axis).second)
        findings_.problem("bad-field", where, "defines axis " + relation->axis + " twice");
    }
    // An axis is as long as the file says, without its padding.
    std::vector<std::string> names = fields_.texts("pr_loop_dims");
    std::vector<int64_t> sizes = integers("pr_loop_sizes", 1, kMaxLoop);
    const Json* padding = fields_.array("padding");
    if (!sizes.empty() && sizes.size() != names.size())
      findings_.problem("bad-field", at("pr_loop_sizes"), "must have as many entries as pr_loop_dims");
    if (padding && padding->size() != names.size())
      findings_.problem("bad-field", at("padding"), "must have as many entries as pr_loop_dims");
    for (size_t i = 0; i < names.size(); ++i) {
      auto axis = axes_.find(upper(names[i]));
      if (axis == axes_.end()) {
        findings_.problem("bad-field", at("pr_loop_dims." + std::to_string(i)),
                          "no dimension relation defines " + describe(Json(names[i])));
        continue;
      }
      int64_t unpadded = axis->second.size;
      if (padding && i < padding->size()) {
        const Json& pair = (*padding)[i];
        bool fine = pair.is_array() && pair.size() == 2;
        for (size_t side = 0; fine && side < 2; ++side) {
          std::optional<int64_t> width = integer_in(pair[side]);
          fine = width && *width >= 0 && *width < axis->second.size;
          if (fine) unpadded -= *width;
        }
        if (!fine || unpadded < 1)
          findings_.problem("bad-field", at("padding." + std::to_string(i)),
                            "must be two paddings, as [1, 1], that leave some of the axis, is " + pair.dump());
      }
      if (i < sizes.size()) unpadded = sizes[i];
      axis->second.size = std::max<int64_t>(std::min(axis->second.size, unpadded), 1);
    }
  }

  void parse_operands() {
    std::optional<std::string> equation = fields_.text("equation");
    if (!equation) return;
    std::vector<Indexed> operands = parse_equation(*equation);
    if (operands.empty()) {
      findings_.problem(
          "bad-field", at("equation"),
          "must be an output and one or two inputs, as \"O[b][k]+=W[k][c]*I[b][c]\", is " + describe(Json(*equation)));
      return;
    }
    std::rotate(operands.begin(), operands.begin() + 1, operands.end());  // the output last
    std::set<std::string> names;
    for (const Indexed& indexed : operands) {
      if (!names.insert(indexed.name).second)
        findings_.problem("bad-field", at("equation"), "operand " + indexed.name + " occurs twice");
      LayerOperand operand;
      operand.name = indexed.name;
      std::set<std::string> seen;
      for (const std::string& index : indexed.indexes) {
        auto axis = axes_.find(index);
        if (!seen.insert(index).second) {
          findings_.problem("bad-field", at("equation"), "operand " + indexed.name + " has index " + index + " twice");
        } else if (axis != axes_.end()) {
          operand.windows.push_back(axis->second);
        } else if (loop(index) >= 0) {
          operand.loops.push_back(loop(index));
        } else {
          findings_.problem("bad-field", at("equation"),
                            "index " + index + " is neither in loop_dims nor defined by a dimension relation");
        }
      }
      layer_.operands.push_back(std::move(operand));
    }
  }

  void parse_precision() {
    const Json* value = fields_.object("operand_precision");
    if (!value || layer_.operands.empty()) return;
    Fields fields(*value, at("operand_precision"), findings_);
    LayerOperand& output = layer_.operands.back();
    for (LayerOperand& operand : layer_.operands) {
      if (&operand == &output) continue;
      if (std::optional<int64_t> bits = fields.integer(operand.name, 0, kMaxPrecision))
        operand.bits = static_cast<int>(*bits);
    }
    // The output's own key is what it has while sums are incomplete; without a final precision it keeps that.
    if (std::optional<int64_t> bits = fields.integer(output.name, 0, kMaxPrecision))
      output.bits = layer_.partial_bits = static_cast<int>(*bits);
    if (std::optional<int64_t> bits = fields.integer(output.name + "_final", 0, kMaxPrecision))
      output.bits = static_cast<int>(*bits);
    fields.finish();
  }

  void parse_sources() {
    const Json* value = fields_.object("operand_source");
    if (!value || layer_.operands.empty()) return;
    Fields fields(*value, at("operand_source"), findings_);
    for (size_t i = 0; i + 1 < layer_.operands.size(); ++i)
      if (std::optional<int64_t> id = fields.integer(layer_.operands[i].name, 0, kMaxId))
        layer_.sources[layer_.operands[i].name] = *id;
    fields.finish();
  }

  Fields fields_;
  std::string path_;
  Findings& findings_;
  Layer layer_;
  std::map<std::string, WindowedAxis> axes_;
};

}  // namespace

Workload parse_workload(const std::string& text) {
  Findings findings;
  Workload workload;
  std::optional<Json> document = read_json(text, "the workload", "", findings);
  if (document && (!document->is_array() || document->empty()))
    findings.problem("not-a-workload", "", "the workload must be an array of layers, is " + describe(*document),
                     "workload files are ZigZag's or Stream's, as YAML or JSON");
  std::set<int64_t> ids;
  for (size_t i = 0; document && document->is_array() && i < document->size(); ++i) {
    const Json& value = (*document)[i];
    std::string path = std::to_string(i);
    if (!value.is_object()) {
      findings.problem("bad-field", path, "must be a layer (an object), is " + describe(value));
      continue;
    }
    Layer layer = LayerParser(value, path, findings).parse();
    if (!ids.insert(layer.id).second)
      findings.problem("bad-field", join_path(path, "id"), std::to_string(layer.id) + " is the id of two layers");
    workload.layers.push_back(std::move(layer));
  }
  for (size_t i = 0; findings.problems.empty() && i < workload.layers.size(); ++i)
    for (const auto& [operand, id] : workload.layers[i].sources)
      if (!ids.count(id))
        findings.problem("bad-field", std::to_string(i) + ".operand_source." + operand,
                         "no layer has the id " + std::to_string(id));
  if (!findings.problems.empty()) throw Refusal(std::move(findings.problems));
  workload.warnings = std::move(findings.warnings);
  return workload;
}

}  // namespace monet
