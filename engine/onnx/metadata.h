// What an exported graph says beyond ONNX, as metadata_props (with prefix "monet."), so that it can be read back.
//
// Nodes: index (its own), phase, origin (an index), unit (an index); on every node of a unit: unit_op, role,
// unit_origin, target (a tensor's name); contraction on the unit's contraction. Values: kind (graph inputs), of (a
// tensor's name).
#pragma once

#include <string>

#include "engine/ir/graph.h"

namespace monet {

constexpr const char* kIndexKey = "index";
constexpr const char* kPhaseKey = "phase";
constexpr const char* kOriginKey = "origin";
constexpr const char* kUnitKey = "unit";
constexpr const char* kUnitOpKey = "unit_op";
constexpr const char* kRoleKey = "role";
constexpr const char* kUnitOriginKey = "unit_origin";
constexpr const char* kTargetKey = "target";
constexpr const char* kContractionKey = "contraction";
constexpr const char* kKindKey = "kind";
constexpr const char* kOfKey = "of";

// Names back to values; what is not a name counts as forward (phases, roles) or input (kinds).
Phase phase_named(const std::string& name);
Role role_named(const std::string& name);
TensorKind input_kind_named(const std::string& name);
const char* name_of_kind(TensorKind kind);

// Position of a kind among graph inputs: data, labels, parameters, buffers, states, scalars.
int input_rank(TensorKind kind);

}  // namespace monet
