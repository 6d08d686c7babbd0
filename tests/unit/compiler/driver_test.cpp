// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/driver.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

constexpr const char* kTanh = R"(func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.tanh %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  })";

// A pass that appends its name to the module's.
template <char letter>
Module append(Module module, PassContext& context) {
  module.name += letter;
  context.counters.add("letters", 1);
  return module;
}

Module find_bug(Module module, PassContext&) {
  module.name = "changed";
  check_internal(false, "two is one");
  return module;
}

std::span<const Pass> two_steps() {
  static constexpr Pass kSteps[] = {{"a", "appends a", append<'a'>}, {"b", "appends b", append<'b'>}};
  return kSteps;
}

Module append_both(Module module, PassContext& context) {
  for (const Pass& step : two_steps()) module = step.run(std::move(module), context);
  return module;
}

Module make_wrong_op(Module, PassContext&) {
  fail<ShapeError>("stablehlo.add", "operands must have the same shape", "tensor<4xf32> and tensor<5xf32>");
}

constexpr Pass kBoth{.name = "both", .doc = "appends a and b", .run = append_both, .steps = two_steps};
constexpr Pass kC{"c", "appends c", append<'c'>};
constexpr Pass kBroken{"broken", "finds a bug", find_bug};
constexpr Pass kWrongOp{"wrong_op", "makes an op of wrong types", make_wrong_op};

CompileUnit unit_of_tanh() {
  CompileUnit unit(parse_program(kTanh));
  return unit;
}

// The message of an InternalError of these passes, and the program that it kept.
struct Report {
  std::string message;
  std::string kept;
};

Report report_of(CompileUnit& unit, std::span<const Pass> passes, const Hooks& hooks = {}) {
  Report report;
  try {
    run_passes(unit, passes, hooks);
  } catch (const InternalError& error) {
    report.message = error.message();
  }
  const std::string words = "please report it with the program before the pass, ";
  const size_t at = report.message.find(words);
  if (at == std::string::npos) return report;
  const std::filesystem::path path = report.message.substr(at + words.size());
  std::stringstream kept;
  kept << std::ifstream(path).rdbuf();
  report.kept = kept.str();
  std::filesystem::remove_all(path.parent_path());
  return report;
}

TEST(Driver, ReportsWrongTypesInALocalProgramAsABug) {
  CompileUnit written = unit_of_tanh();
  EXPECT_THROW(run_passes(written, std::vector<Pass>{kWrongOp}), ShapeError);
  Module program = parse_program(kTanh);
  program.stage = Stage::kLocal;
  CompileUnit local(std::move(program));
  const Report report = report_of(local, std::vector<Pass>{kWrongOp});
  EXPECT_EQ(report.message.find("stablehlo.add: operands must have the same shape"), 0U) << report.message;
  EXPECT_NE(report.message.find("in the pass wrong_op"), std::string::npos) << report.message;
  EXPECT_NE(report.kept.find("stablehlo.tanh"), std::string::npos) << report.kept;
}

TEST(Driver, RunsStepsAndTimesThem) {
  CompileUnit unit = unit_of_tanh();
  std::vector<std::string> seen;
  const auto note = [&](CompileUnit& changed, const Pass& pass, const Pass* step) {
    seen.push_back(std::string(step != nullptr ? step->name : pass.name) + " " + changed.module->name);
  };
  run_passes(unit, std::vector<Pass>{kBoth, kC}, {.after = note});
  EXPECT_EQ(seen, (std::vector<std::string>{"a a", "b ab", "both ab", "c abc"}));
  EXPECT_EQ(unit.context.counters.get("letters"), 3);
  ASSERT_EQ(unit.log.size(), 2u);
  ASSERT_EQ(unit.log[0].steps.size(), 2u);
  EXPECT_EQ(unit.log[0].steps[1].name, "b");
  EXPECT_EQ(unit.log[0].nanoseconds, unit.log[0].steps[0].nanoseconds + unit.log[0].steps[1].nanoseconds);
  EXPECT_EQ(unit.log[1].ops, 1);
}

TEST(Driver, LeavesAModuleThatOthersHold) {
  const auto given = std::make_shared<const Module>(parse_program(kTanh));
  SharedModule kept;
  CompileUnit unit(given);
  const auto keep = [&](CompileUnit& changed, const Pass& pass, const Pass*) {
    if (pass.name == "both") kept = changed.module;
  };
  run_passes(unit, std::vector<Pass>{kBoth, kC}, {.after = keep});
  EXPECT_EQ(given->name, "");
  EXPECT_EQ(kept->name, "ab");
  EXPECT_EQ(unit.module->name, "abc");
}

TEST(Driver, MovesAModuleThatNobodyElseHolds) {
  CompileUnit unit = unit_of_tanh();
  const Value* first = nullptr;
  const auto note = [&](CompileUnit& changed, const Pass& pass, const Pass*) {
    if (pass.name == "both" && first == nullptr) first = &changed.module->value(ValueId{1});
  };
  run_passes(unit, std::vector<Pass>{kBoth, kC}, {.after = note});
  EXPECT_EQ(first, &unit.module->value(ValueId{1}));
}

TEST(Driver, KeepsTheProgramThatAPassFailedOn) {
  CompileUnit unit = unit_of_tanh();
  const std::string before = print(*unit.module, {.locations = true});
  const Report report = report_of(unit, std::vector<Pass>{kBroken});
  EXPECT_TRUE(report.message.starts_with("a bug in shardwise: two is one")) << report.message;
  EXPECT_NE(report.message.find(", in the pass broken; please report it"), std::string::npos) << report.message;
  EXPECT_EQ(report.kept, before);
}

TEST(Driver, MakesTheProgramBeforeAFailedPassAgainFromTheLastSnapshot) {
  for (const bool with_snapshot : {false, true}) {
    CompileUnit unit = unit_of_tanh();
    const auto keep = [&](CompileUnit& changed, const Pass& pass, const Pass* step) {
      if (with_snapshot && step == nullptr && pass.name == "both") changed.global = changed.module;
    };
    const Report report = report_of(unit, std::vector<Pass>{kBoth, kC, kBroken}, {.after = keep});
    EXPECT_EQ(report.kept.find("module @abc {"), 0u) << report.kept;
  }
}

TEST(Driver, RefusesAProgramAtAnotherStage) {
  Pass local = kC;
  local.takes = {.first = Stage::kLocal};
  CompileUnit unit = unit_of_tanh();
  try {
    run_passes(unit, std::vector<Pass>{kBoth, local});
    FAIL();
  } catch (const ShardingError& error) {
    EXPECT_EQ(error.message(),
              "c: the program must have been through localize, got a program at stage global; run localize first");
  }
}

}  // namespace
}  // namespace shardwise
