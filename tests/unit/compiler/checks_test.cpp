// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/checks.h"

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/ir/rewrite/structural_equality.h"
#include "shardwise/partition/assign.h"
#include "shardwise/partition/localize.h"
#include "shardwise/partition/optimize_collectives.h"
#include "shardwise/partition/plan_reshards.h"
#include "shardwise/propagation/propagate.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

constexpr const char* kSum = R"(sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                  %y: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<4x6xf32> {
    %0 = stablehlo.add %x, %y : tensor<4x6xf32>
    return %0 : tensor<4x6xf32>
  })";

Module after(std::initializer_list<Pass> passes) {
  Module module = parse_program(kSum);
  PassContext context;
  for (const Pass& pass : passes) module = pass.run(std::move(module), context);
  return module;
}

// The error of a pass for the text of a program that went through others; "" if the pass accepts it.
std::string refusal(const Pass& pass, std::initializer_list<Pass> before) {
  const Module module = after(before), read = parse_program(print(module));
  try {
    check_stage(pass.name, pass.takes, read);
  } catch (const ShardingError& error) {
    EXPECT_THROW(check_stage(pass.name, pass.takes, module), ShardingError);
    return error.message();
  }
  EXPECT_NO_THROW(check_stage(pass.name, pass.takes, module));
  return {};
}

TEST(CheckStage, EachPassOfThePipelineTakesWhatTheOnesBeforeItMake) {
  EXPECT_EQ(refusal(kPropagate, {}), "");
  EXPECT_EQ(refusal(kAssign, {kPropagate}), "");
  EXPECT_EQ(refusal(kPlanReshards, {kPropagate, kAssign}), "");
  EXPECT_EQ(refusal(kLocalize, {kPropagate, kAssign, kPlanReshards}), "");
  EXPECT_EQ(refusal(kOptimizeCollectives, {kPropagate, kAssign, kPlanReshards, kLocalize}), "");
}

TEST(CheckStage, APassThatComesTooEarlyNamesThoseThatAreMissing) {
  EXPECT_EQ(refusal(kLocalize, {kPropagate}),
            "localize: the program must have been through assign and plan_reshards, got a program at stage global; run "
            "assign and plan_reshards first");
  EXPECT_EQ(refusal(kLocalize, {kPropagate, kAssign}),
            "localize: the program must have been through plan_reshards, got a program at stage assigned; run "
            "plan_reshards first");
  EXPECT_EQ(refusal(kLocalize, {kPropagate, kPlanReshards}),
            "localize: the program must have been through assign and plan_reshards, got a program at stage global; run "
            "assign and plan_reshards first");
  EXPECT_EQ(refusal(kOptimizeCollectives, {kPropagate, kAssign, kPlanReshards}),
            "optimize_collectives: the program must have been through localize, got a program at stage resharded; run "
            "localize first");
}

TEST(CheckStage, APassThatComesTooLateNamesWhatItMustGoBefore) {
  for (const Pass& pass : {kPropagate, kAssign, kPlanReshards, kLocalize}) {
    EXPECT_EQ(refusal(pass, {kPropagate, kAssign, kPlanReshards, kLocalize}),
              std::string(pass.name) +
                  ": the program must not have been through localize, got a program at stage local; give it the "
                  "program before that");
  }
  EXPECT_EQ(refusal(kAssign, {kPropagate, kAssign, kPlanReshards}),
            "assign: the program must not have been through plan_reshards, got a program at stage resharded; give it "
            "the program before that");
}

TEST(CheckStage, CollectivesThatAUserWroteAreForPropagationAlone) {
  const Module module = parse_program(R"(sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
    %0 = sdy.all_gather [{"x"}] %x out_sharding=<@mesh, [{}]> : tensor<4xf32>
    return %0 : tensor<4xf32>
  })");
  EXPECT_EQ(module.stage, Stage::kGlobal);
  EXPECT_NO_THROW(check_stage("propagate", kPropagate.takes, module));
  try {
    check_stage("assign", kAssign.takes, module);
    FAIL();
  } catch (const ShardingError& error) {
    EXPECT_EQ(error.message(),
              "assign: the program must not have been through plan_reshards, got sdy.all_gather; give it the program "
              "before that");
  }
}

TEST(Stage, PropagationBeginsAnew) { EXPECT_EQ(after({kPropagate, kAssign, kPropagate}).stage, Stage::kPropagated); }

TEST(Stage, IsReadBackFromAssignedOn) {
  const std::vector<Pass> passes{kPropagate, kAssign, kPlanReshards, kLocalize};
  PassContext context;
  Module module = parse_program(kSum);
  for (const Pass& pass : passes) {
    module = pass.run(std::move(module), context);
    ASSERT_EQ(module.stage, pass.makes);
    const std::string text = print(module);
    const std::string attribute = " attributes {shardwise.stage = \"" + std::string(stage_name(module.stage)) + "\"} {";
    EXPECT_EQ(text.find(attribute) != std::string::npos, is_printed(module.stage)) << text;
    const Module again = parse_program(text);
    EXPECT_EQ(again.stage, is_printed(module.stage) ? module.stage : Stage::kGlobal);
    EXPECT_TRUE(structurally_equal(module, again));
    EXPECT_EQ(print(again), text);
  }
}

TEST(Stage, IsPartOfEquality) {
  const Module global = after({kPropagate, kAssign}), other = [&] {
    Module copy = after({kPropagate, kAssign});
    copy.stage = Stage::kResharded;
    return copy;
  }();
  EXPECT_FALSE(structurally_equal(global, other));
}

}  // namespace
}  // namespace shardwise
