#include "engine/onnx/expand.h"

#include <onnx/defs/schema.h>
#include <onnx/inliner/inliner.h>

#include <algorithm>
#include <optional>

#include "engine/onnx/convert_opset.h"

namespace monet {

namespace {

using ::onnx::FunctionProto;
using ::onnx::NodeProto;
using ::onnx::OpSchema;

// Domain of the local functions made here; no real model uses it.
constexpr const char* kDomain = "monet.expanded";

bool has_subgraphs(const FunctionProto& f) {
  for (const auto& n : f.node())
    for (const auto& a : n.attribute())
      if (a.has_g() || a.graphs_size() > 0) return true;
  return false;
}

bool produces(const FunctionProto& f, const std::string& name) {
  return std::any_of(f.node().begin(), f.node().end(), [&](const NodeProto& n) {
    return std::find(n.output().begin(), n.output().end(), name) != n.output().end();
  });
}

class Expander {
 public:
  Expander(::onnx::ModelProto& model, const Inferred& inferred, const BindOptions& options)
      : model_(model), inferred_(inferred), options_(options) {}

  bool run(std::map<std::string, int>& expanded) {
    for (auto& n : *model_.mutable_graph()->mutable_node()) {
      if (!wanted(n)) continue;
      const OpSchema* schema = ::onnx::OpSchemaRegistry::Schema(n.op_type(), opset(n.domain()), n.domain());
      auto body = schema ? body_of(*schema, n) : std::nullopt;
      if (!body) continue;
      ++expanded[n.op_type()];
      call(n, *schema, std::move(*body));
    }
    if (model_.functions().empty()) return false;
    auto* import = model_.add_opset_import();
    import->set_domain(kDomain);
    import->set_version(1);
    ::onnx::inliner::InlineLocalFunctions(model_, false);
    if (!model_.functions().empty())  // else the caller would expand for ever
      throw Refusal({"not-expandable",
                     "operator " + model_.functions(0).name() + " cannot be replaced by its definition", "", "",
                     "export the model with a newer opset"});
    model_.mutable_opset_import()->RemoveLast();
    use_raw_data(*model_.mutable_graph());
    return true;
  }

 private:
  bool wanted(const NodeProto& n) const {
    if (n.output_size() == 0 || n.output(0).empty() || inferred_.values.count(n.output(0))) return false;
    auto type = inferred_.types.find(n.output(0));
    if (type == inferred_.types.end() || !is_float(dtype_of(type->second.tensor_type().elem_type()))) return false;
    return !options_.has_rule(n.domain(), n.op_type());
  }

  int opset(const std::string& domain) const {
    for (const auto& import : model_.opset_import())
      if (import.domain() == domain) return static_cast<int>(import.version());
    return 1;
  }

  std::optional<FunctionProto> body_of(const OpSchema& schema, const NodeProto& n) {
    FunctionProto body;
    try {
      if (schema.HasFunction()) {
        const FunctionProto* found = schema.GetFunction(kOpset, false);
        if (!found) return std::nullopt;
        body = *found;
      } else if (schema.HasContextDependentFunction()) {
        std::vector<::onnx::TypeProto> types;
        for (const auto& input : n.input()) {
          auto type = inferred_.types.find(input);
          types.push_back(type == inferred_.types.end() ? ::onnx::TypeProto() : type->second);
        }
        NodeProto complete = n;
        add_default_attributes(schema, complete);
        ::onnx::FunctionBodyBuildContextImpl context(complete, types);
        // The newest builder at most at our opset; its body says itself which versions it needs.
        if (!schema.BuildContextDependentFunction(context, body, newest_builder(schema))) return std::nullopt;
      }
      if (body.node().empty() || has_subgraphs(body)) return std::nullopt;
      for (int i = 0; i < n.output_size(); ++i)  // bodies leave optional outputs out
        if (!n.output(i).empty() && (i >= body.output_size() || !produces(body, body.output(i)))) return std::nullopt;
      bring_up_to_date(body);
    } catch (const std::exception&) {
      return std::nullopt;  // no body for these types: training names the operator if it matters
    }
    return body;
  }

  static int newest_builder(const OpSchema& schema) {
    int newest = OpSchema::kUninitializedSinceVersion;
    for (int version : schema.context_dependent_function_opset_versions())
      if (version <= kOpset) newest = std::max(newest, version);
    return newest;
  }

  static void bring_up_to_date(FunctionProto& body) {
    int version = kOpset;
    for (const auto& import : body.opset_import())
      if (import.domain().empty()) version = static_cast<int>(import.version());
    body.clear_opset_import();
    for (const auto& [domain, v] : {std::pair<const char*, int>{"", kOpset}, {kDomain, 1}}) {
      auto* import = body.add_opset_import();
      import->set_domain(domain);
      import->set_version(v);
    }
    if (version >= kOpset) return;
    ::onnx::ModelProto alone;
    alone.set_ir_version(kIrVersion);
    alone.add_opset_import()->set_version(version);
    for (const auto& input : body.input()) alone.mutable_graph()->add_input()->set_name(input);
    for (const auto& output : body.output())
      if (produces(body, output)) alone.mutable_graph()->add_output()->set_name(output);
    std::vector<std::pair<int, ::onnx::AttributeProto>> references = cut_references(body);
    *alone.mutable_graph()->mutable_node() = body.node();
    convert_opset(alone);
    if (alone.graph().node_size() != body.node_size() && !references.empty())
      throw std::runtime_error("the body changes with its version");
    *body.mutable_node() = alone.graph().node();
    for (auto& [node, attribute] : references) *body.mutable_node(node)->add_attribute() = attribute;
  }

  // The converter does not know references to the function's attributes: they are taken out and put back.
  static std::vector<std::pair<int, ::onnx::AttributeProto>> cut_references(FunctionProto& body) {
    std::vector<std::pair<int, ::onnx::AttributeProto>> references;
    for (int i = 0; i < body.node_size(); ++i) {
      auto& list = *body.mutable_node(i)->mutable_attribute();
      for (int j = list.size(); j-- > 0;)
        if (!list.Get(j).ref_attr_name().empty()) {
          references.emplace_back(i, list.Get(j));
          list.DeleteSubrange(j, 1);
        }
    }
    return references;
  }

  void call(NodeProto& n, const OpSchema& schema, FunctionProto body) {
    add_default_attributes(schema, n);
    std::string unique = n.op_type() + "_" + std::to_string(model_.functions_size());
    body.set_name(unique);
    body.set_domain(kDomain);
    body.clear_overload();
    n.set_op_type(unique);
    n.set_domain(kDomain);
    model_.add_functions()->Swap(&body);
  }

  ::onnx::ModelProto& model_;
  const Inferred& inferred_;
  const BindOptions& options_;
};

}  // namespace

bool expand_functions(::onnx::ModelProto& model, const Inferred& inferred, const BindOptions& options,
                      std::map<std::string, int>& expanded) {
  return options.has_rule && Expander(model, inferred, options).run(expanded);
}

}  // namespace monet
