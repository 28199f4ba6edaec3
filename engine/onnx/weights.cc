#include "engine/onnx/weights.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace monet {

namespace {

void rename_reads(::onnx::GraphProto& graph, const std::string& from, const std::string& to) {
  for (auto& n : *graph.mutable_node()) {
    for (auto& input : *n.mutable_input())
      if (input == from) input = to;
    for (auto& a : *n.mutable_attribute()) {
      if (a.has_g()) rename_reads(*a.mutable_g(), from, to);
      for (auto& g : *a.mutable_graphs()) rename_reads(g, from, to);
    }
  }
  for (auto& v : *graph.mutable_output())
    if (v.name() == from) v.set_name(to);
}

class Taker {
 public:
  Taker(::onnx::GraphProto& main, std::vector<Stored>& stored) : main_(main), stored_(stored) {}

  void run() {
    for (const Stored& s : stored_) listed_.insert(s.name);
    count_names(main_);
    take(main_, true);
  }

 private:
  void count_names(const ::onnx::GraphProto& graph) {
    for (const auto& v : graph.input()) ++defined_[v.name()];
    for (const auto& t : graph.initializer()) ++defined_[t.name()];
    for (const auto& n : graph.node()) {
      for (const auto& output : n.output()) ++defined_[output];
      for (const auto& a : n.attribute()) {
        if (a.has_g()) count_names(a.g());
        for (const auto& g : a.graphs()) count_names(g);
      }
    }
  }

  void take(::onnx::GraphProto& graph, bool is_main) {
    auto& initializers = *graph.mutable_initializer();
    google::protobuf::RepeatedPtrField<::onnx::TensorProto> kept;
    for (auto& t : initializers) {
      if (has_payload(t) && t.data_type() != ::onnx::TensorProto::STRING) {
        if (is_main && is_float(dtype_of(t.data_type())) && !listed_.count(t.name()))
          stored_.push_back({t.name(), TensorKind::parameter});
        kept.Add()->Swap(&t);
      } else {
        hoist(graph, is_main, t.name(), t);
      }
    }
    initializers.Swap(&kept);

    google::protobuf::RepeatedPtrField<::onnx::NodeProto> nodes;
    for (auto& n : *graph.mutable_node()) {
      const ::onnx::AttributeProto* value = n.op_type() == "Constant" && n.domain().empty() && n.output_size() == 1
                                                ? find_attribute(n, "value")
                                                : nullptr;
      if (value && value->has_t() && !has_payload(value->t())) {
        hoist(graph, is_main, n.output(0), value->t());
        continue;
      }
      for (auto& a : *n.mutable_attribute()) {
        if (a.has_g()) take(*a.mutable_g(), false);
        for (auto& g : *a.mutable_graphs()) take(g, false);
      }
      nodes.Add()->Swap(&n);
    }
    graph.mutable_node()->Swap(&nodes);
  }

  void hoist(::onnx::GraphProto& from, bool is_main, const std::string& name, const ::onnx::TensorProto& tensor) {
    std::string unique = name;
    if (!is_main && defined_[name] > 1) {
      for (int i = 2; defined_.count(unique); ++i) unique = name + "_" + std::to_string(i);
      ++defined_[unique];
      rename_reads(from, name, unique);
    }
    auto* input = main_.add_input();
    input->set_name(unique);
    set_tensor_type(input->mutable_type(), tensor.data_type(), shape_of(tensor));
    stored_.push_back({unique, is_float(dtype_of(tensor.data_type())) ? TensorKind::parameter : TensorKind::buffer});
  }

  ::onnx::GraphProto& main_;
  std::vector<Stored>& stored_;
  std::unordered_map<std::string, int> defined_;
  std::unordered_set<std::string> listed_;
};

// Inputs that only configure an operator: no gradient goes there.
const std::map<std::string, std::set<int>>& configuring_inputs() {
  static const std::map<std::string, std::set<int>> table = {
      {"Clip", {1, 2}},
      {"Resize", {1, 2}},
      {"Upsample", {1}},
      {"Pad", {2}},
      {"Dropout", {1}},
      {"OneHot", {2}},
      {"Range", {0, 1, 2}},
      {"QuantizeLinear", {1}},
      {"DequantizeLinear", {1}},
      {"QLinearConv", {1, 4, 6}},
      {"QLinearMatMul", {1, 4, 6}},
      {"NonMaxSuppression", {3, 4}},
  };
  return table;
}

}  // namespace

void take_weights(::onnx::GraphProto& graph, std::vector<Stored>& stored) { Taker(graph, stored).run(); }

void classify(const ::onnx::GraphProto& graph, std::vector<Stored>& stored) {
  std::unordered_set<std::string> statistics, configures, computes;
  for (const auto& n : graph.node()) {
    auto entry = n.domain().empty() ? configuring_inputs().find(n.op_type()) : configuring_inputs().end();
    bool normalises = n.domain().empty() && n.op_type() == "BatchNormalization";
    for (int i = 0; i < n.input_size(); ++i) {
      if (normalises && i >= 3) {
        statistics.insert(n.input(i));
      } else if (entry != configuring_inputs().end() && entry->second.count(i)) {
        configures.insert(n.input(i));
      } else {
        computes.insert(n.input(i));
      }
    }
  }
  std::unordered_set<std::string> kept;
  for (const auto& t : graph.initializer()) kept.insert(t.name());
  stored.erase(std::remove_if(stored.begin(), stored.end(),
                              [&](const Stored& s) {
                                return kept.count(s.name) && configures.count(s.name) && !computes.count(s.name);
                              }),
               stored.end());
  for (Stored& s : stored)
    if (statistics.count(s.name)) s.kind = TensorKind::buffer;
}

}  // namespace monet
