// Every model of Debian's libonnx-testdata imports with the output shapes stored beside it, or is refused for a reason
// that docs/operators.md names.
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "engine/onnx/model.h"
#include "engine/onnx/proto.h"
#include "engine/training/coverage.h"
#include "engine/training/training_graph.h"

namespace monet {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

// A stored value; nothing when the file is absent or holds a sequence or an optional.
bool load(const fs::path& path, ::onnx::TensorProto& tensor) {
  return fs::exists(path) && tensor.ParseFromString(read(path)) &&
         ::onnx::TensorProto::DataType_IsValid(tensor.data_type()) && tensor.data_type() != 0;
}

// The model, its integer inputs being initializers: shapes follow from a Reshape's target, a Tile's repeats, ...
std::string with_known_integers(const fs::path& folder, ::onnx::ModelProto model) {
  ::onnx::GraphProto& graph = *model.mutable_graph();
  std::set<std::string> stored;
  for (const auto& t : graph.initializer()) stored.insert(t.name());
  google::protobuf::RepeatedPtrField<::onnx::ValueInfoProto> inputs;
  int at = 0;
  for (auto& v : *graph.mutable_input()) {
    fs::path file = folder / "test_data_set_0" / ("input_" + std::to_string(at) + ".pb");
    ::onnx::TensorProto value;
    bool given = !stored.count(v.name()) || fs::exists(file);
    if (given) ++at;
    if (given && v.type().has_tensor_type() && load(file, value)) {
      DType type = dtype_of(value.data_type());
      // A float that is one number or a few configures an operator (a Resize's scales).
      if (type == DType::int64 || type == DType::int32 || (is_float(type) && elements(shape_of(value)) <= 8)) {
        value.set_name(v.name());
        *graph.add_initializer() = value;
        continue;
      }
      set_tensor_type(v.mutable_type(), value.data_type(), shape_of(value));
    }
    inputs.Add()->Swap(&v);
  }
  graph.mutable_input()->Swap(&inputs);
  return model.SerializeAsString();
}

TEST(TestData, OutputShapesAreTheStoredOnesOrTheTableSaysWhyNot) {
  const fs::path top = "/usr/share/libonnx-testdata/data";
  if (!fs::exists(top)) GTEST_SKIP() << "libonnx-testdata is not installed";
  std::vector<fs::path> folders;
  for (const auto& entry : fs::recursive_directory_iterator(top))
    if (entry.path().filename() == "model.onnx") folders.push_back(entry.path().parent_path());
  std::sort(folders.begin(), folders.end());
  std::set<std::pair<std::string, std::string>> named, met;
  for (const ImportRefusal& r : import_refusals()) named.insert({r.code, r.op});

  int imported = 0, compared = 0, without = 0;
  std::map<std::string, int> refused;
  for (const fs::path& folder : folders) {
    SCOPED_TRACE(folder.filename().string());
    ::onnx::ModelProto proto;
    ASSERT_TRUE(proto.ParseFromString(read(folder / "model.onnx")));
    std::string bytes = with_known_integers(folder, proto);
    MemorySource source(bytes);
    Graph graph;
    try {
      graph = Model::open(source, "model.onnx").bind({.has_rule = has_gradient_rule}).graph;
    } catch (const Refusal& refusal) {
      for (const Diagnostic& d : refusal.problems()) {
        // "Unique "y" makes ...": the operator comes first; inputs that are no tensors have none.
        std::string op = d.message.substr(0, d.message.find(' '));
        if (d.node.empty()) op = "";
        EXPECT_TRUE(named.count({d.code, op})) << d.code << " " << op << ": " << d.message;
        met.insert({d.code, op});
      }
      ++refused[refusal.problems()[0].code];
      continue;
    }
    ++imported;
    ASSERT_EQ(graph.outputs.size(), static_cast<size_t>(proto.graph().output_size()));
    for (size_t i = 0; i < graph.outputs.size(); ++i) {
      ::onnx::TensorProto stored;
      if (!load(folder / "test_data_set_0" / ("output_" + std::to_string(i) + ".pb"), stored)) {
        ++without;
        continue;
      }
      ++compared;
      EXPECT_EQ(graph.tensors[graph.outputs[i]].shape, shape_of(stored)) << graph.tensors[graph.outputs[i]].name;
      DType type = graph.tensors[graph.outputs[i]].dtype;  // bfloat16 is stored as the words that hold it
      EXPECT_EQ(type == DType::bfloat16 ? DType::uint16 : type, dtype_of(stored.data_type()));
    }
  }
  std::printf("[ MEASURED ] shapes of Debian's test data: %zu models, %d imported, %d outputs compared, %d not stored",
              folders.size(), imported, compared, without);
  for (const auto& [code, count] : refused) std::printf(", %d refused: %s", count, code.c_str());
  std::printf("\n");
  EXPECT_GT(folders.size(), 1000u);
  EXPECT_EQ(met, named);  // the table names nothing that does not happen
}

}  // namespace
}  // namespace monet
