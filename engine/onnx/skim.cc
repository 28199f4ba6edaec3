#include "engine/onnx/skim.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string_view>

namespace monet {

namespace {

constexpr uint64_t kMaxStructure = 64 << 20;  // bytes without payloads; a 6,623-node Swin has 1.5 MB
constexpr int kMaxNesting = 90;               // messages; protobuf's own parser stops at 100
constexpr int64_t kKeptBytes = 1024;          // of a constant of any type
constexpr int64_t kKeptWeightBytes = 64;      // of a float initializer: scalars and scales, not weights
constexpr int64_t kKeptIntegers = 4096;       // elements of an integer tensor
constexpr size_t kMaxSpans = 4096;            // pieces that a kept payload may come in (unpacked elements)

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// What to do with a field: a message type's table lists those that are not dropped.
struct Message;
struct Field {
  int number;
  const char* name;
  enum Action { keep, message, tensor, metadata } action;
  const Message* type = nullptr;
};
struct Message {
  std::vector<Field> fields;
};

// Tables of onnx.proto (IR version 10). Recursive types refer to each other, hence one struct.
struct Tables {
  Message entry, dimension, shape, tensor_type, sequence, map, opaque, type, value_info, sparse, attribute, node, graph,
      opset, function, model;
  Tables() {
    entry.fields = {{1, "key", Field::keep}, {2, "value", Field::keep}};
    dimension.fields = {{1, "dim_value", Field::keep}, {2, "dim_param", Field::keep}};
    shape.fields = {{1, "dim", Field::message, &dimension}};
    tensor_type.fields = {{1, "elem_type", Field::keep}, {2, "shape", Field::message, &shape}};
    sequence.fields = {{1, "elem_type", Field::message, &type}};
    map.fields = {{1, "key_type", Field::keep}, {2, "value_type", Field::message, &type}};
    opaque.fields = {{1, "domain", Field::keep}, {2, "name", Field::keep}};
    type.fields = {{1, "tensor_type", Field::message, &tensor_type},
                   {4, "sequence_type", Field::message, &sequence},
                   {5, "map_type", Field::message, &map},
                   {7, "opaque_type", Field::message, &opaque},
                   {8, "sparse_tensor_type", Field::message, &tensor_type},
                   {9, "optional_type", Field::message, &sequence}};
    value_info.fields = {
        {1, "name", Field::keep}, {2, "type", Field::message, &type}, {4, "metadata_props", Field::metadata, &entry}};
    sparse.fields = {{1, "values", Field::tensor}, {2, "indices", Field::tensor}, {3, "dims", Field::keep}};
    attribute.fields = {{1, "name", Field::keep},
                        {2, "f", Field::keep},
                        {3, "i", Field::keep},
                        {4, "s", Field::keep},
                        {5, "t", Field::tensor},
                        {6, "g", Field::message, &graph},
                        {7, "floats", Field::keep},
                        {8, "ints", Field::keep},
                        {9, "strings", Field::keep},
                        {10, "tensors", Field::tensor},
                        {11, "graphs", Field::message, &graph},
                        {14, "tp", Field::message, &type},
                        {15, "type_protos", Field::message, &type},
                        {20, "type", Field::keep},
                        {21, "ref_attr_name", Field::keep},
                        {22, "sparse_tensor", Field::message, &sparse},
                        {23, "sparse_tensors", Field::message, &sparse}};
    node.fields = {{1, "input", Field::keep},
                   {2, "output", Field::keep},
                   {3, "name", Field::keep},
                   {4, "op_type", Field::keep},
                   {5, "attribute", Field::message, &attribute},
                   {7, "domain", Field::keep},
                   {8, "overload", Field::keep},
                   {9, "metadata_props", Field::metadata, &entry}};
    graph.fields = {{1, "node", Field::message, &node},
                    {2, "name", Field::keep},
                    {5, "initializer", Field::tensor},
                    {11, "input", Field::message, &value_info},
                    {12, "output", Field::message, &value_info},
                    {13, "value_info", Field::message, &value_info},
                    {15, "sparse_initializer", Field::message, &sparse}};
    opset.fields = {{1, "domain", Field::keep}, {2, "version", Field::keep}};
    function.fields = {{1, "name", Field::keep},
                       {4, "input", Field::keep},
                       {5, "output", Field::keep},
                       {6, "attribute", Field::keep},
                       {7, "node", Field::message, &node},
                       {9, "opset_import", Field::message, &opset},
                       {10, "domain", Field::keep},
                       {11, "attribute_proto", Field::message, &attribute},
                       {12, "value_info", Field::message, &value_info},
                       {13, "overload", Field::keep}};
    model.fields = {{1, "ir_version", Field::keep},
                    {2, "producer_name", Field::keep},
                    {3, "producer_version", Field::keep},
                    {7, "graph", Field::message, &graph},
                    {8, "opset_import", Field::message, &opset},
                    {14, "metadata_props", Field::metadata, &entry},
                    {25, "functions", Field::message, &function}};
  }
};

void append_varint(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

void append_bytes_field(std::string& out, int number, const std::string& bytes) {
  append_varint(out, static_cast<uint64_t>(number) << 3 | kBytes);
  append_varint(out, bytes.size());
  out += bytes;
}

// A stretch of the file that holds (part of) a payload.
struct Span {
  uint64_t offset = 0, size = 0;
  WireType wire = kBytes;
};

// The fields of a TensorProto, payloads as the places where they stand.
struct RawTensor {
  std::vector<int64_t> dims;
  uint64_t data_type = 0;
  std::string name;
  bool has_name = false, has_segment = false, external = false;
  struct Payload {
    std::vector<Span> spans;
    uint64_t bytes = 0;
    bool overflow = false;  // came in too many pieces to keep
  };
  Payload float_data, int32_data, string_data, int64_data, raw_data, double_data, uint64_data;
  bool has_raw = false;
};

class Skimmer {
 public:
  Skimmer(BlockCache& file, const std::string& name) : file_(file), name_(name) {}

  std::string run() {
    std::string out;
    transcribe(0, file_.size(), tables_.model, out);
    if (!problems_.empty()) throw Refusal(std::move(problems_));
    return out;
  }

 private:
  [[noreturn]] void fail(const std::string& code, const std::string& what) {
    throw Refusal({code, name_ + " " + what, "", "", "export or download the file again"});
  }

  // "graph.node[3].attribute[0]"
  std::string where() const {
    std::string text;
    for (const auto& step : path_) {
      if (!text.empty()) text += '.';
      text.append(step.first).append("[").append(std::to_string(step.second)).append("]");
    }
    return text.empty() ? "the model" : text;
  }

  uint64_t varint(uint64_t& at, uint64_t end) {
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at >= end) ends_early(at);
      uint8_t b = file_.byte(at++);
      if (shift < 64) value |= static_cast<uint64_t>(b & 0x7f) << shift;
      if (!(b & 0x80)) return value;
    }
    fail("corrupt", "is damaged: a number in " + where() + " at byte " + std::to_string(at) + " has no end");
  }

  [[noreturn]] void ends_early(uint64_t at) {
    if (at >= file_.size())
      fail("truncated", "ends in the middle of " + where() + " at byte " + std::to_string(file_.size()));
    fail("corrupt", "is damaged: " + where() + " is shorter than its parts, at byte " + std::to_string(at));
  }

  // Reads a field's tag and finds where its value ends; `at` is left at the start of the value (for kBytes: after the
  // length).
  struct Tag {
    int number;
    WireType wire;
    uint64_t value_end;
  };
  Tag tag(uint64_t& at, uint64_t end) {
    uint64_t start = at, key = varint(at, end);
    uint64_t number = key >> 3, wire = key & 7;
    if (number == 0 || number > 536870911 ||
        (wire != kVarint && wire != kFixed64 && wire != kBytes && wire != kFixed32))
      fail(path_.empty() ? "not-onnx" : "corrupt",
           path_.empty() ? "is not an ONNX model: no protobuf field at byte " + std::to_string(start)
                         : "is damaged: no protobuf field at byte " + std::to_string(start) + " in " + where());
    uint64_t size = wire == kFixed64 ? 8 : wire == kFixed32 ? 4 : 0;
    if (wire == kBytes) size = varint(at, end);
    if (size > end - at) {
      if (end == file_.size() || size > file_.size() - at)
        fail("truncated", "ends in the middle of " + field_name(static_cast<int>(number)) + " at byte " +
                              std::to_string(file_.size()) + ": " + std::to_string(size) +
                              " bytes should follow byte " + std::to_string(at));
      ends_early(at);
    }
    uint64_t value_end = at + size;
    if (wire == kVarint) {
      uint64_t skip = at;
      varint(skip, end);
      value_end = skip;
    }
    return {static_cast<int>(number), static_cast<WireType>(wire), value_end};
  }

  std::string field_name(int number) const {
    if (current_)
      for (const Field& f : current_->fields)
        if (f.number == number) return (path_.empty() ? "" : where() + ".") + f.name;
    return "field " + std::to_string(number) + " of " + where();
  }

  void account(uint64_t bytes) {
    kept_ += bytes;
    if (kept_ > kMaxStructure)
      fail("too-large", "has more than " + std::to_string(kMaxStructure >> 20) +
                            " MiB of structure (names, nodes, attributes) beside its weights");
  }

  void transcribe(uint64_t at, uint64_t end, const Message& type, std::string& out) {
    if (++depth_ > kMaxNesting) fail("corrupt", "nests its messages deeper than " + std::to_string(kMaxNesting));
    std::vector<int> counts(type.fields.size(), 0);
    while (at < end) {
      current_ = &type;
      uint64_t start = at;
      Tag t = tag(at, end);
      auto field =
          std::find_if(type.fields.begin(), type.fields.end(), [&](const Field& f) { return f.number == t.number; });
      if (field == type.fields.end()) {
        at = t.value_end;
        continue;
      }
      if (field->action != Field::keep && t.wire != kBytes)
        fail("corrupt", "is damaged: " + field_name(t.number) + " is no message, at byte " + std::to_string(start));
      if (field->action == Field::keep) {
        account(t.value_end - start);
        out += file_.read(start, static_cast<size_t>(t.value_end - start));
      } else {
        path_.emplace_back(field->name, counts[field - type.fields.begin()]++);
        std::string inner;
        if (field->action == Field::tensor) {
          inner = tensor(at, t.value_end);
        } else {
          transcribe(at, t.value_end, *field->type, inner);
        }
        path_.pop_back();
        if (field->action != Field::metadata || ours(inner)) {
          account(8);  // tag and length
          append_bytes_field(out, t.number, inner);
        }
      }
      at = t.value_end;
    }
    --depth_;
  }

  static bool ours(const std::string& entry) {
    ::onnx::StringStringEntryProto parsed;
    return parsed.ParseFromString(entry) && parsed.key().rfind(kMetadataPrefix, 0) == 0;
  }

  void note(RawTensor::Payload& payload, const Tag& t, uint64_t at) {
    payload.bytes += t.value_end - at;
    if (payload.spans.size() < kMaxSpans) {
      payload.spans.push_back({at, t.value_end - at, t.wire});
    } else {
      payload.overflow = true;
    }
  }

  // A TensorProto, payload-free unless it is small.
  std::string tensor(uint64_t at, uint64_t end) {
    RawTensor raw;
    current_ = nullptr;
    while (at < end) {
      Tag t = tag(at, end);
      uint64_t value = at;
      switch (t.number) {
        case 1:  // dims, packed or not
          while (value < t.value_end) {
            account(8);
            raw.dims.push_back(static_cast<int64_t>(varint(value, t.value_end)));
          }
          break;
        case 2:
          if (t.wire == kVarint) raw.data_type = varint(value, t.value_end);
          break;
        case 3:
          raw.has_segment = true;
          break;
        case 4:
          note(raw.float_data, t, at);
          break;
        case 5:
          note(raw.int32_data, t, at);
          break;
        case 6:
          note(raw.string_data, t, at);
          break;
        case 7:
          note(raw.int64_data, t, at);
          break;
        case 8:
          account(t.value_end - at);
          raw.name = file_.read(at, static_cast<size_t>(t.value_end - at));
          raw.has_name = true;
          break;
        case 9:
          note(raw.raw_data, t, at);
          raw.has_raw = true;
          break;
        case 10:
          note(raw.double_data, t, at);
          break;
        case 11:
          note(raw.uint64_data, t, at);
          break;
        case 14:
          if (t.wire == kVarint) raw.external = varint(value, t.value_end) == 1;
          break;
        default:
          break;  // doc_string, external_data, metadata_props
      }
      at = t.value_end;
    }
    return encode(raw);
  }

  void problem(const RawTensor& raw, const std::string& code, const std::string& what) {
    std::string title = raw.name.empty() ? where() : "\"" + raw.name + "\"";
    problems_.push_back({code, "tensor " + title + " " + what, "", raw.name, "export the model again"});
  }

  std::string encode(const RawTensor& raw) {
    constexpr size_t kMaxRank = 64;  // no operator goes beyond 8
    DType dtype = raw.data_type > 255 ? DType::undefined : dtype_of(static_cast<int32_t>(raw.data_type));
    bool sane = true;
    if (dtype == DType::undefined) {
      problem(raw, "bad-tensor",
              "has element type " + std::to_string(raw.data_type) + ", which ONNX 1.17 does not have");
      sane = false;
    }
    if (raw.dims.size() > kMaxRank || std::any_of(raw.dims.begin(), raw.dims.end(), [](int64_t d) { return d < 0; })) {
      problem(raw, "bad-tensor", "has negative or more than 64 dimensions");
      sane = false;
    }
    ::onnx::TensorProto proto;
    for (int64_t d : raw.dims) proto.add_dims(d);
    proto.set_data_type(static_cast<int32_t>(dtype));
    if (raw.has_name) proto.set_name(raw.name);
    if (sane && !raw.external && !raw.has_segment) keep_values(raw, dtype, proto);
    account(proto.raw_data().size());
    return proto.SerializeAsString();
  }

  void keep_values(const RawTensor& raw, DType dtype, ::onnx::TensorProto& proto) {
    Tensor sized;
    sized.dtype = dtype;
    sized.shape = raw.dims;
    int64_t count = elements(raw.dims), size = bytes(sized);
    bool integer =
        !is_float(dtype) && dtype != DType::string && dtype != DType::complex64 && dtype != DType::complex128;
    if (dtype == DType::string) {
      keep_strings(raw, count, proto);
      return;
    }
    bool weight = is_float(dtype) && !path_.empty() && path_.back().first == std::string_view("initializer");
    if (size > (weight ? kKeptWeightBytes : kKeptBytes) && !(integer && count <= kKeptIntegers)) return;
    std::string values;
    if (raw.has_raw) {
      if (raw.raw_data.bytes == static_cast<uint64_t>(size)) values = bytes_of(raw.raw_data);
      check_size(raw, raw.raw_data.bytes, size);
    } else {
      const RawTensor::Payload* typed = payload_of(raw, dtype);
      if (!typed || typed->overflow || typed->spans.empty()) return;  // structure-only file: no values at all
      if (typed->bytes > static_cast<uint64_t>(10 * count + 10)) {    // 10: longest varint; decoding must stay small
        check_size(raw, typed->bytes, size);
        return;
      }
      values = decode(*typed, dtype);
      check_size(raw, values.size(), size);
    }
    if (values.size() == static_cast<size_t>(size)) proto.set_raw_data(values);
  }

  void check_size(const RawTensor& raw, uint64_t have, int64_t want) {
    if (have != static_cast<uint64_t>(want))
      problem(raw, "bad-tensor",
              "holds " + std::to_string(have) + " bytes of values where " + to_string(raw.dims) + " asks for " +
                  std::to_string(want));
  }

  void keep_strings(const RawTensor& raw, int64_t count, ::onnx::TensorProto& proto) {
    const auto& p = raw.string_data;
    if (p.overflow || p.bytes > static_cast<uint64_t>(kKeptBytes) || static_cast<int64_t>(p.spans.size()) != count)
      return;
    for (const Span& span : p.spans) proto.add_string_data(file_.read(span.offset, static_cast<size_t>(span.size)));
  }

  std::string bytes_of(const RawTensor::Payload& payload) {
    std::string all;
    for (const Span& span : payload.spans) all += file_.read(span.offset, static_cast<size_t>(span.size));
    return all;
  }

  static const RawTensor::Payload* payload_of(const RawTensor& raw, DType dtype) {
    switch (dtype) {
      case DType::float32:
      case DType::complex64:
        return &raw.float_data;
      case DType::float64:
      case DType::complex128:
        return &raw.double_data;
      case DType::int64:
        return &raw.int64_data;
      case DType::uint32:
      case DType::uint64:
        return &raw.uint64_data;
      default:
        return &raw.int32_data;
    }
  }

  // Elements of a typed field (packed or not) as raw_data holds them, little-endian.
  std::string decode(const RawTensor::Payload& payload, DType dtype) {
    std::string values;
    bool fixed =
        dtype == DType::float32 || dtype == DType::complex64 || dtype == DType::float64 || dtype == DType::complex128;
    if (fixed) return bytes_of(payload);
    size_t width = std::max(1, bits(dtype) / 8);  // 4-bit types: each entry of int32_data is one packed byte
    for (const Span& span : payload.spans) {
      uint64_t at = span.offset, end = span.offset + span.size;
      while (at < end) {
        uint64_t element = varint(at, end);
        values.append(reinterpret_cast<const char*>(&element), width);
      }
    }
    return values;
  }

  BlockCache& file_;
  const std::string& name_;
  const Tables tables_;
  const Message* current_ = nullptr;
  std::vector<std::pair<const char*, int>> path_;
  int depth_ = 0;
  uint64_t kept_ = 0;
  std::vector<Diagnostic> problems_;
};

// What a file that is not ONNX is, by its first bytes; empty when unknown.
std::string looks_like(const std::string& head) {
  auto starts = [&](const char* magic, size_t size, size_t at = 0) {
    return head.size() >= at + size && std::memcmp(head.data() + at, magic, size) == 0;
  };
  if (starts("\x89PNG", 4)) return "a PNG image";
  if (starts("\xff\xd8\xff", 3)) return "a JPEG image";
  if (starts("GIF8", 4)) return "a GIF image";
  if (starts("%PDF", 4)) return "a PDF document";
  if (starts("PK\x03\x04", 4)) return "a ZIP archive (PyTorch's .pt and .pth files are ZIP archives)";
  if (starts("\x1f\x8b", 2)) return "a gzip archive";
  if (starts("\x89HDF", 4)) return "an HDF5 file (Keras writes them)";
  if (starts("TFL3", 4, 4)) return "a TensorFlow Lite model";
  if (starts("ORTM", 4, 4)) return "an ONNX Runtime (.ort) model";
  if (starts("GGUF", 4)) return "a GGUF model";
  if (starts("\x80\x02", 2) || starts("\x80\x03", 2) || starts("\x80\x04", 2)) return "a Python pickle";
  if (starts("\x7f"
             "ELF",
             4))
    return "a program";
  if (starts("{\"", 2, 8) || starts("{\n", 2, 8)) return "a safetensors file: weights without a graph";
  auto textual = [](unsigned char c) {  // bytes that UTF-8 text can have
    return c >= 0x20 ? c < 0xf5 && c != 0xc0 && c != 0xc1 : std::isspace(c) != 0;
  };
  if (std::all_of(head.begin(), head.end(), textual)) return "a text file";
  return "";
}

}  // namespace

::onnx::ModelProto skim(BlockCache& file, const std::string& name) {
  const std::string hint = "choose a file that an exporter wrote as .onnx";
  if (file.size() == 0) throw Refusal({"empty-file", name + " is empty", "", "", hint});
  std::string head = file.read(0, static_cast<size_t>(std::min<uint64_t>(file.size(), 512)));
  std::string kind = looks_like(head);
  if (!kind.empty()) throw Refusal({"not-onnx", name + " is " + kind + ", not an ONNX model", "", "", hint});

  std::string bytes = Skimmer(file, name).run();
  ::onnx::ModelProto model;
  if (!model.ParseFromString(bytes))
    throw Refusal({"corrupt", name + " is damaged: its structure is not a valid protobuf message", "", "", hint});
  if (!model.has_graph()) throw Refusal({"not-onnx", name + " is not an ONNX model: it has no graph", "", "", hint});
  return model;
}

}  // namespace monet
