// What the files of this room share about ONNX's protobufs: element types and payloads of tensors, labels for messages.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/ir/diagnostic.h"
#include "engine/ir/graph.h"
#include "engine/ir/names.h"

namespace onnx {
class OpSchema;
}

namespace monet {

// The newest opset that ONNX 1.17 has schemas for, and that everything is converted to.
constexpr int kOpset = 22;
// The IR version of what we write: the first one with metadata_props on nodes.
constexpr int kIrVersion = 10;

Shape shape_of(const ::onnx::TensorProto& tensor);
DType dtype_of(int32_t data_type);  // undefined when ONNX does not define the value

// False when only name, dims and type are there, and dims say that there should be more.
bool has_payload(const ::onnx::TensorProto& tensor);

// Moves values from typed fields to raw_data, where this room reads them: ONNX's converter and function bodies make
// constants with typed fields.
void use_raw_data(::onnx::GraphProto& graph);

// A tensor type with these dimensions.
void set_tensor_type(::onnx::TypeProto* type, int32_t data_type, const Shape& shape);

// `#12 Conv "conv1"`: what people call a node of a file; the first output stands in for a missing name.
std::string describe(const ::onnx::NodeProto& node, int index);
// The node's name, else its first output's: what Diagnostic::node holds.
std::string name_of(const ::onnx::NodeProto& node);

const ::onnx::AttributeProto* find_attribute(const ::onnx::NodeProto& node, const std::string& name);

// Writes down the defaults that the schema gives absent attributes: function bodies refer to them.
void add_default_attributes(const ::onnx::OpSchema& schema, ::onnx::NodeProto& node);

// Calls `visit` for every name that the node reads: its inputs, and what its subgraphs take from outside. Absent
// (empty) ones are left out. A name can come several times.
void for_each_read(const ::onnx::NodeProto& node, const std::function<void(const std::string&)>& visit);

// Adds every name of a node or tensor in a graph and its subgraphs.
void add_names(const ::onnx::GraphProto& graph, Names& names);

// Metadata keys that export writes and import reads; every other key is dropped on import.
constexpr const char* kMetadataPrefix = "monet.";
std::string metadata(const ::onnx::NodeProto& node, const std::string& key);        // "" when absent
std::string metadata(const ::onnx::ValueInfoProto& value, const std::string& key);  // "" when absent

}  // namespace monet
