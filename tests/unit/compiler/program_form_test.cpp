// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/program_form.h"

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
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

// What a pass says about a program that went through others; "" where it takes it.
std::string refusal(const Pass& pass, std::initializer_list<Pass> before) {
  Program program{.module = parse_program(kSum)};
  for (const Pass& one : before) one.run(program);
  try {
    check_form(pass.name, pass.takes, program);
  } catch (const ShardingError& error) {
    return error.message();
  }
  return {};
}

TEST(ProgramForm, EachPassOfThePipelineTakesWhatTheOnesBeforeItMake) {
  EXPECT_EQ(refusal(kPropagate, {}), "");
  EXPECT_EQ(refusal(kAssign, {kPropagate}), "");
  EXPECT_EQ(refusal(kPlanReshards, {kPropagate, kAssign}), "");
  EXPECT_EQ(refusal(kLocalize, {kPropagate, kAssign, kPlanReshards}), "");
  EXPECT_EQ(refusal(kOptimizeCollectives, {kPropagate, kAssign, kPlanReshards, kLocalize}), "");
}

TEST(ProgramForm, APassThatComesTooEarlyNamesThoseThatAreMissing) {
  const std::string early = refusal(kLocalize, {kPropagate});
  EXPECT_NE(early.find("must have been through assign and plan_reshards, got stablehlo.add from"), std::string::npos)
      << early;
  const std::string reshards = refusal(kLocalize, {kPropagate, kAssign});
  EXPECT_NE(reshards.find("must have been through plan_reshards, got sdy.reshard"), std::string::npos) << reshards;
  const std::string global = refusal(kOptimizeCollectives, {kPropagate, kAssign, kPlanReshards});
  EXPECT_NE(global.find("must have been through localize, got a sharded argument"), std::string::npos) << global;
}

TEST(ProgramForm, APassThatComesTooLateNamesWhatItMustGoBefore) {
  for (const Pass& pass : {kPropagate, kAssign, kPlanReshards, kLocalize}) {
    const std::string late = refusal(pass, {kPropagate, kAssign, kPlanReshards, kLocalize});
    EXPECT_NE(late.find("must not have been through localize, got shardwise."), std::string::npos) << late;
  }
  const std::string planned = refusal(kAssign, {kPropagate, kAssign, kPlanReshards});
  EXPECT_NE(planned.find("must not have been through plan_reshards, got sdy."), std::string::npos) << planned;
}

}  // namespace
}  // namespace shardwise
