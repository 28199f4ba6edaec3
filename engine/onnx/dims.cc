#include "engine/onnx/dims.h"

#include <algorithm>

namespace monet {

namespace {

// A dimension above this is a mistake (2^40 bytes are a terabyte), and products of sane ones stay inside 64 bits.
constexpr int64_t kLargestDim = int64_t{1} << 40;

bool sane(int64_t value) { return value >= 1 && value <= kLargestDim; }

class Binder {
 public:
  Binder(const std::unordered_set<std::string>& stored, const BindOptions& options, std::vector<Diagnostic>& problems)
      : stored_(stored), options_(options), problems_(problems), values_(options.dims) {}

  std::vector<BoundDim> run(::onnx::GraphProto& graph) {
    check_options();
    for (const auto& v : graph.input())
      if (!stored_.count(v.name())) adopt_batch(v);
    for (auto& v : *graph.mutable_input())
      if (!stored_.count(v.name())) bind(v);
    for (auto* list : {graph.mutable_value_info(), graph.mutable_output()})
      for (auto& v : *list) resolve(v);
    for (const auto& wanted : options_.dims)
      if (std::none_of(dims_.begin(), dims_.end(), [&](const BoundDim& d) { return d.name == wanted.first; }))
        report_unknown(wanted.first);
    return std::move(dims_);
  }

 private:
  static bool open(const ::onnx::TensorShapeProto::Dimension& d) { return !d.has_dim_value() || d.dim_value() < 1; }

  static std::string dim_name(const ::onnx::ValueInfoProto& v, int axis) {
    const auto& d = v.type().tensor_type().shape().dim(axis);
    bool named = d.has_dim_param() && !d.dim_param().empty();
    return named ? d.dim_param() : v.name() + "_" + std::to_string(axis);
  }

  void check_options() {
    for (const auto& [name, value] : options_.dims)
      if (!sane(value)) bad_value("dimension \"" + name + "\"", value);
    if (options_.batch && !sane(*options_.batch)) bad_value("the batch", *options_.batch);
  }

  void bad_value(const std::string& what, int64_t value) {
    problems_.push_back(
        {"bad-dim", what + " cannot be " + std::to_string(value), "", "", "give a number from 1 to 2^40"});
  }

  // The batch is also the value of every name that stands for it, wherever it stands.
  void adopt_batch(const ::onnx::ValueInfoProto& v) {
    const auto& shape = v.type().tensor_type().shape();
    if (!options_.batch || shape.dim_size() == 0 || !open(shape.dim(0))) return;
    std::string name = dim_name(v, 0);
    auto [at, fresh] = values_.emplace(name, *options_.batch);
    if (!fresh && at->second != *options_.batch)
      problems_.push_back({"bad-dim",
                           "dimension \"" + name + "\" is the batch: it cannot be " + std::to_string(at->second) +
                               " and " + std::to_string(*options_.batch),
                           "", v.name(), "give one of the two"});
  }

  void bind(::onnx::ValueInfoProto& v) {
    if (!v.type().has_tensor_type()) {
      problems_.push_back({"unsupported-type", "input \"" + v.name() + "\" is no tensor", "", v.name(),
                           "export the model without sequences, maps and optionals"});
      return;
    }
    auto* tensor = v.mutable_type()->mutable_tensor_type();
    if (tensor->elem_type() == 0 || !tensor->has_shape()) {
      problems_.push_back({"missing-shape",
                           "input \"" + v.name() + "\" has no " + (tensor->elem_type() ? "shape" : "type"), "",
                           v.name(), "export the model with shapes of its inputs"});
      return;
    }
    for (int axis = 0; axis < tensor->shape().dim_size(); ++axis) {
      auto* d = tensor->mutable_shape()->mutable_dim(axis);
      if (axis == 0 && options_.batch && !open(*d)) d->set_dim_value(*options_.batch);
      if (open(*d)) {
        std::string name = dim_name(v, axis);
        auto given = values_.find(name);
        int64_t value = given == values_.end() ? 1 : given->second;
        if (std::none_of(dims_.begin(), dims_.end(), [&](const BoundDim& b) { return b.name == name; }))
          dims_.push_back({name, v.name(), axis, value, given == values_.end()});
        d->set_dim_value(value);
      } else if (d->dim_value() > kLargestDim) {
        bad_value("dimension " + std::to_string(axis) + " of input \"" + v.name() + "\"", d->dim_value());
      }
    }
  }

  // Declared shapes of inner tensors: names that inputs have bound become numbers.
  void resolve(::onnx::ValueInfoProto& v) {
    if (!v.type().has_tensor_type() || !v.type().tensor_type().has_shape()) return;
    for (auto& d : *v.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim())
      for (const BoundDim& known : dims_)
        if (d.has_dim_param() && d.dim_param() == known.name) d.set_dim_value(known.value);
  }

  void report_unknown(const std::string& name) {
    std::string known;
    for (const BoundDim& d : dims_) known += (known.empty() ? "" : ", ") + d.name;
    problems_.push_back({"unknown-dim", "the model has no open dimension \"" + name + "\"", "", "",
                         known.empty() ? "all dimensions of this model are fixed" : "open dimensions: " + known});
  }

  const std::unordered_set<std::string>& stored_;
  const BindOptions& options_;
  std::vector<Diagnostic>& problems_;
  std::map<std::string, int64_t> values_;
  std::vector<BoundDim> dims_;
};

}  // namespace

std::vector<BoundDim> bind_dims(::onnx::GraphProto& graph, const std::unordered_set<std::string>& stored,
                                const BindOptions& options, std::vector<Diagnostic>& problems) {
  return Binder(stored, options, problems).run(graph);
}

}  // namespace monet
