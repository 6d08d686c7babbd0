// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/localize.h"

#include <regex>

#include <gtest/gtest.h>

#include "shardwise/analysis/collective_ledger.h"
#include "shardwise/ir/rewrite/structural_equality.h"
#include "shardwise/ir/verifier.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/partition/assign.h"
#include "shardwise/partition/optimize_collectives.h"
#include "shardwise/partition/plan_reshards.h"
#include "shardwise/propagation/propagate.h"
#include "support/program_texts.h"

namespace shardwise {
namespace {

using testing::ops_of;
using testing::program_of;

struct Localized {
  Module module;
  PassContext context = {};
};

Localized localized(std::string_view mesh, std::string_view arguments, std::string_view results,
                    std::string_view body) {
  Localized program{.module = program_of(mesh, arguments, results, body)};
  for (const Pass& pass : {kPropagate, kAssign, kPlanReshards, kLocalize, kOptimizeCollectives}) {
    program.module = pass.run(std::move(program.module), program.context);
  }
  return program;
}

Localized mlp(std::string_view mesh) {
  return localized(
      mesh,
      R"(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                      %arg1: tensor<32x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>}, %arg2: tensor<64x32xf32>)",
      "tensor<16x32xf32>",
      R"(%0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
                      %1 = stablehlo.dot_general %0, %arg2, contracting_dims = [1] x [0] : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
                      return %1 : tensor<16x32xf32>)");
}

TEST(Localize, DataAndModelParallelDotReducesOverModel) {
  const Localized program = mlp(R"("data"=4, "model"=2)");
  EXPECT_EQ(
      ops_of(program.module),
      R"(%0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
%1 = stablehlo.dot_general %0, %arg2, contracting_dims = [1] x [0] : (tensor<4x32xf32>, tensor<32x32xf32>) -> tensor<4x32xf32>
%2 = "shardwise.all_reduce"(%1) <{axes = #sdy<axis_ref_list{"model"}>, mesh = @mesh, reducer = "sum", cause = "reduction in dot_general"}> : (tensor<4x32xf32>) -> tensor<4x32xf32>
)");
  const std::vector<LedgerRow> rows = collective_ledger(program.module);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].name, "all_reduce");
  EXPECT_EQ(rows[0].axes, R"({"model"})");
  EXPECT_EQ(rows[0].bytes, 512);
  EXPECT_EQ(rows[0].group_size, 2);
  EXPECT_EQ(rows[0].cause, "reduction in dot_general");
}

TEST(Localize, TheProgramIsTheSameForAnyNumberOfDevices) {
  const auto without_numbers = [](const Localized& program) {
    return std::regex_replace(ops_of(program.module), std::regex("[0-9]+"), "N");
  };
  const std::string small = without_numbers(mlp(R"("data"=4, "model"=2)"));
  EXPECT_EQ(small, without_numbers(mlp(R"("data"=1024, "model"=2)")));
  EXPECT_EQ(small, without_numbers(mlp(R"("data"=16384, "model"=64)")));
}

TEST(Localize, MasksPaddingWithTheNeutralElement) {
  const Localized program =
      localized(R"("x"=4)", R"(%arg0: tensor<17xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})", "tensor<f32>",
                R"(%c = stablehlo.constant dense<0xFF800000> : tensor<f32>
                                       %0 = stablehlo.reduce(%arg0 init: %c) applies stablehlo.maximum across dimensions = [0] : (tensor<17xf32>, tensor<f32>) -> tensor<f32>
                                       return %0 : tensor<f32>)");
  const std::string text = ops_of(program.module);
  EXPECT_NE(text.find("stablehlo.select"), std::string::npos) << text;
  EXPECT_NE(text.find("dense<17> : tensor<i32>"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(reducer = "max")"), std::string::npos) << text;
}

TEST(Localize, GathersAreTrimmedAndSlicesPadded) {
  const Localized gathered =
      localized(R"("x"=4)", R"(%arg0: tensor<17xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})",
                R"(tensor<17xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>})", "return %arg0 : tensor<17xf32>");
  EXPECT_EQ(
      ops_of(gathered.module),
      R"(%0 = "shardwise.all_gather"(%arg0) <{gather = #sdy<list_of_axis_ref_lists[{"x"}]>, mesh = @mesh, cause = "result 0"}> : (tensor<5xf32>) -> tensor<20xf32>
%1 = stablehlo.slice %0 [0:17] : (tensor<20xf32>) -> tensor<17xf32>
)");
  const Localized sliced =
      localized(R"("x"=4)", R"(%arg0: tensor<17xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>})",
                R"(tensor<17xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})", "return %arg0 : tensor<17xf32>");
  EXPECT_EQ(ops_of(sliced.module),
            R"(%0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
%1 = stablehlo.pad %arg0, %0, low = [0], high = [3], interior = [0] : (tensor<17xf32>, tensor<f32>) -> tensor<20xf32>
%2 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"x"}>, mesh = @mesh}> : () -> tensor<i32>
%3 = stablehlo.constant dense<5> : tensor<i32>
%4 = stablehlo.multiply %2, %3 : tensor<i32>
%5 = stablehlo.dynamic_slice %1, %4, sizes = [5] : (tensor<20xf32>, tensor<i32>) -> tensor<5xf32>
)");
  const ValueId result = sliced.module.region(sliced.module.main().body).results[0];
  const GlobalPart& part = sliced.module.part(result);
  EXPECT_EQ(text(sliced.module.context().placement(part.placement)), R"(#shardwise.placement<@mesh, [{"x"}: 5]>)");
  EXPECT_EQ(sliced.module.global_type(result).shape, Dims{17});
  EXPECT_EQ(part.padding.kind, Padding::Kind::kFill);
}

// %arg0 is sliced to blocks of 5 rows after a padding of zeros; the functions leave garbage there.
TEST(Localize, ATextHasThePartsOfArgumentsAndResultsAndOthersOnRequest) {
  const std::string sharded = R"(tensor<17xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})";
  const Localized program = localized(
      R"("x"=4)", R"(%arg0: tensor<17xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>})", sharded + ", " + sharded,
      R"(%0 = stablehlo.tanh %arg0 : tensor<17xf32>
         %1 = stablehlo.exponential %0 : tensor<17xf32>
         return %1, %arg0 : tensor<17xf32>, tensor<17xf32>)");
  const std::string placement = R"(shardwise.placement = #shardwise.placement<@mesh, [{"x"}: 5]> : tensor<17xf32>)";
  const std::string text = print(program.module);
  EXPECT_NE(text.find("@main(%arg0: tensor<17xf32>) -> (tensor<5xf32> {" + placement + "}, tensor<5xf32> {" +
                      placement + ", shardwise.padding = dense<0.000000e+00> : tensor<f32>}) {\n"),
            std::string::npos)
      << text;
  const std::string all = print(program.module, {.placements = true});
  EXPECT_NE(all.find("stablehlo.tanh %5 {" + placement + "} : tensor<5xf32>"), std::string::npos) << all;
  for (const bool placements : {false, true}) {
    const Module again = parse(placements ? all : text, std::make_shared<Context>());
    verify(again);
    EXPECT_TRUE(structurally_equal(again, program.module)) << all;
    EXPECT_EQ(print(again, {.placements = placements}), placements ? all : text);
  }
}

TEST(Localize, MovesAnAxisByOneAllToAll) {
  const Localized program = localized(
      R"("x"=4)", R"(%arg0: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})",
      R"(tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})", "return %arg0 : tensor<8x6xf32>");
  EXPECT_EQ(ops_of(program.module),
            R"(%0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
%1 = stablehlo.pad %arg0, %0, low = [0, 0], high = [0, 2], interior = [0, 0] : (tensor<2x6xf32>, tensor<f32>) -> tensor<2x8xf32>
%2 = "shardwise.all_to_all"(%1) <{mesh = @mesh, moves = [{axes = #sdy<axis_ref_list{"x"}>, from_dim = 0 : i64, to_dim = 1 : i64}], cause = "result 0"}> : (tensor<2x8xf32>) -> tensor<8x2xf32>
)");
}

}  // namespace
}  // namespace shardwise
