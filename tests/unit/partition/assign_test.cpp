// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/assign.h"

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "support/program_texts.h"

namespace shardwise {
namespace {

using testing::ops_of;
using testing::program_of;

constexpr std::string_view kDataModel = R"("data"=4, "model"=2)";

std::string assigned(std::string_view mesh, std::string_view arguments, std::string_view results,
                     std::string_view body) {
  PassContext context;
  return ops_of(assign(program_of(mesh, arguments, results, body), context));
}

TEST(Assign, LeavesAContractionOfShardsToBeReduced) {
  EXPECT_EQ(
      assigned(
          kDataModel,
          R"(%arg0: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>},
                        %arg1: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})",
          R"(tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})",
          R"(%0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>} : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
                        return %0 : tensor<16x32xf32>)"),
      R"(%0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}], unreduced={"model"}>]>} : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
%1 = sdy.reshard %0 <@mesh, [{"data"}, {}]> {cause = "reduction in dot_general"} : tensor<16x32xf32>
)");
}

// Both gradients of a weight that is used twice: one reduction of their sum, which the annotation scatters.
TEST(Assign, AddsPendingSumsBeforeTheyAreReduced) {
  EXPECT_EQ(
      assigned(kDataModel, R"(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})",
               R"(tensor<32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>})",
               R"(%c = stablehlo.constant dense<0.0> : tensor<f32>
                        %0 = stablehlo.reduce(%arg0 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<16x32xf32>, tensor<f32>) -> tensor<32xf32>
                        %1 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>} : tensor<16x32xf32>
                        %2 = stablehlo.reduce(%1 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<16x32xf32>, tensor<f32>) -> tensor<32xf32>
                        %3 = stablehlo.add %0, %2 : tensor<32xf32>
                        return %3 : tensor<32xf32>)"),
      R"(%0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0.000000e+00> : tensor<f32>
%1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced={"data"}>]>} : (tensor<16x32xf32>, tensor<f32>) -> tensor<32xf32>
%2 = stablehlo.tanh %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}, {}]>]>} : tensor<16x32xf32>
%3 = stablehlo.reduce(%2 init: %0) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced={"data"}>]>} : (tensor<16x32xf32>, tensor<f32>) -> tensor<32xf32>
%4 = stablehlo.add %1, %3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced={"data"}>]>} : tensor<32xf32>
%5 = sdy.reshard %4 <@mesh, [{"data"}]> {cause = "reduction in reduce"} : tensor<32xf32>
)");
}

TEST(Assign, ReducesBeforeAnOpThatIsNotLinear) {
  EXPECT_EQ(
      assigned(R"("x"=8)", R"(%arg0: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})",
               "tensor<32xf32>",
               R"(%c = stablehlo.constant dense<0.0> : tensor<f32>
                        %0 = stablehlo.reduce(%arg0 init: %c) applies stablehlo.add across dimensions = [0] : (tensor<16x32xf32>, tensor<f32>) -> tensor<32xf32>
                        %1 = stablehlo.exponential %0 : tensor<32xf32>
                        return %1 : tensor<32xf32>)"),
      R"(%0 = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>} dense<0.000000e+00> : tensor<f32>
%1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}], unreduced={"x"}>]>} : (tensor<16x32xf32>, tensor<f32>) -> tensor<32xf32>
%2 = sdy.reshard %1 <@mesh, [{}]> {cause = "reduction in reduce"} : tensor<32xf32>
%3 = stablehlo.exponential %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : tensor<32xf32>
)");
}

TEST(Assign, MovesAnOperandOnceForAllItsUsers) {
  EXPECT_EQ(
      assigned(R"("x"=8)", R"(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})",
               "tensor<8x4xf32>, tensor<8x4xf32>",
               R"(%0 = stablehlo.reverse %arg0, dims = [0] : tensor<8x4xf32>
                        %1 = stablehlo.reverse %arg0, dims = [0, 1] : tensor<8x4xf32>
                        return %0, %1 : tensor<8x4xf32>, tensor<8x4xf32>)"),
      R"(%0 = sdy.reshard %arg0 <@mesh, [{}, {}]> {cause = "operand 0 of reverse: the range [0, 8) crosses shards along dim 0"} : tensor<8x4xf32>
%1 = stablehlo.reverse %0, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : tensor<8x4xf32>
%2 = stablehlo.reverse %0, dims = [0, 1] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : tensor<8x4xf32>
)");
}

TEST(Assign, AConstraintThatChangesNothingVanishes) {
  EXPECT_EQ(assigned(R"("x"=8)", R"(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})",
                     R"(tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>})",
                     R"(%0 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}]> : tensor<8xf32>
                        %1 = sdy.sharding_constraint %0 <@mesh, [{}]> : tensor<8xf32>
                        return %1 : tensor<8xf32>)"),
            R"(%0 = sdy.reshard %arg0 <@mesh, [{}]> {cause = "annotation"} : tensor<8xf32>
)");
}

// 6 rows are 3 x 2: halves of the merged dim are no whole rows of the split one, so only what divides may stay sharded.
TEST(Assign, AReshapeKeepsOnlyAxesThatDivideItsFactors) {
  EXPECT_EQ(
      assigned(R"("x"=2)", R"(%arg0: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})", "tensor<3x2xf32>",
               R"(%0 = stablehlo.reshape %arg0 : (tensor<6xf32>) -> tensor<3x2xf32>
                        return %0 : tensor<3x2xf32>)"),
      R"(%0 = sdy.reshard %arg0 <@mesh, [{}]> {cause = "operand 0 of reshape"} : tensor<6xf32>
%1 = stablehlo.reshape %0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>} : (tensor<6xf32>) -> tensor<3x2xf32>
)");
}

TEST(Assign, RefusesShardingsOfDifferentMeshes) {
  register_ops();
  PassContext context;
  Module module = parse(R"(module @m {
  sdy.mesh @a = <["x"=2]>
  sdy.mesh @b = <["x"=4]>
  func.func public @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}]>}, %arg1: tensor<8xf32> {sdy.sharding = #sdy.sharding<@b, [{"x"}]>}) -> tensor<8xf32> {
    return %arg0 : tensor<8xf32>
  }
})",
                        std::make_shared<Context>());
  try {
    assign(std::move(module), context);
    FAIL();
  } catch (const ShardingError& error) {
    EXPECT_STREQ(
        error.what(),
        R"(sharding: all shardings must be of meshes over the same devices, got @a <["x"=2]> and @b <["x"=4]>; give both as many devices, or use one of them)");
  }
}

}  // namespace
}  // namespace shardwise
