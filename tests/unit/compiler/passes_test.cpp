// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/passes.h"

#include <set>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/compiler/compile.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

constexpr const char* kShardedTanh = R"(sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
    %0 = stablehlo.tanh %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  })";

std::string text_after(const std::vector<std::string>& names) {
  CompileUnit unit(parse_program(kShardedTanh));
  run_passes(unit, passes_called(names), {.verify = true});
  return print(*unit.module);
}

TEST(NamedPasses, BeginWithThePipelineAndHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Pass& pass : named_passes()) {
    EXPECT_TRUE(names.insert(pass.name).second) << pass.name;
    EXPECT_FALSE(pass.doc.empty()) << pass.name;
    EXPECT_EQ(find_named_pass(pass.name), &pass);
  }
  for (size_t i = 0; i < pipeline().size(); ++i) EXPECT_EQ(named_passes()[i].name, pipeline()[i].name);
  EXPECT_EQ(find_named_pass("optimise"), nullptr);
}

TEST(NamedPasses, DashesAreUnderscores) {
  ASSERT_NE(find_named_pass("plan_reshards"), nullptr);
  EXPECT_EQ(find_named_pass("plan-reshards"), find_named_pass("plan_reshards"));
  EXPECT_EQ(text_after({"propagate-basic"}), text_after({"propagate_basic"}));
}

TEST(NamedPasses, RunOneAfterAnother) {
  EXPECT_EQ(text_after({}), text_after({"parse"}));
  EXPECT_NE(text_after({"propagate-basic"}).find("{\"x\", ?}"), std::string::npos);
  EXPECT_NE(text_after({"propagate", "assign", "plan_reshards", "localize"}).find("tensor<2xf32>"), std::string::npos);
}

TEST(NamedPasses, AnUnknownNameIsAnErrorBeforeAnyPassRuns) {
  CompileUnit unit(parse_program(kShardedTanh));
  const std::string before = print(*unit.module);
  EXPECT_THROW(run_to_explain(std::vector<std::string>{"propagate", "optimise"}, unit), ShardingError);
  EXPECT_EQ(print(*unit.module), before);
}

TEST(NamedPasses, ExplainedProgramsKeepTheRegionsOfCalls) {
  CompileUnit unit(parse_program(R"(sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
    %0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @f(%y: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.tanh %y : tensor<4xf32>
    return %0 : tensor<4xf32>
  })"));
  run_to_explain(std::vector<std::string>{"simplify", "propagate"}, unit);
  for (const SharedModule& module : {unit.global, unit.propagated}) {
    EXPECT_NE(print(*module).find("sdy.named_computation<\"f\">"), std::string::npos) << print(*module);
  }
  EXPECT_TRUE(unit.context.provenance.called.contains("f"));
  EXPECT_EQ(print(*unit.global).find("per_value"), std::string::npos);
  EXPECT_EQ(unit.propagated->stage, Stage::kPropagated);
  EXPECT_EQ(unit.propagated_by, find_named_pass("propagate"));
}

}  // namespace
}  // namespace shardwise
