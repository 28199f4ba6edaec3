// Everything a user can choose about an analysis, as one plain value. The command line, the page, a link and a report
// all carry it as the same JSON object.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/cost/layer_cost.h"
#include "engine/fusion/plan.h"
#include "engine/schedule/program.h"
#include "engine/training/precision.h"
#include "engine/training/training_graph.h"

namespace monet {

// "fusion": how groups are searched for.
struct FusionSettings {
  FusionObjective objective = FusionObjective::latency;  // "objective": groups | latency | energy | edp | traffic
  std::vector<int> max_group = {4, 6};  // "max_group": units of a group at most, a search for each; 0: any number
  int contractions = 0;                // "contractions": of a group at most, 0 for any number; MONET's released code: 1
  int convolutions = 3, products = 2;  // "convolutions", "products": of a group at most
  bool one_output = true;              // "one_output": at most one of a group's units is read outside
  bool updates_apart = false;          // "updates_apart": from weights' gradients
  bool activations_apart = false;      // "activations_apart": from the products that they read
  double gap = 0;                      // "gap": relative, at which a solver may stop
  int64_t nodes = 0;                   // "nodes": of a solver's search tree at most; 0: any number
  FusionRules rules() const;           // those of the largest max_group
};

struct Settings {
  // "hardware": a preset's name, "none" (memory and operations only), or a description as an object.
  nlohmann::ordered_json hardware = "none";
  // "capacity_bytes": what the peak is compared with; null: the accelerator's off-chip memory, or nothing with "none".
  std::optional<int64_t> capacity_bytes;
  std::optional<int64_t> batch;         // "batch": dimension 0 of every data input; null: as the file says
  std::map<std::string, int64_t> dims;  // "dims": {"sequence": 128}
  // "optimizer", "weight_decay", "clip_norm", "micro_batches", "loss", "output", "batch_norm": batch | frozen, "train",
  // "freeze", "last_layers", "biases_only", "lora_rank", "recompute", "unsupported": refuse | stop | pass
  TrainingOptions training;
  nlohmann::ordered_json precision_as_given = "model";  // "precision": a name, or an object with a type per class
  Precision precision;
  bool update_immediately = false;  // "update": end | immediate
  bool assume_batch_norm = false;   // "assume_batch_norm"

  // How time and energy are counted on a hardware.
  // "widths": datapath (8-bit operands, as ZigZag and Stream) | tensors (as `precision` says)
  bool tensor_widths = false;
  // "mapping": a mapping file (cost/mapping.h); null: the cores' own dataflows
  nlohmann::ordered_json mapping = nullptr;
  // "objective": latency | energy | edp, "factor_limit", "corrections" of ZigZag's model: names of CostOptions' fields,
  // or "all"
  CostOptions cost;
  // How a step is scheduled. "partition": {"groups": [...]} (schedule/partition.h); null: layer by layer. "write_back":
  // what crosses groups goes off the chip. "accumulation": in_place | separate, of gradients over micro-batches.
  nlohmann::ordered_json partition = nullptr;
  ScheduleOptions schedule;
  FusionSettings fusion;
  std::string access_energy = "file";  // "access_energy": of the hardware file, or a law (hardware/access_energy.h)

  Precision widths() const { return tensor_widths ? precision : datapath_precision(); }
};

// Absent fields keep their defaults. Throws Refusal with every problem: unknown fields, wrong types, unknown names.
Settings parse_settings(const std::string& json);

// Every field with its value, in a fixed order; parse_settings reads it back to the same settings.
nlohmann::ordered_json to_json(const Settings& settings);

}  // namespace monet
