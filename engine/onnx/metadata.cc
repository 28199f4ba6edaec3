#include "engine/onnx/metadata.h"

namespace monet {

namespace {
constexpr TensorKind kInputKinds[] = {TensorKind::input, TensorKind::label, TensorKind::parameter, TensorKind::buffer,
                                      TensorKind::state, TensorKind::sum,   TensorKind::scalar};
}  // namespace

Phase phase_named(const std::string& text) {
  for (int i = 0; i < kPhases; ++i)
    if (text == name(static_cast<Phase>(i))) return static_cast<Phase>(i);
  return Phase::forward;
}

Role role_named(const std::string& text) {
  for (Role role :
       {Role::forward, Role::input_gradient, Role::weight_gradient, Role::gradient, Role::accumulate, Role::update})
    if (text == name(role)) return role;
  return Role::forward;
}

const char* name_of_kind(TensorKind kind) {
  switch (kind) {
    case TensorKind::input:
      return "input";
    case TensorKind::label:
      return "label";
    case TensorKind::parameter:
      return "parameter";
    case TensorKind::buffer:
      return "buffer";
    case TensorKind::constant:
      return "constant";
    case TensorKind::state:
      return "state";
    case TensorKind::sum:
      return "sum";
    case TensorKind::scalar:
      return "scalar";
    case TensorKind::computed:
      return "computed";
  }
  return "";
}

TensorKind input_kind_named(const std::string& text) {
  for (TensorKind kind : kInputKinds)
    if (text == name_of_kind(kind)) return kind;
  return TensorKind::input;
}

int input_rank(TensorKind kind) {
  int rank = 0;
  for (TensorKind k : kInputKinds) {
    if (k == kind) return rank;
    ++rank;
  }
  return rank;
}

}  // namespace monet
