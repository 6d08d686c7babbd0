// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/named_passes.h"

#include <set>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/compiler/pipeline.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

constexpr const char* kTanh = R"(sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
    %0 = stablehlo.tanh %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  })";

std::string after(const std::vector<std::string>& names) {
  Program program{.module = parse_program(kTanh)};
  run_passes(names, program);
  return print(program.module);
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
  EXPECT_EQ(after({"propagate-basic"}), after({"propagate_basic"}));
}

TEST(NamedPasses, RunOneAfterAnother) {
  EXPECT_EQ(after({}), after({"parse"}));
  EXPECT_NE(after({"propagate-basic"}).find("{\"x\", ?}"), std::string::npos);
  EXPECT_NE(after({"propagate", "assign", "plan_reshards", "localize"}).find("tensor<2xf32>"), std::string::npos);
}

TEST(NamedPasses, AnUnknownNameIsAnErrorBeforeAnyPassRuns) {
  Program program{.module = parse_program(kTanh)};
  const std::string before = print(program.module);
  EXPECT_THROW(run_passes(std::vector<std::string>{"propagate", "optimise"}, program), ShardingError);
  EXPECT_EQ(print(program.module), before);
}

}  // namespace
}  // namespace shardwise
