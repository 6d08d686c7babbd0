// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/hardware_json.h"

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"

namespace shardwise {
namespace {

// A complete file with one part replaced.
std::string file_with(std::string_view part, std::string_view other) {
  std::string json = R"({"format": "shardwise.hardware", "version": 1, "name": "mine",
    "sources": {"bench": {"title": "a bench", "license": "private"}},
    "peak_flops": {"matrix": {"bf16": {"value": 1e15, "source": "bench"}, "f32": 1e14}, "vector": {"f32": 5e13}},
    "memory": {"bandwidth": 3e12, "capacity": 8e10},
    "tiers": [{"name": "a", "topology": "switch", "size": 8, "bandwidth": 4e11},
              {"name": "b", "topology": "torus", "shape": [4, 4], "bandwidth": 1e11},
              {"name": "c", "topology": "fat_tree", "bandwidth": 5e10}]})";
  if (!part.empty()) json.replace(json.find(part), part.size(), other);
  return json;
}

std::string error_of(const std::string& json) {
  try {
    hardware_from_json(json, "mine.json");
  } catch (const ParseError& error) {
    return error.message();
  }
  return "no error";
}

// Without line and column.
std::string message_of(const std::string& json) {
  std::string error = error_of(json);
  const size_t file = error.find("mine.json");
  return file == std::string::npos ? error : error.substr(file);
}

TEST(HardwareJson, HasDefaultsForWhatIsLeftOut) {
  const Hardware mine = *hardware_from_json(file_with("", ""), "mine.json");
  EXPECT_EQ(mine.name, "mine");
  EXPECT_EQ(mine.peak(ComputeUnit::kMatrix, DType::kBF16).flops, 1'000'000'000'000'000);
  EXPECT_EQ(mine.memory_bytes, 80'000'000'000);
  EXPECT_EQ(mine.usable_bytes(), 80'000'000'000);
  EXPECT_EQ(mine.launch_ps, 0);
  EXPECT_FALSE(mine.fused_attention);
  EXPECT_EQ(mine.default_dot, "f32");
  EXPECT_TRUE(mine.memory_efficiency.points.empty());
  EXPECT_EQ(mine.tiers[1].size, 16);
  EXPECT_FALSE(mine.tiers[1].wraps_only_all);
  EXPECT_TRUE(mine.tiers[1].closes(4));
  EXPECT_EQ(mine.tiers[2].size, Tier::kUnlimited);
}

TEST(HardwareJson, ReadsTimesAndTables) {
  const Hardware mine = *hardware_from_json(
      file_with(R"("memory":)", R"("launch": 2e-6, "efficiency": {"memory": {"interpolation": "linear",
        "points": [[1000, 0.1], [1e6, 0.9]]}}, "memory":)"),
      "mine.json");
  EXPECT_EQ(mine.launch_ps, 2'000'000);
  EXPECT_EQ(mine.memory_efficiency,
            (Efficiency{.is_linear = true, .points = {{1'000, 100'000}, {1'000'000, 900'000}}}));
}

TEST(HardwareJson, WhatItLeavesOutIsThatOfItsBase) {
  const Hardware mine = *hardware_from_json(R"({"format": "shardwise.hardware", "version": 1, "name": "mine",
    "base": "h100_sxm", "memory": {"bandwidth": {"value": 3e12}}, "launch": null,
    "peak_flops": {"matrix": {"bf16": 7e14}}})",
                                            "mine.json");
  const Hardware& h100 = *builtin_hardware("h100_sxm");
  EXPECT_EQ(mine.memory_bandwidth, 3'000'000'000'000);
  EXPECT_EQ(mine.memory_bytes, h100.memory_bytes);
  EXPECT_EQ(mine.launch_ps, 0);
  EXPECT_EQ(mine.dot_peak(DType::kBF16, true).flops, 700'000'000'000'000);
  EXPECT_EQ(mine.dot_peak(DType::kF32, true).flops, h100.dot_peak(DType::kF32, true).flops);
  EXPECT_EQ(mine.tiers.size(), h100.tiers.size());
  // It is read back without its base, which has a launch.
  EXPECT_EQ(*hardware_from_json(mine.json, "again"), mine);
  // The source of the number that it replaces is not that of this one.
  EXPECT_NE(mine.json.find(R"("value": 3000000000000.0)"), std::string::npos);
  EXPECT_FALSE(mine == h100);
}

TEST(HardwareJson, ErrorsNameFileAndPlace) {
  const std::pair<std::string, std::string> cases[] = {
      {"",
       "mine.json: expected a JSON document, got syntax error while parsing value - unexpected end of input; "
       "expected '[', '{', or a literal"},
      {"[]", "mine.json: the document must be an object, got array"},
      {"{}", "mine.json: the document must have \"format\""},
      {file_with("shardwise.hardware", "other"), "mine.json: format must be shardwise.hardware, got \"other\""},
      {file_with("\"version\": 1", "\"version\": 2"),
       "mine.json: version must be from 1 to 1, got 2; use a newer shardwise"},
      {file_with("\"name\": \"mine\",", ""), "mine.json: the document must have \"name\""},
      {file_with("\"name\": \"mine\"", "\"nmae\": \"mine\""), "mine.json: the document must have \"name\""},
      {file_with("\"memory\":", "\"memroy\":"),
       "mine.json: the document must have no other keys than format, version, name, description, base, sources, "
       "peak_flops, default_dot, memory, launch, fused_attention, efficiency, tiers, calibration, got \"memroy\""},
      {file_with("\"bandwidth\": 3e12, ", ""), "mine.json: memory must have \"bandwidth\""},
      {file_with("3e12", "-3e12"), "mine.json: memory.bandwidth must be at least 1 per second, got -3e+12"},
      {file_with("3e12", "\"fast\""), "mine.json: memory.bandwidth must be a number, got string"},
      {file_with("3e12", "{\"value\": 0}"), "mine.json: memory.bandwidth.value must be at least 1 per second, got 0"},
      {file_with("3e12", "{\"vlaue\": 1}"),
       "mine.json: memory.bandwidth must have no other keys than value, source, note, got \"vlaue\""},
      {file_with("3e12", "{\"value\": 9, \"source\": \"bnech\"}"),
       "mine.json: memory.bandwidth.source must be a key of sources, got \"bnech\""},
      {file_with(", \"license\": \"private\"", ""), "mine.json: sources.bench must have \"license\""},
      {file_with("8e10", "8e10, \"reserved\": 9e10"),
       "mine.json: memory.reserved must be at most memory.capacity, got 90000000000"},
      {file_with("\"f32\": 1e14", "\"float32\": 1e14"),
       "mine.json: peak_flops.matrix must have dtypes as keys, such as bf16, f32, i8, or tf32, got \"float32\""},
      {file_with("\"vector\": {\"f32\": 5e13}", "\"vector\": {}"),
       "mine.json: peak_flops.vector must have the peak of one dtype at least"},
      {file_with(", \"vector\": {\"f32\": 5e13}", ""), "mine.json: peak_flops must have \"vector\""},
      {file_with("\"memory\":", "\"default_dot\": \"tf32\", \"memory\":"),
       "mine.json: default_dot must be a key of peak_flops.matrix, got \"tf32\""},
      {file_with("\"memory\":", "\"base\": \"h101\", \"memory\":"),
       "mine.json: base must be the name of a built-in file, got \"h101\"; see sw.hardware.list() for the names"},
  };
  for (const auto& [json, message] : cases) EXPECT_EQ(message_of(json), message);
}

TEST(HardwareJson, ErrorsOfTiersAndTables) {
  const auto table = [](std::string_view points, std::string_view kind = "step") {
    return file_with("\"memory\":", str("\"efficiency\": {\"matrix\": {\"interpolation\": \"", kind,
                                        "\", \"points\": ", points, "}}, \"memory\":"));
  };
  const std::pair<std::string, std::string> cases[] = {
      {file_with("\"size\": 8, ", ""),
       "mine.json: tiers[0] must have \"size\", because a tier without size joins any number and is the last"},
      {file_with("\"size\": 8", "\"size\": 0"),
       "mine.json: tiers[0].size must be a number of units of at least 1, got 0"},
      {file_with("\"size\": 8", "\"size\": 8.5"), "mine.json: tiers[0].size must be an integer, got number"},
      {file_with("\"switch\"", "\"bus\""),
       "mine.json: tiers[0].topology must be switch, fat_tree, ring or torus, got \"bus\""},
      {file_with("\"size\": 8", "\"shape\": [8]"),
       "mine.json: tiers[0] must have \"shape\" only if its topology is torus"},
      {file_with("\"shape\": [4, 4]", "\"size\": 16"),
       "mine.json: tiers[1] must have no \"size\" as a torus: the product of its shape is the size"},
      {file_with("[4, 4]", "[4, 4, 4, 4, 4]"),
       "mine.json: tiers[1].shape must have 1 to 4 dims with a product of at most 1048576, got [4, 4, 4, 4, 4]"},
      {file_with("[4, 4]", "[2305843009213693952, 4]"),
       "mine.json: tiers[1].shape must have 1 to 4 dims with a product of at most 1048576, got "
       "[2305843009213693952, 4]"},
      {file_with("\"shape\": [4, 4]", "\"shape\": [4, 4], \"wraparound\": \"maybe\""),
       "mine.json: tiers[1].wraparound must be \"always\", \"never\", {\"multiple_of\": n} or {\"length\": n}, got "
       "\"maybe\""},
      {table("[[1, 0]]"), "mine.json: efficiency.matrix.points[0][1] must be a share above 0 and at most 1, got 0"},
      {table("[[1, 0.5], [1, 0.6]]"),
       "mine.json: efficiency.matrix.points[1][0] must be larger than the size before it, got 1"},
      {table("[[1, 0.5, 2]]"), "mine.json: efficiency.matrix.points[0] must be [size, share], got 3 elements"},
      {table("[[10, 0.1], [20, 0.3]]", "linear"),
       "mine.json: efficiency.matrix.points[1] must not take less time than the smaller size before it, which it "
       "does at this share, got 0.3; use interpolation step, or a smaller share"},
      {table("[]", "spline"), "mine.json: efficiency.matrix.interpolation must be step or linear, got \"spline\""},
  };
  for (const auto& [json, message] : cases) EXPECT_EQ(message_of(json), message);
  const std::string json = file_with("", "");
  EXPECT_EQ(message_of(json.substr(0, json.find("\"tiers\"")) + "\"tiers\": []}"),
            "mine.json: tiers must have a tier at least");
}

TEST(HardwareJson, ErrorsOfACalibration) {
  const std::string_view valid = R"({"constants": {"matrix": 1.5, "attention": 0, "tiers.a": 0.4}, "fitted_on": "bench",
    "steps": 3, "mean_error": 0.01, "max_error": 0.03, "left_out_error": 0.02})";
  const auto error_with = [&](std::string_view part, std::string_view other) {
    std::string calibration(valid);
    if (!part.empty()) calibration.replace(calibration.find(part), part.size(), other);
    return message_of(file_with(R"("memory":)", str(R"("calibration": )", calibration, R"(, "memory":)")));
  };
  EXPECT_EQ(error_with("", ""), "no error");
  const struct {
    std::string_view part, other, error;
  } cases[] = {
      {"\"matrix\"", "\"vector\"",
       "calibration.constants must have matrix, attention, memory or \"tiers.\" with the name of a tier as keys, got "
       "\"vector\""},
      {"tiers.a", "tiers.x",
       "calibration.constants must have matrix, attention, memory or \"tiers.\" with the name of a tier as keys, got "
       "\"tiers.x\""},
      {"1.5", "-1.5", "calibration.constants.matrix must be a number of at least 0, got -1.5"},
      {R"({"matrix": 1.5, "attention": 0, "tiers.a": 0.4})", "{}",
       "calibration.constants must have the constant of a term at least"},
      {"\"bench\"", "\"\"", "calibration.fitted_on must not be empty"},
      {"3,", "0,", "calibration.steps must be a number of steps of at least 1, got 0"},
      {"0.01", "\"small\"", "calibration.mean_error must be a number, got string"},
      {"0.02", "-1", "calibration.left_out_error must be a number of at least 0, got -1"},
      {R"("max_error")", R"("worst_error")", "calibration must have no other keys than constants, fitted_on, steps"},
  };
  for (const auto& [part, other, error] : cases) {
    const std::string found = error_with(part, other);
    EXPECT_TRUE(found.starts_with(str("mine.json: ", error))) << found << "\nexpected: " << error;
  }
}

TEST(HardwareJson, ErrorsNameLineAndColumn) {
  EXPECT_EQ(error_of(file_with("3e12", "-3e12")),
            "4:16: mine.json: memory.bandwidth must be at least 1 per second, got -3e+12");
  EXPECT_EQ(error_of(file_with("\"switch\"", "\"bus\"")),
            "5:29: mine.json: tiers[0].topology must be switch, fat_tree, ring or torus, got \"bus\"");
  EXPECT_EQ(error_of(file_with("\"bandwidth\": 3e12, ", "")), "4:5: mine.json: memory must have \"bandwidth\"");
  EXPECT_EQ(error_of("{\n  \"format\": \"shardwise.hardware\",\n  \"version\": 9\n}").substr(0, 5), "3:3: ");
  // What the base has and the file changes is in the file; a dict has no lines.
  const std::string_view own = R"({"format": "shardwise.hardware", "version": 1, "name": "a", "base": "h100_sxm",
    "memory": {"reserved": 1e15}})";
  EXPECT_EQ(error_of(std::string(own)).substr(0, 6), "2:16: ");
  try {
    hardware_from_json(own, "mine.json", false);
    FAIL();
  } catch (const ParseError& error) {
    EXPECT_EQ(error.message(), "mine.json: memory.reserved must be at most memory.capacity, got 1000000000000000");
    EXPECT_EQ(error.line(), 0);
  }
}

TEST(HardwareJson, RefusesWhatMeansNothing) {
  const auto wraparound = [](std::string_view rule) {
    return message_of(file_with("[4, 4]", str("[4, 4], \"wraparound\": ", rule)));
  };
  EXPECT_EQ(wraparound("{}"), "mine.json: tiers[1].wraparound must have one of multiple_of and length");
  EXPECT_EQ(wraparound(R"({"length": 4, "multiple_of": 4})"),
            "mine.json: tiers[1].wraparound must have one of multiple_of and length");
  EXPECT_EQ(wraparound(R"({"length": 16})"),
            "mine.json: tiers[1].wraparound.length must be at most the largest dim of shape, got 16");
  EXPECT_EQ(wraparound(R"({"value": {"multiple_of": 8}})"),
            "mine.json: tiers[1].wraparound.value.multiple_of must be at most the largest dim of shape, got 8");
  EXPECT_EQ(wraparound(R"({"multiple_of": 4, "every_dim": 1})"),
            "mine.json: tiers[1].wraparound.every_dim must be true or false, got number");
  EXPECT_EQ(wraparound(R"({"multiple_of": 4, "every_dim": true})"), "no error");
  EXPECT_EQ(message_of(file_with("\"name\": \"c\"", "\"name\": \"a\"")),
            "mine.json: tiers[2].name must differ from the names of the tiers before it, got \"a\"");
  EXPECT_EQ(message_of(file_with("\"name\": \"c\"", "\"name\": \"\"")), "mine.json: tiers[2].name must not be empty");
  EXPECT_EQ(message_of(file_with("\"mine\"", "\"\"")), "mine.json: name must not be empty");
  EXPECT_EQ(message_of(file_with("8e10", "0")), "mine.json: memory.capacity must be a number of bytes above 0, got 0");
  EXPECT_EQ(message_of(file_with("\"memory\":", R"("efficiency": {"memory": {"points": []}}, "memory":)")),
            "mine.json: efficiency.memory.points must have a point at least");
  const auto based = [](std::string_view part) {
    return message_of(
        str(R"({"format": "shardwise.hardware", "version": 1, "name": "a", "base": "h100_sxm", )", part, "}"));
  };
  EXPECT_EQ(based(R"("memory": {"capacity": {}})"), "mine.json: memory.capacity must have \"value\"");
  EXPECT_EQ(based(R"("memory": {"capacity": {"note": "half"}})"), "mine.json: memory.capacity must have \"value\"");
  EXPECT_EQ(based(R"("memory": {"capacity": {"value": 4e10}})"), "no error");
}

TEST(HardwareJson, NumbersFitTheirUnits) {
  const auto launch = [](std::string_view seconds) {
    return file_with("\"memory\":", str("\"launch\": ", seconds, ", \"memory\":"));
  };
  EXPECT_EQ(message_of(file_with("3e12", "1e300")),
            "mine.json: memory.bandwidth must be below 2^62 per second, got 1e+300");
  EXPECT_EQ(message_of(file_with("8e10", "5e18")), "mine.json: memory.capacity must be below 2^62 bytes, got 5e+18");
  EXPECT_EQ(message_of(launch("1e308")), "mine.json: launch must be below 4.6e6 seconds, got 1e+308");
  EXPECT_EQ(message_of(launch("5e6")), "mine.json: launch must be below 4.6e6 seconds, got 5e+06");
  EXPECT_EQ(message_of(launch("1e-13")), "mine.json: launch must be 0 or at least 1e-12, got 1e-13");
  EXPECT_EQ(hardware_from_json(launch("1e-12"), "mine.json")->launch_ps, 1);
  EXPECT_EQ(hardware_from_json(launch("0"), "mine.json")->launch_ps, 0);
  EXPECT_EQ(message_of(file_with("\"size\": 8", "\"size\": 4611686018427387904")),
            "mine.json: tiers[0].size must be a number of units below 2^62, got 4611686018427387904");
}

TEST(HardwareJson, NoTextCrashesTheReader) {
  EXPECT_EQ(message_of(std::string(100'000, '[')), "mine.json: brackets must be nested at most 64 deep");
  std::string nested = R"({"base": "h100_sxm", "name": )";
  for (int i = 0; i < 100'000; ++i) nested += R"({"a": )";
  EXPECT_EQ(message_of(nested), "mine.json: brackets must be nested at most 64 deep");
  EXPECT_EQ(message_of(R"({"name": "a", "name": "b"})"),
            "mine.json: a key must stand once in an object, got \"name\" twice");
  EXPECT_NE(error_of(file_with("3e12", "1e400")).find("a number must fit 64 bits"), std::string::npos);
  EXPECT_EQ(error_of(std::string(kMostHardwareBytes + 1, ' ')), "mine.json: must have at most 16 MiB");
  const std::string whole = file_with("", "");
  for (size_t length = 0; length < whole.size(); ++length) EXPECT_NE(error_of(whole.substr(0, length)), "no error");
}

TEST(BuiltinHardware, AllFilesAreRead) {
  const std::vector<std::string> names = builtin_hardware_names();
  ASSERT_EQ(names.front(), "default");
  EXPECT_EQ(names.size(), 14u);
  for (const std::string& name : names) EXPECT_EQ(builtin_hardware(name)->name, name);
  EXPECT_EQ(builtin_hardware("none"), nullptr);
  EXPECT_EQ(default_hardware(), builtin_hardware("default"));
}

// design: H100 peaks, tiers of 8 x 450 GB/s and then 50 GB/s for a device, no launch, no latency, shares of one.
TEST(BuiltinHardware, DefaultIsARooflineOfAnH100) {
  const Hardware& none = *default_hardware();
  const Hardware& h100 = *builtin_hardware("h100_sxm");
  EXPECT_EQ(none.peaks, h100.peaks);
  EXPECT_EQ(none.memory_bandwidth, h100.memory_bandwidth);
  EXPECT_EQ(none.launch_ps, 0);
  for (const Efficiency& table : none.efficiency) EXPECT_EQ(table, Efficiency{});
  EXPECT_EQ(none.memory_efficiency, Efficiency{});
  ASSERT_EQ(none.tiers.size(), 2u);
  EXPECT_EQ(none.tiers[0].size, 8);
  EXPECT_EQ(none.tiers[0].bandwidth, 450'000'000'000);
  EXPECT_EQ(none.tiers[1].size, Tier::kUnlimited);
  EXPECT_EQ(none.tiers[1].bandwidth, 50'000'000'000);
  for (const Tier& tier : none.tiers) {
    EXPECT_EQ(tier.latency_ps, 0);
    EXPECT_EQ(tier.efficiency, Efficiency{});
  }
}

}  // namespace
}  // namespace shardwise
