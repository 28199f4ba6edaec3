#include "engine/onnx/operators.h"

#include <onnx/defs/schema.h>

#include <algorithm>
#include <set>

#include "engine/onnx/lower.h"
#include "engine/onnx/proto.h"

namespace monet {

namespace {

bool has_float_output(const ::onnx::OpSchema& schema) {
  constexpr const char* kFloats[] = {"tensor(float)", "tensor(double)", "tensor(float16)", "tensor(bfloat16)"};
  for (const auto& output : schema.outputs())
    for (const ::onnx::DataType& type : output.GetTypes())
      for (const char* f : kFloats)
        if (*type == f) return true;
  return false;
}

}  // namespace

std::vector<OperatorInfo> onnx_operators() {
  std::set<std::string> names;
  for (const ::onnx::OpSchema& schema : ::onnx::OpSchemaRegistry::get_all_schemas_with_history())
    if (schema.domain().empty()) names.insert(schema.Name());
  std::vector<OperatorInfo> all;
  for (const std::string& name : names) {
    const ::onnx::OpSchema* schema = ::onnx::OpSchemaRegistry::Schema(name, kOpset, "");
    if (!schema || schema->Deprecated()) continue;
    OperatorInfo info{.name = name, .since = schema->SinceVersion()};
    info.has_body = schema->HasFunction() || schema->HasContextDependentFunction();
    info.has_float_output = has_float_output(*schema);
    if (const ::onnx::FunctionProto* body = schema->HasFunction() ? schema->GetFunction(kOpset, false) : nullptr) {
      std::set<std::string> operators;
      for (const auto& n : body->node()) operators.insert(n.op_type());
      info.body.assign(operators.begin(), operators.end());
    }
    if (const char* condition = lowering_condition(name)) info.lowered = condition;
    all.push_back(std::move(info));
  }
  return all;
}

}  // namespace monet
