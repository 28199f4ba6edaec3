#include "engine/onnx/normalise.h"

#include <onnx/checker.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <map>
#include <set>

#include "engine/onnx/foreign.h"

namespace monet {

namespace {

using ::onnx::AttributeProto;
using Opsets = std::map<std::string, int>;

constexpr int64_t kNewestMeaningfulOpset = 1000;  // anything above is a damaged number

void rename_domain(std::string* domain) {
  if (*domain == "ai.onnx") domain->clear();
}

// The type that the attribute's filled field implies; UNDEFINED when none or several are filled.
AttributeProto::AttributeType filled(const AttributeProto& a, int& fields) {
  AttributeProto::AttributeType type = AttributeProto::UNDEFINED;
  fields = 0;
  auto note = [&](bool present, AttributeProto::AttributeType t) {
    if (!present) return;
    ++fields;
    type = t;
  };
  note(a.has_f(), AttributeProto::FLOAT);
  note(a.has_i(), AttributeProto::INT);
  note(a.has_s(), AttributeProto::STRING);
  note(a.has_t(), AttributeProto::TENSOR);
  note(a.has_g(), AttributeProto::GRAPH);
  note(a.has_tp(), AttributeProto::TYPE_PROTO);
  note(a.has_sparse_tensor(), AttributeProto::SPARSE_TENSOR);
  note(a.floats_size() > 0, AttributeProto::FLOATS);
  note(a.ints_size() > 0, AttributeProto::INTS);
  note(a.strings_size() > 0, AttributeProto::STRINGS);
  note(a.tensors_size() > 0, AttributeProto::TENSORS);
  note(a.graphs_size() > 0, AttributeProto::GRAPHS);
  note(a.type_protos_size() > 0, AttributeProto::TYPE_PROTOS);
  note(a.sparse_tensors_size() > 0, AttributeProto::SPARSE_TENSORS);
  return type;
}

// "Node (x) has input size 0 ..." without the library's line breaks and context.
std::string one_line(std::string text) {
  text.erase(std::min(text.find("\n\n==>"), text.size()));
  for (char& c : text)
    if (c == '\n' || c == '\r') c = ' ';
  while (!text.empty() && (text.back() == ' ' || text.back() == '.')) text.pop_back();
  return text;
}

// Makes a sparse tensor a dense one of the same dims, without values.
void densify(const ::onnx::SparseTensorProto& sparse, ::onnx::TensorProto* dense) {
  dense->set_name(sparse.values().name());
  dense->set_data_type(sparse.values().data_type());
  *dense->mutable_dims() = sparse.dims();
}

class Normaliser {
 public:
  Normaliser(::onnx::ModelProto& model, std::vector<Diagnostic>& problems) : model_(model), problems_(problems) {
    for (const auto& [name, type] : declared_types(model.graph())) declared_.insert(name);
  }

  void run() {
    imports(*model_.mutable_opset_import());
    for (auto& f : *model_.mutable_functions()) {
      rename_domain(f.mutable_domain());
      imports(*f.mutable_opset_import());
      functions_.insert({f.domain(), f.name()});
      std::set<std::string> names(f.input().begin(), f.input().end());
      for (auto& a : *f.mutable_attribute_proto()) attribute(a, "function " + f.name(), f.name());
    }
    for (auto& f : *model_.mutable_functions()) nodes(*f.mutable_node(), opsets(f.opset_import()));
    graph(*model_.mutable_graph(), opsets(model_.opset_import()));
    report_unknown();
  }

 private:
  // Leaves one import of each domain: the converter and the inliner change only one of two.
  void imports(google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& list) {
    std::map<std::string, int64_t> known;
    google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto> kept;
    for (auto& import : list) {
      rename_domain(import.mutable_domain());
      auto [first, fresh] = known.emplace(import.domain(), import.version());
      if (!fresh) {
        if (first->second != import.version())
          problems_.push_back({"bad-model",
                               "the model imports domain \"" + (import.domain().empty() ? "ai.onnx" : import.domain()) +
                                   "\" in versions " + std::to_string(first->second) + " and " +
                                   std::to_string(import.version()),
                               "", "", "export the model again"});
        continue;
      }
      if (import.version() < 1 || import.version() > kNewestMeaningfulOpset)
        problems_.push_back({"bad-model",
                             "the model imports version " + std::to_string(import.version()) + " of domain \"" +
                                 (import.domain().empty() ? "ai.onnx" : import.domain()) + "\", which does not exist",
                             "", "", "export the model again"});
      kept.Add()->Swap(&import);
    }
    list.Swap(&kept);
    if (list.empty()) list.Add()->set_version(1);
  }

  static Opsets opsets(const google::protobuf::RepeatedPtrField<::onnx::OperatorSetIdProto>& list) {
    Opsets result;
    for (const auto& import : list) result.emplace(import.domain(), static_cast<int>(import.version()));
    return result;
  }

  void graph(::onnx::GraphProto& g, const Opsets& versions) {
    for (auto& sparse : *g.mutable_sparse_initializer()) densify(sparse, g.add_initializer());
    g.clear_sparse_initializer();
    std::set<std::string> stored;
    for (const auto& t : g.initializer()) stored.insert(t.name());
    auto& inputs = *g.mutable_input();
    inputs.erase(std::remove_if(inputs.begin(), inputs.end(), [&](const auto& v) { return stored.count(v.name()); }),
                 inputs.end());
    nodes(*g.mutable_node(), versions);
  }

  void nodes(google::protobuf::RepeatedPtrField<::onnx::NodeProto>& list, const Opsets& versions) {
    for (int i = 0; i < list.size(); ++i) node(*list.Mutable(i), i, versions);
  }

  void node(::onnx::NodeProto& n, int index, const Opsets& versions) {
    rename_domain(n.mutable_domain());
    std::string title = describe(n, index);
    if (n.op_type().empty()) {
      problems_.push_back({"bad-node", "node " + title + " has no operator type", name_of(n), "", ""});
      return;
    }
    size_t before = problems_.size();
    for (auto& a : *n.mutable_attribute()) {
      attribute(a, title, name_of(n));
      if (a.has_g()) graph(*a.mutable_g(), versions);
      for (auto& g : *a.mutable_graphs()) graph(g, versions);
    }
    if (n.domain().empty() && n.op_type() == "Constant") sparse_constant(n);
    if (functions_.count({n.domain(), n.op_type()})) return;
    auto version = versions.find(n.domain());
    const ::onnx::OpSchema* schema = nullptr;
    if (version != versions.end())
      schema = ::onnx::OpSchemaRegistry::Schema(n.op_type(), std::min(version->second, newest(n.domain())), n.domain());
    if (!schema) {
      unknown(n);
    } else if (problems_.size() == before) {
      verify(*schema, n, title);
    }
  }

  // Newest version that ONNX 1.17 knows of a domain: newer imports are read as that one.
  static int newest(const std::string& domain) {
    const auto& ranges = ::onnx::OpSchemaRegistry::DomainToVersionRange::Instance().Map();
    auto found = ranges.find(domain);
    return found == ranges.end() ? 1 : found->second.second;
  }

  void sparse_constant(::onnx::NodeProto& n) {
    for (auto& a : *n.mutable_attribute()) {
      if (a.name() != "sparse_value" || !a.has_sparse_tensor()) continue;
      ::onnx::TensorProto dense;
      densify(a.sparse_tensor(), &dense);
      a.clear_sparse_tensor();
      *a.mutable_t() = dense;
      a.set_name("value");
      a.set_type(AttributeProto::TENSOR);
    }
  }

  void attribute(AttributeProto& a, const std::string& title, const std::string& node_name) {
    int fields = 0;
    AttributeProto::AttributeType type = filled(a, fields);
    auto bad = [&](const std::string& what) {
      problems_.push_back({"bad-attribute", "attribute \"" + a.name() + "\" of " + title + " " + what, node_name, "",
                           "export the model again"});
    };
    if (a.name().empty()) bad("has no name");
    if (fields > 1) return bad("has several values");
    if (!a.ref_attr_name().empty()) {
      if (fields) bad("refers to another attribute and has a value as well");
      return;
    }
    if (a.type() == AttributeProto::UNDEFINED) a.set_type(type);
    if (fields && type != a.type()) bad("is declared to be another type than its value has");
  }

  void verify(const ::onnx::OpSchema& schema, const ::onnx::NodeProto& n, const std::string& title) {
    try {
      schema.Verify(n);
    } catch (const std::exception& error) {
      problems_.push_back({"bad-node", title + " is not a valid " + n.op_type() + ": " + one_line(error.what()),
                           name_of(n), "", "export the model again"});
    }
    // ONNX's inference divides by strides without looking.
    for (const auto& a : n.attribute())
      if (n.domain().empty() && a.name() == "strides" &&
          std::any_of(a.ints().begin(), a.ints().end(), [](int64_t stride) { return stride < 1; }))
        problems_.push_back({"bad-attribute", "attribute \"strides\" of " + title + " has a value below 1", name_of(n),
                             "", "export the model again"});
  }

  // Kept as an opaque node if the file says what it makes.
  void unknown(const ::onnx::NodeProto& n) {
    bool declared = std::all_of(n.output().begin(), n.output().end(),
                                [&](const std::string& output) { return output.empty() || declared_.count(output); });
    if (declared && is_foreign(model_, n.domain())) return;
    auto& entry = unknown_[{n.domain(), n.op_type()}];
    if (entry.first++ == 0) entry.second = name_of(n);
  }

  void report_unknown() {
    for (const auto& [key, value] : unknown_) {
      const auto& [domain, op] = key;
      const auto& [count, first] = value;
      std::string where =
          count == 1 ? "node \"" + first + "\"" : std::to_string(count) + " nodes, first \"" + first + "\"";
      std::string title = (domain.empty() ? "" : domain + ".") + op;
      problems_.push_back({"unknown-operator", "operator " + title + " is unknown (" + where + ")", first, "",
                           domain.empty() ? "the operator is newer than opset 22, or was never part of ONNX"
                                          : "export with declared shapes, or without operators of domain " + domain});
    }
  }

  ::onnx::ModelProto& model_;
  std::vector<Diagnostic>& problems_;
  std::set<std::string> declared_;  // tensors whose type and shape the file states
  std::set<std::pair<std::string, std::string>> functions_;
  std::map<std::pair<std::string, std::string>, std::pair<int, std::string>> unknown_;
};

}  // namespace

void normalise(::onnx::ModelProto& model, std::vector<Diagnostic>& problems) { Normaliser(model, problems).run(); }

int opset_of(const ::onnx::ModelProto& model) {
  for (const auto& import : model.opset_import())
    if (import.domain().empty()) return static_cast<int>(import.version());
  return 0;
}

void check_nodes(const ::onnx::ModelProto& model, std::vector<Diagnostic>& problems) {
  ::onnx::ModelProto copy = model;
  Normaliser(copy, problems).run();
}

}  // namespace monet
