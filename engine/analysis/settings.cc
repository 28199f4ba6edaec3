#include "engine/analysis/settings.h"

#include <cmath>
#include <functional>

#include "engine/cost/loop_order.h"
#include "engine/hardware/access_energy.h"

namespace monet {

namespace {

using Json = nlohmann::ordered_json;

template <typename Enum, size_t count>
std::string names_of(const Enum (&values)[count]) {
  std::string list;
  for (Enum v : values) list += (list.empty() ? "" : ", ") + std::string(name(v));
  return list;
}

constexpr Loss kLosses[] = {Loss::automatic, Loss::cross_entropy, Loss::mse, Loss::sum};
constexpr Unsupported kUnsupported[] = {Unsupported::refuse, Unsupported::stop, Unsupported::pass};
constexpr std::pair<const char*, bool CostOptions::*> kCorrections[] = {
    {"hold_floors", &CostOptions::hold_floors},
    {"add_half_shared", &CostOptions::add_half_shared},
    {"leave_room_above", &CostOptions::leave_room_above},
    {"count_all_traffic", &CostOptions::count_all_traffic},
    {"count_partial_words", &CostOptions::count_partial_words},
    {"count_uneven_tiles", &CostOptions::count_uneven_tiles},
};
constexpr FusionObjective kFusionObjectives[] = {FusionObjective::groups, FusionObjective::latency,
                                                 FusionObjective::energy, FusionObjective::edp,
                                                 FusionObjective::traffic};
constexpr int64_t kMostUnits = 1000;  // of a group
constexpr const char* kPrecisionNames = "model, fp32, fp16, bf16, mixed_fp16, mixed_bf16";
constexpr const char* kTypeNames = "model, fp32, fp16, bf16";

// Reads one object, collecting what is wrong with it.
class Reader {
 public:
  Reader(const Json& object, std::string path, std::vector<Diagnostic>& problems)
      : object_(object), path_(std::move(path)), problems_(problems) {}

  void problem(const std::string& field, const std::string& what, const std::string& hint) {
    std::string where = path_ + field;
    problems_.push_back({"bad-setting", "setting " + where + " " + what, where, "", hint});
  }

  const Json* find(const char* field) {
    known_.emplace_back(field);
    auto it = object_.find(field);
    return it == object_.end() || it->is_null() ? nullptr : &*it;
  }

  void boolean(const char* field, bool& value) {
    const Json* j = find(field);
    if (!j) return;
    if (j->is_boolean()) {
      value = j->get<bool>();
    } else {
      problem(field, "must be true or false, is " + j->dump(), "");
    }
  }

  void text(const char* field, std::string& value) {
    const Json* j = find(field);
    if (!j) return;
    if (j->is_string()) {
      value = j->get<std::string>();
    } else {
      problem(field, "must be a text, is " + j->dump(), "");
    }
  }

  void texts(const char* field, std::vector<std::string>& value) {
    const Json* j = find(field);
    if (!j) return;
    if (j->is_array() && std::all_of(j->begin(), j->end(), [](const Json& e) { return e.is_string(); })) {
      value = j->get<std::vector<std::string>>();
    } else {
      problem(field, "must be a list of texts, is " + j->dump(), "");
    }
  }

  // A whole number in [least, 2^53], the range that JSON numbers keep exactly everywhere.
  static std::optional<int64_t> whole(const Json& j, int64_t least) {
    constexpr double kMost = 9007199254740992.0;
    if (!j.is_number()) return {};
    double v = j.get<double>();
    if (!(v >= static_cast<double>(least)) || v > kMost || v != std::floor(v)) return {};
    return static_cast<int64_t>(v);
  }

  void integer(const char* field, int64_t least, std::optional<int64_t>& value) {
    const Json* j = find(field);
    if (!j) return;
    value = whole(*j, least);
    if (!value) problem(field, "must be a whole number >= " + std::to_string(least) + ", is " + j->dump(), "");
  }

  void number(const char* field, std::optional<double>& value) {
    const Json* j = find(field);
    if (!j) return;
    if (j->is_number() && std::isfinite(j->get<double>()) && j->get<double>() >= 0) {
      value = j->get<double>();
    } else {
      problem(field, "must be a number >= 0, is " + j->dump(), "");
    }
  }

  template <typename Enum, size_t count>
  void choice(const char* field, const Enum (&values)[count], Enum& value) {
    const Json* j = find(field);
    if (!j) return;
    if (j->is_string())
      for (Enum v : values)
        if (j->get<std::string>() == name(v)) {
          value = v;
          return;
        }
    problem(field, "is " + j->dump() + ", which is not known", "one of: " + names_of(values));
  }

  // A field with two names, false and true.
  void either(const char* field, const char* no, const char* yes, bool& value) {
    const Json* j = find(field);
    if (!j) return;
    if (*j == no || *j == yes) {
      value = *j == yes;
    } else {
      problem(field, "is " + j->dump() + ", which is not known", std::string("one of: ") + no + ", " + yes);
    }
  }

  void finish() {
    for (const auto& [key, unused] : object_.items())
      if (std::find(known_.begin(), known_.end(), key) == known_.end()) {
        std::string list;
        for (const std::string& k : known_) list += (list.empty() ? "" : ", ") + k;
        problem(key, "is not known", "known settings: " + list);
      }
  }

 private:
  const Json& object_;
  std::string path_;
  std::vector<Diagnostic>& problems_;
  std::vector<std::string> known_;
};

void read_fusion(const Json& given, Reader& reader, std::vector<Diagnostic>& problems, FusionSettings& fusion) {
  if (!given.is_object()) return reader.problem("fusion", "must be an object, is " + given.dump(), "");
  Reader inner(given, "fusion.", problems);
  auto count = [&](const char* field, int& value) {
    std::optional<int64_t> number;
    inner.integer(field, 0, number);
    if (number && *number > kMostUnits) {
      inner.problem(field, "must be at most " + std::to_string(kMostUnits) + ", is " + std::to_string(*number), "");
    } else if (number) {
      value = static_cast<int>(*number);
    }
  };
  inner.choice("objective", kFusionObjectives, fusion.objective);
  if (const Json* list = inner.find("max_group")) {
    fusion.max_group.clear();
    bool good = list->is_array() && list->size() <= 8;
    for (size_t i = 0; good && i < list->size(); ++i) {
      std::optional<int64_t> number = Reader::whole((*list)[i], 0);
      good = number && *number <= kMostUnits;
      if (good) fusion.max_group.push_back(static_cast<int>(*number));
    }
    if (!good)
      inner.problem(
          "max_group",
          "must be a list of up to 8 whole numbers from 0 to " + std::to_string(kMostUnits) + ", is " + list->dump(),
          "0 stands for any number");
  }
  count("contractions", fusion.contractions);
  count("convolutions", fusion.convolutions);
  count("products", fusion.products);
  inner.boolean("one_output", fusion.one_output);
  inner.boolean("updates_apart", fusion.updates_apart);
  inner.boolean("activations_apart", fusion.activations_apart);
  std::optional<double> gap;
  inner.number("gap", gap);
  fusion.gap = gap.value_or(0);
  std::optional<int64_t> nodes;
  inner.integer("nodes", 0, nodes);
  fusion.nodes = nodes.value_or(0);
  inner.finish();
}

void read_precision(const Json& given, Reader& reader, std::vector<Diagnostic>& problems, Settings& settings) {
  if (given.is_string()) {
    if (auto known = precision_named(given.get<std::string>())) {
      settings.precision = *known;
      settings.precision_as_given = given;
      return;
    }
  } else if (given.is_object()) {
    Reader inner(given, "precision.", problems);
    Precision precision;
    auto type = [&](const char* field, DType& value) {
      std::string text = "model";
      inner.text(field, text);
      if (auto known = dtype_named(text)) {
        value = *known;
      } else {
        inner.problem(field, "is \"" + text + "\", which is not known", std::string("one of: ") + kTypeNames);
      }
    };
    type("parameters", precision.parameters);
    type("gradients", precision.gradients);
    type("activations", precision.activations);
    type("optimizer_state", precision.optimizer_state);
    inner.boolean("master_weights", precision.master_weights);
    inner.finish();
    settings.precision = precision;
    settings.precision_as_given = given;
    return;
  }
  reader.problem("precision", "is " + given.dump() + ", which is not known",
                 std::string("one of: ") + kPrecisionNames +
                     "; or an object with parameters, gradients, activations, optimizer_state, master_weights");
}

}  // namespace

FusionRules FusionSettings::rules() const {
  FusionRules rules;
  rules.most_units = 1;
  for (int most : max_group)
    rules.most_units = most == 0 ? 0 : rules.most_units == 0 ? 0 : std::max(rules.most_units, most);
  rules.most_contractions = contractions;
  rules.most_convolutions = convolutions;
  rules.most_products = products;
  rules.one_output = one_output;
  rules.updates_apart = updates_apart;
  rules.activations_apart = activations_apart;
  return rules;
}

Settings parse_settings(const std::string& text) {
  Json json;
  try {
    json = text.empty() ? Json::object() : Json::parse(text);
  } catch (const Json::parse_error& e) {
    throw Refusal({"bad-settings", "the settings are not JSON: " + std::string(e.what()), "", "", ""});
  }
  if (!json.is_object())
    throw Refusal(
        {"bad-settings", "the settings must be a JSON object, are " + std::string(json.type_name()), "", "", ""});
  Settings settings;
  std::vector<Diagnostic> problems;
  Reader reader(json, "", problems);
  if (const Json* hardware = reader.find("hardware")) {
    if (hardware->is_string() || hardware->is_object()) {
      settings.hardware = *hardware;
    } else {
      reader.problem("hardware", "must be a name or a description, is " + hardware->dump(), "");
    }
  }
  reader.integer("capacity_bytes", 0, settings.capacity_bytes);
  reader.integer("batch", 1, settings.batch);
  if (const Json* dims = reader.find("dims")) {
    if (dims->is_object()) {
      for (const auto& [dim, value] : dims->items()) {
        auto number = Reader::whole(value, 1);
        if (number) {
          settings.dims[dim] = *number;
        } else {
          reader.problem("dims." + dim, "must be a whole number >= 1, is " + value.dump(), "");
        }
      }
    } else {
      reader.problem("dims", "must be an object of names and sizes, is " + dims->dump(), "");
    }
  }
  reader.choice("optimizer", kOptimizers, settings.training.optimizer);
  reader.number("weight_decay", settings.training.weight_decay);
  reader.number("clip_norm", settings.training.clip_norm);
  std::optional<int64_t> micro_batches;
  reader.integer("micro_batches", 1, micro_batches);
  settings.training.micro_batches = micro_batches.value_or(1);
  reader.choice("loss", kLosses, settings.training.loss);
  reader.text("output", settings.training.output);
  if (const Json* precision = reader.find("precision")) read_precision(*precision, reader, problems, settings);
  reader.either("update", "end", "immediate", settings.update_immediately);
  reader.either("batch_norm", "batch", "frozen", settings.training.frozen_batch_norm);
  reader.boolean("assume_batch_norm", settings.assume_batch_norm);
  reader.texts("train", settings.training.train);
  reader.texts("freeze", settings.training.freeze);
  reader.choice("unsupported", kUnsupported, settings.training.unsupported);
  reader.integer("last_layers", 1, settings.training.last_layers);
  reader.boolean("biases_only", settings.training.biases_only);
  std::optional<int64_t> lora_rank;
  reader.integer("lora_rank", 1, lora_rank);
  settings.training.lora_rank = lora_rank.value_or(0);
  reader.texts("recompute", settings.training.recompute);
  reader.either("widths", "datapath", "tensors", settings.tensor_widths);
  if (const Json* mapping = reader.find("mapping")) {
    settings.mapping = *mapping;
    if (!mapping->is_array()) reader.problem("mapping", "must be a mapping file's list, is " + mapping->dump(), "");
  }
  reader.choice("objective", kObjectives, settings.cost.objective);
  std::optional<int64_t> factor_limit;
  reader.integer("factor_limit", 1, factor_limit);
  if (factor_limit.value_or(1) > static_cast<int64_t>(kMaxTemporalLoops)) {
    reader.problem("factor_limit", "must be at most " + std::to_string(kMaxTemporalLoops), "");
  } else if (factor_limit) {
    settings.cost.factor_limit = static_cast<int>(*factor_limit);
  }
  std::vector<std::string> corrections;
  reader.texts("corrections", corrections);
  for (const std::string& wanted : corrections) {
    std::string known = "all";
    bool found = false;
    for (const auto& [correction, field] : kCorrections) {
      known += ", " + std::string(correction);
      if (wanted == "all" || wanted == correction) settings.cost.*field = found = true;
    }
    if (!found) reader.problem("corrections", "has \"" + wanted + "\", which is not known", "of: " + known);
  }
  reader.text("access_energy", settings.access_energy);
  std::string laws = "file";
  bool known_law = settings.access_energy == laws;
  for (const std::string& law : access_energy_laws()) {
    laws += ", " + law;
    known_law = known_law || settings.access_energy == law;
  }
  if (!known_law)
    reader.problem("access_energy", "is \"" + settings.access_energy + "\", which is not known", "one of: " + laws);
  if (const Json* partition = reader.find("partition")) {
    settings.partition = *partition;
    if (!partition->is_object())
      reader.problem("partition", "must be an object with `groups`, is " + partition->dump(), "");
  }
  reader.boolean("write_back", settings.schedule.write_back);
  if (const Json* fusion = reader.find("fusion")) read_fusion(*fusion, reader, problems, settings.fusion);
  bool separate = false;
  reader.either("accumulation", "in_place", "separate", separate);
  settings.schedule.accumulate_in_place = !separate;
  reader.finish();
  if (!problems.empty()) throw Refusal(std::move(problems));
  return settings;
}

Json to_json(const Settings& s) {
  auto number_or_null = [](const auto& v) { return v ? Json(*v) : Json(nullptr); };
  Json dims = Json::object();
  for (const auto& [dim, value] : s.dims) dims[dim] = value;
  Json corrections = Json::array();
  for (const auto& [correction, field] : kCorrections)
    if (s.cost.*field) corrections.push_back(correction);
  return {
      {"hardware", s.hardware},
      {"capacity_bytes", number_or_null(s.capacity_bytes)},
      {"batch", number_or_null(s.batch)},
      {"dims", dims},
      {"optimizer", name(s.training.optimizer)},
      {"weight_decay", number_or_null(s.training.weight_decay)},
      {"clip_norm", number_or_null(s.training.clip_norm)},
      {"micro_batches", s.training.micro_batches},
      {"loss", name(s.training.loss)},
      {"output", s.training.output},
      {"precision", s.precision_as_given},
      {"update", s.update_immediately ? "immediate" : "end"},
      {"batch_norm", s.training.frozen_batch_norm ? "frozen" : "batch"},
      {"assume_batch_norm", s.assume_batch_norm},
      {"train", s.training.train},
      {"freeze", s.training.freeze},
      {"unsupported", name(s.training.unsupported)},
      {"last_layers", number_or_null(s.training.last_layers)},
      {"biases_only", s.training.biases_only},
      {"lora_rank", s.training.lora_rank ? Json(s.training.lora_rank) : Json(nullptr)},
      {"recompute", s.training.recompute},
      {"widths", s.tensor_widths ? "tensors" : "datapath"},
      {"mapping", s.mapping},
      {"objective", name(s.cost.objective)},
      {"factor_limit", s.cost.factor_limit},
      {"corrections", corrections},
      {"access_energy", s.access_energy},
      {"partition", s.partition},
      {"write_back", s.schedule.write_back},
      {"accumulation", s.schedule.accumulate_in_place ? "in_place" : "separate"},
      {"fusion",
       {{"objective", name(s.fusion.objective)},
        {"max_group", s.fusion.max_group},
        {"contractions", s.fusion.contractions},
        {"convolutions", s.fusion.convolutions},
        {"products", s.fusion.products},
        {"one_output", s.fusion.one_output},
        {"updates_apart", s.fusion.updates_apart},
        {"activations_apart", s.fusion.activations_apart},
        {"gap", s.fusion.gap},
        {"nodes", s.fusion.nodes}}},
  };
}

}  // namespace monet
