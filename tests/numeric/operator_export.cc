// Test models of libonnx-testdata -> training graphs of loss = sum over all float outputs of sum(output * random), for
// differences.test.mjs.
//   operator_export DATA_FOLDER OUT_FOLDER
// Writes one graph per model and precision (float32, and float64 where ONNX allows the operators in it) and prints a
// JSON array with an entry for every model: what became of it, its stored values, the names of gradients and outputs.
//
// The models get their tensors as graph inputs. Here the float ones become initializers, which makes them parameters
// (or buffers and constants) by the importer's own rules. Integer ones stay inputs where the model can be trained so;
// else they become initializers too, for what needs them known (a Reshape's target).
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "engine/onnx/model.h"
#include "engine/onnx/proto.h"
#include "engine/training/path.h"
#include "engine/training/training_graph.h"

using namespace monet;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

std::string base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t v = 0;
    for (size_t j = 0; j < 3; ++j) v = v << 8 | (i + j < bytes.size() ? static_cast<uint8_t>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) out += i + j <= bytes.size() ? kDigits[v >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

Json packed(const ::onnx::TensorProto& t) {
  return {{"type", name(dtype_of(t.data_type()))}, {"shape", shape_of(t)}, {"data", base64(t.raw_data())}};
}

// A stored value with its elements in raw_data; nothing when the file holds no tensor (a sequence, an optional).
bool load(const fs::path& path, ::onnx::TensorProto& tensor) {
  ::onnx::GraphProto holder;
  if (!fs::exists(path) || !holder.add_initializer()->ParseFromString(read(path))) return false;
  if (bits(dtype_of(holder.initializer(0).data_type())) == 0) return false;
  use_raw_data(holder);
  tensor = holder.initializer(0);
  return true;
}

// ---- Another float type for a whole forward graph -------------------------------------------------------------------

double element(const std::string& data, size_t i, DType type) {
  auto as = [&](auto v) {
    std::memcpy(&v, data.data() + i * sizeof v, sizeof v);
    return v;
  };
  if (type == DType::float64) return as(double{});
  if (type == DType::float32) return static_cast<double>(as(float{}));
  uint16_t half = as(uint16_t{});
  if (type == DType::bfloat16) {
    uint32_t wide = uint32_t{half} << 16;
    float v;
    std::memcpy(&v, &wide, sizeof v);
    return static_cast<double>(v);
  }
  int exponent = half >> 10 & 31;
  double fraction = half & 1023, sign = half >> 15 ? -1 : 1;
  if (exponent == 31) return fraction > 0 ? NAN : sign * INFINITY;
  return sign * (exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24));
}

std::string converted(const std::string& data, DType from, DType to) {
  std::string out;
  for (size_t i = 0; i < data.size() / static_cast<size_t>(bits(from) / 8); ++i) {
    double v = element(data, i, from);
    float narrow = static_cast<float>(v);
    out.append(to == DType::float64 ? reinterpret_cast<char*>(&v) : reinterpret_cast<char*>(&narrow),
               to == DType::float64 ? sizeof v : sizeof narrow);
  }
  return out;
}

bool wide_float(DType t) { return is_float(t) && bits(t) >= 16; }

// Attributes that name an element type.
bool names_type(const std::string& attribute) {
  return attribute == "to" || attribute == "dtype" || attribute == "output_datatype";
}

bool has_subgraphs(const Graph& graph) {
  for (const Node& node : graph.nodes)
    for (const Attribute& a : node.attributes)
      if (std::holds_alternative<OpaqueAttribute>(a.value)) return true;
  return false;
}

// Requires no subgraphs: those name types that this does not see.
void use_floats_of(Graph& graph, DType to) {
  for (Tensor& t : graph.tensors) {
    if (!wide_float(t.dtype) || t.dtype == to) continue;
    t.data = converted(t.data, t.dtype, to);
    t.dtype = to;
  }
  for (Node& node : graph.nodes)
    for (Attribute& a : node.attributes) {
      if (auto* tensor = std::get_if<TensorAttribute>(&a.value); tensor && wide_float(tensor->dtype)) {
        tensor->data = converted(tensor->data, tensor->dtype, to);
        tensor->dtype = to;
      }
      auto* type = std::get_if<int64_t>(&a.value);
      if (type && names_type(a.name) && wide_float(static_cast<DType>(*type))) *type = static_cast<int64_t>(to);
    }
}

// ---- One model ------------------------------------------------------------------------------------------------------

struct Case {
  ::onnx::ModelProto model;
  std::map<std::string, ::onnx::TensorProto> inputs;  // stored values by input name
};

// The model with its inputs as initializers.
std::string with_initializers(const Case& c, bool integers_too) {
  ::onnx::ModelProto model = c.model;
  auto& inputs = *model.mutable_graph()->mutable_input();
  google::protobuf::RepeatedPtrField<::onnx::ValueInfoProto> kept;
  for (auto& v : inputs) {
    auto stored = c.inputs.find(v.name());
    bool moves = stored != c.inputs.end() && (integers_too || is_float(dtype_of(stored->second.data_type())));
    if (moves) {
      auto* t = model.mutable_graph()->add_initializer();
      *t = stored->second;
      t->set_name(v.name());
    } else {
      if (stored != c.inputs.end())
        set_tensor_type(v.mutable_type(), stored->second.data_type(), shape_of(stored->second));
      kept.Add()->Swap(&v);
    }
  }
  inputs.Swap(&kept);
  return model.SerializeAsString();
}

struct LossTerm {
  TensorId output, random;
};

// loss = sum over outputs of sum(output * random), random being graph inputs.
std::vector<LossTerm> add_random_loss(Graph& graph) {
  std::vector<LossTerm> terms;
  std::vector<TensorId> sums;
  auto emit = [&](const char* op, std::vector<TensorId> inputs, const Shape& shape, std::vector<Attribute> attributes) {
    std::string wish = std::string("loss_") + op + std::to_string(graph.nodes.size());
    TensorId out = graph.add(Tensor{.name = wish, .dtype = graph.tensors[inputs[0]].dtype, .shape = shape});
    graph.add(Node{.op = op, .inputs = std::move(inputs), .outputs = {out}, .attributes = std::move(attributes)});
    return out;
  };
  for (TensorId output : graph.outputs) {
    Tensor t = graph.tensors[output];
    if (!is_float(t.dtype)) continue;
    TensorId random = graph.add(Tensor{.name = "loss_random_" + std::to_string(terms.size()),
                                       .dtype = t.dtype,
                                       .shape = t.shape,
                                       .kind = TensorKind::input});
    graph.inputs.push_back(random);
    terms.push_back({output, random});
    sums.push_back(emit("ReduceSum", {emit("Mul", {output, random}, t.shape, {})}, {}, {{"keepdims", int64_t{0}}}));
  }
  TensorId total = sums[0];
  for (size_t i = 1; i < sums.size(); ++i) total = emit("Add", {total, sums[i]}, {}, {});
  graph.outputs = {total};
  return terms;
}

// Only forward, loss and gradients are wanted here.
void drop_updates(Graph& graph) {
  while (!graph.nodes.empty() && graph.nodes.back().phase == Phase::optimizer) {
    for (TensorId t : graph.nodes.back().outputs) graph.tensors[t].producer = kNone;
    graph.nodes.pop_back();
  }
  auto given_for_updates = [&](TensorId t) {
    return graph.tensors[t].kind == TensorKind::state || graph.tensors[t].kind == TensorKind::scalar;
  };
  graph.inputs.erase(std::remove_if(graph.inputs.begin(), graph.inputs.end(), given_for_updates), graph.inputs.end());
}

// Whether the forward nodes were exported for inference.
bool in_inference(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) {
    return n.op == "BatchNormalization" && attribute(n, "training_mode", int64_t{0}) == 0;
  });
}

// Operators that ONNX Runtime 1.24 has kernels of up to opset 21 only, although opset 22 changed no more than types.
bool lacks_newest_kernel(const Graph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(), [](const Node& n) { return n.op == "RoiAlign"; });
}

// The training graph in one float type, written to `file`; fills `entry` with names.
void write_graph(Graph graph, DType type, const fs::path& file, Json& entry) {
  if (type != DType::undefined) use_floats_of(graph, type);
  TrainingOptions options;
  options.loss = Loss::sum;
  options.frozen_batch_norm = in_inference(graph);
  std::vector<TensorId> trained = parameters(graph), outputs = graph.outputs;
  std::vector<bool> reached = reached_forward(graph, trained);
  std::vector<LossTerm> terms = add_random_loss(graph);
  TrainingGraph training = build_training_graph(graph, options);
  drop_updates(training.graph);
  training.graph.outputs.clear();
  entry["outputs"] = Json::array();
  for (const LossTerm& term : terms) {
    const Tensor& output = training.graph.tensors[term.output];
    entry["outputs"].push_back({{"name", output.name},
                                {"random", training.graph.tensors[term.random].name},
                                {"shape", output.shape},
                                {"reached", static_cast<bool>(reached[term.output])},
                                {"index", std::find(outputs.begin(), outputs.end(), term.output) - outputs.begin()}});
    training.graph.outputs.push_back(term.output);
  }
  entry["gradients"] = Json::object();
  for (size_t i = 0; i < training.parameters.size(); ++i) {
    entry["gradients"][training.graph.tensors[training.parameters[i]].name] =
        training.graph.tensors[training.gradients[i]].name;
    training.graph.outputs.push_back(training.gradients[i]);
  }
  if (lacks_newest_kernel(graph)) training.graph.opset = 21;
  std::ofstream(file, std::ios::binary) << export_model(training.graph);
}

Json problems_of(const Refusal& refusal) {
  Json all = Json::array();
  for (const Diagnostic& d : refusal.problems()) all.push_back({{"code", d.code}, {"message", d.message}});
  return all;
}

// Why no gradient can be asked for, or nothing.
std::string no_path(const Graph& graph) {
  std::vector<TensorId> floats;
  for (size_t t = 0; t < graph.tensors.size(); ++t)
    if (graph.tensors[t].kind == TensorKind::parameter && is_float(graph.tensors[t].dtype))
      floats.push_back(static_cast<TensorId>(t));
  if (floats.empty()) return "no float input";
  auto is_float_output = [&](TensorId t) { return is_float(graph.tensors[t].dtype); };
  if (std::none_of(graph.outputs.begin(), graph.outputs.end(), is_float_output)) return "no float output";
  std::vector<bool> reached = reached_forward(graph, floats);
  if (std::none_of(graph.outputs.begin(), graph.outputs.end(), [&](TensorId t) { return reached[t]; }))
    return "no gradient by definition";
  return "";
}

// False when the model could not be trained as given; `entry` then says why.
bool attempt(const Case& c, bool integers_too, const fs::path& out, Json& entry) {
  Graph graph;
  try {
    std::string bytes = with_initializers(c, integers_too);
    MemorySource source(bytes);
    graph = Model::open(source, entry["name"]).bind({.has_rule = has_gradient_rule}).graph;
  } catch (const Refusal& refusal) {
    entry["status"] = "not imported";
    entry["problems"] = problems_of(refusal);
    return false;
  }
  entry["status"] = "no gradient";
  entry["reason"] = no_path(graph);
  if (entry["reason"] != "") return true;
  entry.erase("reason");
  std::string stem = out / entry["name"].get<std::string>();
  try {
    write_graph(graph, has_subgraphs(graph) ? DType::undefined : DType::float32, stem + ".float32.onnx", entry);
  } catch (const Refusal& refusal) {
    entry["status"] = "refused";
    entry["problems"] = problems_of(refusal);
    return false;
  }
  entry["status"] = "exported";
  entry["float32"] = stem + ".float32.onnx";
  if (has_subgraphs(graph)) {
    entry["no_float64"] = "it has subgraphs";
    return true;
  }
  try {
    Json again;
    write_graph(graph, DType::float64, stem + ".float64.onnx", again);
    entry["float64"] = stem + ".float64.onnx";
  } catch (const Refusal& refusal) {
    entry["no_float64"] = refusal.problems()[0].message;
  }
  return true;
}

Json run(const fs::path& folder, const fs::path& out) {
  Json entry = {{"name", folder.filename().string()}, {"operators", Json::array()}};
  Case c;
  if (!c.model.ParseFromString(read(folder / "model.onnx")))
    throw std::runtime_error("not a model: " + folder.string());
  const ::onnx::GraphProto& graph = c.model.graph();
  std::set<std::string> operators;
  for (const auto& n : graph.node())
    if (operators.insert(n.op_type()).second) entry["operators"].push_back(n.op_type());
  if (graph.node_size() == 1)
    for (int i = 0; i < graph.node(0).input_size(); ++i) entry["positions"][graph.node(0).input(i)] = i;

  std::set<std::string> initializers;
  for (const auto& t : graph.initializer()) initializers.insert(t.name());
  fs::path data = folder / "test_data_set_0";
  int at = 0;
  for (const auto& v : graph.input()) {
    if (initializers.count(v.name()) && !fs::exists(data / ("input_" + std::to_string(at) + ".pb"))) continue;
    ::onnx::TensorProto t;
    if (v.type().has_tensor_type() && load(data / ("input_" + std::to_string(at) + ".pb"), t)) c.inputs[v.name()] = t;
    ++at;
  }
  Json problems;
  if (!attempt(c, false, out, entry)) attempt(c, true, out, entry);
  if (entry["status"] != "exported") return entry;
  entry.erase("problems");
  ::onnx::GraphProto stored = graph;
  use_raw_data(stored);
  for (const auto& t : stored.initializer()) entry["values"][t.name()] = packed(t);
  for (const auto& n : stored.node())
    if (n.op_type() == "Constant" && n.attribute_size() == 1 && n.attribute(0).has_t())
      entry["values"][n.output(0)] = packed(n.attribute(0).t());
  for (const auto& [name, t] : c.inputs) entry["values"][name] = packed(t);
  for (int i = 0; i < graph.output_size(); ++i) {
    ::onnx::TensorProto t;
    bool known = load(data / ("output_" + std::to_string(i) + ".pb"), t);
    entry["expected"].push_back(known ? packed(t) : Json());
  }
  return entry;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) {
    std::cerr << "usage: operator_export DATA_FOLDER OUT_FOLDER\n";
    return 2;
  }
  std::vector<fs::path> folders;
  for (const auto& entry : fs::recursive_directory_iterator(arguments[1]))
    if (entry.path().filename() == "model.onnx") folders.push_back(entry.path().parent_path());
  std::sort(folders.begin(), folders.end());
  Json all = Json::array();
  for (const fs::path& folder : folders) all.push_back(run(folder, arguments[2]));
  std::cout << all.dump() << "\n";
}
