// Embind over analysis/, nothing else. JSON texts and byte arrays cross the border; errors come back as data
// ({"errors": [...]}), never as exceptions.
#include <emscripten/bind.h>
#include <emscripten/val.h>

#include <memory>

#include "engine/analysis/session.h"
#include "engine/report/fusion_report.h"
#include "engine/report/report.h"
#include "wasm-bindings/linear_program.h"

namespace {

using emscripten::val;
using monet::guarded;

// A JavaScript function read(offset, length) -> Uint8Array. Offsets are doubles: size_t has 32 bits here.
class ScriptSource : public monet::ByteSource {
 public:
  ScriptSource(double size, val read) : size_(static_cast<uint64_t>(size)), read_(std::move(read)) {}
  uint64_t size() const override { return size_; }
  void read(uint64_t offset, size_t count, char* to) override {
    val bytes = read_(static_cast<double>(offset), static_cast<double>(count));
    if (bytes.isNull() || bytes.isUndefined() || bytes["length"].as<size_t>() != count)
      throw monet::Refusal({"unreadable", "the file could not be read at byte " + std::to_string(offset), "", "",
                            "it may have changed or moved since it was opened: open it again"});
    val(emscripten::typed_memory_view(count, reinterpret_cast<uint8_t*>(to))).call<void>("set", bytes);
  }

 private:
  uint64_t size_;
  val read_;
};

val bytes_to_script(const std::string& bytes) {
  // A copy: the view is into the heap, which moves when it grows.
  return val::global("Uint8Array")
      .new_(emscripten::typed_memory_view(bytes.size(), reinterpret_cast<const uint8_t*>(bytes.data())));
}

// A search for fused groups: step() while there is work, then program() to solve elsewhere and answer(), until there is
// none. Its session must be open as long as it is used.
class Fusion {
 public:
  explicit Fusion(std::unique_ptr<monet::FusionRun> run) : run_(std::move(run)) {}

  // {"more": true, "done": 0.3}
  std::string step() {
    return guarded([&] {
      bool more = run_->step();
      return monet::to_bytes({{"more", more}, {"done", run_->done()}});
    });
  }
  // {program, start, gap, nodes, maxGroup}, or undefined when all strategies are done.
  val program() {
    const monet::LinearProgram* program = run_->program();
    if (!program) return val::undefined();
    val object = val::object();
    object.set("program", to_script(*program));
    object.set("start", monet::array_to_script("Float64Array", run_->start()));
    object.set("gap", run_->limits().gap);
    object.set("nodes", static_cast<double>(run_->limits().most_nodes));
    object.set("maxGroup", run_->most_units());
    return object;
  }
  int strategy() const { return static_cast<int>(run_->strategies()); }
  std::string incumbent(val solution) {
    return guarded([&] {
      run_->incumbent(monet::solution_from_script(solution));
      return std::string();
    });
  }
  std::string answer(val solution) {
    return guarded([&] {
      run_->answer(monet::solution_from_script(solution));
      return std::string();
    });
  }
  std::string stop() {
    return guarded([&] {
      run_->stop();
      return std::string();
    });
  }
  std::string report() {
    return guarded([&] { return monet::to_bytes(run_->report()); });
  }

 private:
  std::unique_ptr<monet::FusionRun> run_;
};

class Session {
 public:
  std::string open(std::string name, double size, val read) {
    session_.reset();
    return guarded([&] {
      ScriptSource source(size, std::move(read));
      session_ = std::make_unique<monet::Session>(source, std::move(name));
      const monet::Model& file = session_->file();
      return monet::to_bytes({{"model", {{"name", file.name()}, {"opset", file.opset()}, {"nodes", file.node_count()}}},
                              {"reads",
                               {{"file_bytes", file.reads().file_bytes},
                                {"read_bytes", file.reads().read_bytes},
                                {"reads", file.reads().reads}}}});
    });
  }

  std::string analyze(std::string settings, val progress) {
    return guarded(
        [&] { return monet::to_bytes(opened().analyze(monet::parse_settings(settings), {}, told(progress))); });
  }

  // monet.schedule/1; `inference_only` leaves the training step out.
  std::string schedule(std::string settings, bool inference_only, val progress) {
    return guarded([&] {
      return monet::to_bytes(opened().schedule(monet::parse_settings(settings), inference_only, {}, told(progress)));
    });
  }

  // A Chrome trace of the step's schedule, or of inference.
  std::string trace(std::string settings, bool inference, val progress) {
    return guarded([&] { return opened().trace(monet::parse_settings(settings), inference, {}, told(progress)); });
  }

  // A Fusion, or the errors as a string.
  val fuse(std::string settings, bool inference) {
    val result = val::undefined();
    std::string errors = guarded([&] {
      result = val(std::make_shared<Fusion>(opened().fuse(monet::parse_settings(settings), inference)));
      return std::string();
    });
    return errors.empty() ? result : val(errors);
  }

  // Whether units (a JSON list of ids) may be one group, and what keeps it from growing.
  std::string growth(std::string settings, bool inference, std::string units) {
    return guarded([&] {
      return monet::to_bytes(opened().growth(monet::parse_settings(settings), inference,
                                             nlohmann::json::parse(units).get<std::vector<int64_t>>()));
    });
  }

  // ONNX bytes, or the errors as a string.
  val training_graph(std::string settings) {
    val result = val::undefined();
    std::string errors = guarded([&] {
      result = bytes_to_script(opened().training_graph(monet::parse_settings(settings)));
      return std::string();
    });
    return errors.empty() ? result : val(errors);
  }

  val structure(bool short_names) {
    val result = val::undefined();
    std::string errors = guarded([&] {
      result = bytes_to_script(opened().file().structure(short_names));
      return std::string();
    });
    return errors.empty() ? result : val(errors);
  }

 private:
  monet::Session& opened() {
    if (!session_) throw monet::Refusal({"no-model", "no model is open", "", "", "open one first"});
    return *session_;
  }

  // progress(stage, done) -> whether to go on; undefined: nobody asks.
  static monet::Progress told(const val& progress) {
    return [progress](std::string_view stage, double done) {
      return progress.isUndefined() || progress(std::string(stage), done).as<bool>();
    };
  }

  std::unique_ptr<monet::Session> session_;
};

std::string presets() {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const monet::Preset& p : monet::hardware_presets())
    list.push_back({{"name", p.name}, {"title", p.title}, {"json", p.json}});
  return monet::to_bytes(list);
}

std::string version() { return monet::kEngineVersion; }

std::string fusion_table(std::string report) {
  return guarded([&] { return monet::fusion_table(nlohmann::ordered_json::parse(report)); });
}

// The table that the command line prints for a report.
std::string table(std::string report) {
  return guarded([&] { return monet::text_table(nlohmann::ordered_json::parse(report)); });
}

}  // namespace

EMSCRIPTEN_BINDINGS(monet) {
  emscripten::function("version", &version);
  emscripten::function("presets", &presets);
  emscripten::function("table", &table);
  emscripten::function("fusionTable", &fusion_table);
  emscripten::class_<Fusion>("Fusion")
      .smart_ptr<std::shared_ptr<Fusion>>("Fusion")
      .function("step", &Fusion::step)
      .function("strategy", &Fusion::strategy)
      .function("program", &Fusion::program)
      .function("incumbent", &Fusion::incumbent)
      .function("answer", &Fusion::answer)
      .function("stop", &Fusion::stop)
      .function("report", &Fusion::report);
  emscripten::class_<Session>("Session")
      .constructor<>()
      .function("open", &Session::open)
      .function("analyze", &Session::analyze)
      .function("schedule", &Session::schedule)
      .function("trace", &Session::trace)
      .function("fuse", &Session::fuse)
      .function("growth", &Session::growth)
      .function("trainingGraph", &Session::training_graph)
      .function("structure", &Session::structure);
}
