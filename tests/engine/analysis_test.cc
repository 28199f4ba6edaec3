#include <gtest/gtest.h>

#include <cmath>

#include "engine/analysis/session.h"
#include "engine/report/report.h"
#include "onnx_builder.h"

namespace monet {
namespace {

using Json = nlohmann::ordered_json;

std::string example(const char* name) { return std::string(MONET_SOURCE_DIR "/examples/models/") + name + ".onnx"; }

Session open_example(const char* name) {
  std::unique_ptr<ByteSource> source = open_file(example(name));
  return Session(*source, name);
}

std::vector<Diagnostic> refused(const std::string& settings) {
  try {
    parse_settings(settings);
  } catch (const Refusal& refusal) {
    return refusal.problems();
  }
  return {};
}

TEST(Settings, ReadBackWhatTheyWrite) {
  const char* text =
      R"({"hardware":"edge_tpu","capacity_bytes":5,"batch":3,"dims":{"n":7},"optimizer":"adam","weight_decay":0.25,)"
      R"("clip_norm":1.0,"micro_batches":4,"loss":"mse","output":"y",)"
      R"("precision":{"parameters":"bf16","master_weights":true},"update":"immediate",)"
      R"("batch_norm":"frozen","assume_batch_norm":true,"train":["a*"],"freeze":["b"],"unsupported":"pass","last_layers":2,)"
      R"("biases_only":true,"lora_rank":8,"recompute":["c"],"widths":"tensors",)"
      R"("mapping":[{"name":"default","spatial_mapping":{"D1":["K, 8"]}}],"objective":"edp","factor_limit":4,)"
      R"("corrections":["hold_floors","leave_room_above"],"access_energy":"hp_22nm","partition":{"groups":[{"units":[0,1]}]},"write_back":true,"accumulation":"separate",)"
      R"("fusion":{"objective":"edp","max_group":[5,0],"contractions":1,"convolutions":4,"products":0,"one_output":false,)"
      R"("updates_apart":true,"activations_apart":true,"gap":0.01,"nodes":9}})";
  Settings s = parse_settings(text);
  EXPECT_EQ(s.capacity_bytes, 5);
  EXPECT_EQ(s.dims.at("n"), 7);
  EXPECT_EQ(s.training.optimizer, Optimizer::adam);
  EXPECT_EQ(s.precision.parameters, DType::bfloat16);
  EXPECT_EQ(s.precision.gradients, DType::undefined);
  EXPECT_TRUE(s.precision.master_weights && s.update_immediately && s.training.frozen_batch_norm);
  EXPECT_TRUE(s.tensor_widths && s.cost.hold_floors && s.cost.leave_room_above && !s.cost.add_half_shared);
  EXPECT_EQ(s.cost.objective, Objective::edp);
  EXPECT_EQ(s.cost.factor_limit, 4);
  EXPECT_EQ(s.fusion.max_group, (std::vector<int>{5, 0}));
  EXPECT_EQ(s.fusion.rules().most_units, 0);
  EXPECT_EQ(to_json(s).dump(), text);
  EXPECT_EQ(to_json(parse_settings("")).dump(), to_json(parse_settings("{}")).dump());
}

TEST(Settings, ReportEveryProblemAtOnce) {
  std::vector<Diagnostic> problems = refused(
      R"({"batch":0,"optimizer":"sgdd","precision":{"parameters":"fp7","x":1},"dims":{"n":1.5},"colour":"red","train":"a"})");
  std::vector<std::string> fields;
  for (const Diagnostic& d : problems) fields.push_back(d.node);
  EXPECT_EQ(fields, (std::vector<std::string>{"batch", "dims.n", "optimizer", "precision.parameters", "precision.x",
                                              "train", "colour"}));
  fields.clear();
  for (const Diagnostic& d : refused(R"({"widths":8,"mapping":{},"objective":"area","factor_limit":11,)"
                                     R"("corrections":["every"],"access_energy":"hp_7nm"})"))
    fields.push_back(d.node);
  EXPECT_EQ(fields, (std::vector<std::string>{"widths", "mapping", "objective", "factor_limit", "corrections",
                                              "access_energy"}));
  EXPECT_EQ(refused("[1]").size(), 1u);
  EXPECT_EQ(refused("{").size(), 1u);
  EXPECT_EQ(refused(R"({"batch":1e300,"capacity_bytes":-1})").size(), 2u);
}

TEST(Session, UnknownHardwareIsRefusedWithTheNames) {
  Session session = open_example("lenet5");
  try {
    session.analyze(parse_settings(R"({"hardware":"tpu_v9"})"));
    FAIL();
  } catch (const Refusal& refusal) {
    EXPECT_NE(refusal.problems()[0].hint.find("edge_tpu"), std::string::npos);
  }
}

// Adam keeps two states per parameter; mixed precision halves what is 16 bits and adds fp32 master weights.
TEST(Session, MemoryByOptimizerAndPrecision) {
  Session session = open_example("lenet5");
  constexpr int64_t kParameters = 61706;
  auto memory = [&](const char* settings) { return session.analyze(parse_settings(settings))["memory"]; };
  Json sgd = memory(R"({"optimizer":"sgd"})"), momentum = memory(R"({"optimizer":"momentum"})");
  Json adam = memory(R"({"optimizer":"adam","precision":"mixed_bf16"})"), half = memory(R"({"precision":"fp16"})");
  EXPECT_EQ(sgd["parameters"], 4 * kParameters);
  EXPECT_EQ(sgd["gradients"], 4 * kParameters);
  EXPECT_EQ(sgd["optimizer_state"], 0);
  EXPECT_EQ(momentum["optimizer_state"], 4 * kParameters);
  EXPECT_EQ(adam["parameters"], 2 * kParameters);
  EXPECT_EQ(adam["gradients"], 2 * kParameters);
  EXPECT_EQ(adam["optimizer_state"], 8 * kParameters);
  EXPECT_EQ(adam["master_weights"], 4 * kParameters);
  EXPECT_EQ(half["parameters"], 2 * kParameters);
  // MaxPool's indices stay 64 bits wide: 6 x 14 x 14 + 16 x 5 x 5 of them.
  int64_t indices = 8 * (6 * 14 * 14 + 16 * 5 * 5);
  EXPECT_EQ(2 * (half["activations"].get<int64_t>() - indices), sgd["activations"].get<int64_t>() - indices);
}

TEST(Session, AStepOfMicroBatchesIsThatManyPassesAndOneUpdate) {
  Session session = open_example("resnet18_cifar");
  auto analyze = [&](const char* settings) { return session.analyze(parse_settings(settings)); };
  auto one = analyze(R"({"hardware":"edge_tpu","batch":2})"),
       four = analyze(R"({"hardware":"edge_tpu","batch":2,"micro_batches":4})");
  EXPECT_EQ(one["training"]["micro_batches"], 1);
  EXPECT_EQ(four["training"]["micro_batches"], 4);
  EXPECT_EQ(four["training"]["macs"]["total"].get<int64_t>(), 4 * one["training"]["macs"]["total"].get<int64_t>());
  EXPECT_EQ(four["model"], one["model"]);
  // The optimizer runs once; its division by the number of micro-batches is all that it does more.
  double update = one["step"]["phases"]["optimizer"]["energy_pj"],
         mean = four["step"]["phases"]["optimizer"]["energy_pj"];
  EXPECT_GT(mean, update);
  EXPECT_LT(mean, 1.1 * update);
  EXPECT_EQ(four["memory"]["gradients"], one["memory"]["gradients"]);
}

TEST(Session, AdaptersTrainAFractionAndCountAsWork) {
  Session session = open_example("resnet18_cifar");
  auto analyze = [&](const char* settings) { return session.analyze(parse_settings(settings)); };
  auto all = analyze("{}"), adapted = analyze(R"({"lora_rank":2})");
  // Rank 2 on the linear layer: 512 x 2 + 2 x 10; on a 3x3 convolution of C channels to K: 2 C 9 + 2 K.
  EXPECT_LT(adapted["training"]["trained_parameters"].get<int64_t>(), 110'000);
  EXPECT_EQ(adapted["model"]["parameters"], all["model"]["parameters"]);
  EXPECT_GT(adapted["model"]["forward_macs"], all["model"]["forward_macs"]);
  EXPECT_LT(adapted["memory"]["gradients"].get<int64_t>(), 440'000);
  EXPECT_LT(adapted["training"]["macs"]["weight_gradient"], all["training"]["macs"]["weight_gradient"]);
  EXPECT_EQ(adapted["layers"].size(), adapted["training"]["units"]["forward"].get<size_t>() +
                                          adapted["training"]["units"]["loss"].get<size_t>() +
                                          adapted["training"]["units"]["backward"].get<size_t>() +
                                          adapted["training"]["units"]["optimizer"].get<size_t>());
}

TEST(Session, ImmediateUpdatesNeedLessAndAccumulationMore) {
  Session session = open_example("resnet18_cifar");
  auto peak = [&](const char* settings) {
    return session.analyze(parse_settings(settings))["memory"]["peak"].get<int64_t>();
  };
  int64_t end = peak("{}"), immediate = peak(R"({"update":"immediate"})"), sums = peak(R"({"micro_batches":2})");
  EXPECT_LT(immediate, end);
  EXPECT_GT(sums, end);
  // Adam's corrections are scalars of their own: no update waits for that of another parameter.
  for (const char* optimizer : {"adam", "adamw", "lion"}) {
    nlohmann::json with = {{"optimizer", optimizer}}, at_once = with;
    at_once["update"] = "immediate";
    // (These scalars are held for longer.)
    EXPECT_NEAR(static_cast<double>(peak(with.dump().c_str()) - peak(at_once.dump().c_str())),
                static_cast<double>(end - immediate), 64);
  }
}

// The interpolated search against analysing with each batch.
TEST(Session, LargestBatchIsTheLastThatFits) {
  for (const char* name : {"lenet5", "resnet18_cifar", "mobilenet_v2"}) {
    Session session = open_example(name);
    Settings settings = parse_settings(R"({"capacity_bytes":600000000,"optimizer":"momentum"})");
    int64_t largest = session.analyze(settings)["memory"]["largest_batch"]["value"];
    ASSERT_GT(largest, 1) << name;
    settings.batch = largest;
    EXPECT_TRUE(session.analyze(settings)["memory"]["fits"]) << name;
    settings.batch = largest + 1;
    Json over = session.analyze(settings)["memory"];
    EXPECT_FALSE(over["fits"]) << name;
    EXPECT_GT(over["short_by"], 0) << name;
    EXPECT_EQ(over["largest_batch"]["value"], largest) << name << ": whatever batch it is asked at";
  }
}

// Two cycles and pJ computed here from the definition: ResNet-18's SGD step reads and writes each parameter once.
TEST(Session, StepBoundOfResNet18) {
  Session session = open_example("resnet18");
  Json report = session.analyze(parse_settings(R"({"hardware":"edge_tpu","widths":"tensors"})"));
  double parameters = 4.0 * 11689512, statistics = 4.0 * 2 * 4800, input = 4.0 * 3 * 224 * 224;
  // Read and write of parameters and running statistics; input, label (8), learning rate (4), loss (4).
  double bytes = 2 * parameters + 2 * statistics + input + 8 + 4 + 4;
  EXPECT_DOUBLE_EQ(report["bounds"]["traffic_bytes"].get<double>(), bytes);
  EXPECT_DOUBLE_EQ(report["bounds"]["traffic_cycles"].get<double>(), bytes * 8 / 64);
  EXPECT_DOUBLE_EQ(report["step"]["latency_cycles"].get<double>(), bytes * 8 / 64);
  EXPECT_EQ(report["bounds"]["limited_by"], "traffic");
  // 0.04 pJ a MAC on the PEs; vector operations on the same PEs cost no more than that.
  double macs = report["training"]["macs"]["total"], vectors = 0;
  for (const Json& layer : report["layers"]) vectors += layer["operations"].get<double>();
  EXPECT_NEAR(report["bounds"]["compute_pj"].get<double>(), 0.04 * (macs + vectors), 1);
  // On a datapath of 8 bits all but statistics, label and learning rate are bytes; memory stays as it is stored.
  Json narrow = session.analyze(parse_settings(R"({"hardware":"edge_tpu"})"));
  EXPECT_EQ(narrow["bounds"]["traffic_bytes"].get<double>(),
            2 * parameters / 4 + 2 * statistics + input / 4 + 8 + 4 + 1);
  EXPECT_EQ(narrow["memory"], report["memory"]);
}

TEST(Session, WithoutHardwareThereAreNoBounds) {
  Session session = open_example("lenet5");
  Json report = session.analyze(parse_settings("{}"));
  EXPECT_TRUE(report["hardware"].is_null() && report["step"].is_null() && report["inference"].is_null());
  EXPECT_TRUE(report["memory"]["capacity"].is_null() && report["memory"]["fits"].is_null());
  EXPECT_TRUE(report["layers"][0]["latency_cycles"].is_null());
  EXPECT_GT(report["layers"][0]["bytes"], 0);
}

TEST(Session, OperatorsWithoutGradientGiveOneWarningAndAForwardReport) {
  test::Builder model;
  model.input("x", {2, 3, 8, 8}).weight("w", {4, 3, 1, 1}).op("Conv", {"x", "w"}, {"c"});
  // A norm of p = 0 has no gradient rule.
  model.op("LpPool", {"c"}, {"m"}, {test::attr("kernel_shape", std::vector<int64_t>{2, 2}), test::attr("p", 0)});
  model.op("LpPool", {"m"}, {"y"}, {test::attr("kernel_shape", std::vector<int64_t>{2, 2}), test::attr("p", 0)});
  model.output("y");
  std::string bytes = model.bytes();
  MemorySource source(bytes);
  Session session(source, "norm_zero");
  Json report = session.analyze(parse_settings("{}"));
  EXPECT_TRUE(report["training"].is_null());
  int64_t found = 0;
  for (const Json& warning : report["warnings"]) found += warning["code"] == "forward-only";
  EXPECT_EQ(found, 1);
  EXPECT_EQ(report["model"]["parameters"], 12);
  EXPECT_THROW(session.training_graph(parse_settings("{}")), Refusal);
}

TEST(Session, SameAnalysisAfterOthersIsTheSameBytes) {
  Session session = open_example("resnet18_cifar");
  Settings settings = parse_settings(R"({"hardware":"fusemax","batch":2})");
  std::string first = to_bytes(session.analyze(settings));
  for (const char* other : {"{}", R"({"batch":9,"optimizer":"adam"})", R"({"batch":2,"freeze":["layer1*"]})"})
    session.analyze(parse_settings(other));
  EXPECT_EQ(to_bytes(session.analyze(settings)), first);
}

TEST(Session, FreezingShrinksTheBackwardGraph) {
  Session session = open_example("resnet18_cifar");
  Json all = session.analyze(parse_settings("{}")), last = session.analyze(parse_settings(R"({"train":["fc.*"]})"));
  EXPECT_EQ(last["training"]["trained_tensors"], 2);
  EXPECT_EQ(last["training"]["trained_parameters"], 5130);
  EXPECT_EQ(last["model"], all["model"]) << "the model is the same, whatever trains";
  EXPECT_EQ(last["training"]["macs"]["input_gradient"], 0);
  EXPECT_LT(last["memory"]["activations"], all["memory"]["activations"]);
  EXPECT_LT(last["memory"]["peak"], all["memory"]["peak"]);
}

TEST(Guard, TurnsEverythingThrownIntoErrors) {
  EXPECT_EQ(guarded([] { return std::string("x"); }), "x");
  Json refusal = Json::parse(guarded([]() -> std::string { throw Refusal({"a", "b", "c", "d", "e"}); }));
  EXPECT_EQ(refusal.dump(), R"({"errors":[{"code":"a","message":"b","node":"c","tensor":"d","hint":"e"}]})");
  EXPECT_EQ(Json::parse(guarded([]() -> std::string { throw std::bad_alloc(); }))["errors"][0]["code"],
            "out-of-memory");
  EXPECT_EQ(Json::parse(guarded([]() -> std::string { throw std::runtime_error("x"); }))["errors"][0]["code"],
            "internal");
  EXPECT_TRUE(Json::accept(to_bytes(errors_json({{"c", "bad \xff byte", "", "", ""}}))));
}

TEST(TextTable, ShowsTheHeadlines) {
  Session session = open_example("resnet18");
  std::string table = text_table(session.analyze(parse_settings(R"({"hardware":"edge_tpu"})")));
  for (const char* text : {"11,689,512 parameters", "1.81 GMAC forward", "5,324,206,080", "largest batch", ">="})
    EXPECT_NE(table.find(text), std::string::npos) << text;
}

}  // namespace
}  // namespace monet
