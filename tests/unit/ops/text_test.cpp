// SPDX-License-Identifier: Apache-2.0
//
// The text of the real ops: what JAX prints parses, and what we print reads back as the same program.
#include <gtest/gtest.h>

#include "shardwise/ir/rewrite/structural_equality.h"
#include "shardwise/ir/verifier.h"
#include "shardwise/ops/registry.h"
#include "shardwise/text/parser.h"
#include "shardwise/text/printer.h"

namespace shardwise {
namespace {

void expect_round_trip(std::string_view text) {
  register_ops();
  const auto context = std::make_shared<Context>();
  const Module module = parse(text, context);
  verify(module);
  for (const PrintOptions options :
       {PrintOptions{false, false}, PrintOptions{true, false}, PrintOptions{false, true}}) {
    const std::string printed = print(module, options);
    const Module again = parse(printed, context);
    EXPECT_TRUE(structurally_equal(module, again)) << printed;
    EXPECT_EQ(print(again, options), printed);
  }
}

// The body of a function, as printed by this module and by jaxlib.
void expect_prints_as_written(const std::string& arguments, const std::string& body) {
  register_ops();
  const std::string text = "module {\n  func.func public @main(" + arguments + ") {\n" + body + "    return\n  }\n}\n";
  EXPECT_EQ(print(parse(text, std::make_shared<Context>())), text);
}

TEST(OpText, EveryPrettyFormPrintsAsJaxlibPrintsIt) {
  expect_prints_as_written(
      "%arg0: tensor<4x8xf32>, %arg1: tensor<4x8xf32>, %arg2: tensor<4x8xi1>, %arg3: tensor<i32>, %arg4: tensor<f32>",
      R"mlir(    %0 = stablehlo.add %arg0, %arg1 : tensor<4x8xf32>
    %1 = stablehlo.compare LT, %arg0, %arg1, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %2 = stablehlo.compare LT, %arg0, %arg1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %3 = stablehlo.select %arg2, %arg0, %arg1 : tensor<4x8xi1>, tensor<4x8xf32>
    %4 = stablehlo.clamp %arg4, %arg0, %arg4 : (tensor<f32>, tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %5 = stablehlo.convert %arg0 : (tensor<4x8xf32>) -> tensor<4x8xi32>
    %6 = stablehlo.convert %arg0 : tensor<4x8xf32>
    %7 = stablehlo.exponential %arg0 : tensor<4x8xf32>
    %8 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>
    %9 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [HIGHEST, DEFAULT] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4xf32>
    %10 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8x2xf32>
    %11 = stablehlo.broadcast_in_dim %arg4, dims = [] : (tensor<f32>) -> tensor<4x8x2xf32>
    %12 = stablehlo.reshape %arg0 : (tensor<4x8xf32>) -> tensor<32xf32>
    %13 = stablehlo.transpose %arg0, dims = [1, 0] : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %14 = stablehlo.slice %arg0 [0:4, 1:8:2] : (tensor<4x8xf32>) -> tensor<4x4xf32>
    %15 = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    %16 = stablehlo.pad %arg0, %arg4, low = [0, 1], high = [0, -1], interior = [0, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %17 = stablehlo.iota dim = 1 : tensor<4x8xi32>
    %18 = stablehlo.constant dense<1.500000e+00> : tensor<4x8xf32>
    %19 = stablehlo.reverse %arg0, dims = [1, 0] : tensor<4x8xf32>
    %20 = stablehlo.dynamic_slice %arg0, %arg3, %arg3, sizes = [1, 2] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x2xf32>
    %21 = stablehlo.dynamic_update_slice %arg0, %20, %arg3, %arg3 : (tensor<4x8xf32>, tensor<1x2xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    %22 = stablehlo.reduce(%arg0 init: %arg4) applies stablehlo.maximum across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %23 = stablehlo.is_finite %arg0 : (tensor<4x8xf32>) -> tensor<4x8xi1>
    %24 = stablehlo.power %arg0, %arg1 : tensor<4x8xf32>
    %25 = chlo.erf %arg0 : tensor<4x8xf32> -> tensor<4x8xf32>
)mlir");
}

TEST(OpText, WhatJaxPrintsRoundTrips) {
  expect_round_trip(R"mlir(#loc1 = loc("x")
#loc3 = loc("probe.py":14:2 to :75)
#loc20 = loc("<module>"(#loc3))
module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2]> {stablehlo.mesh = {axes = [{name = "data", size = 4 : i64}, {name = "model", size = 2 : i64}]}} loc(#loc3)
  func.func public @main(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"), %arg1: tensor<16x8xf32> loc("w")) -> (tensor<f32> {jax.result_info = "result[0]"}, tensor<8x8xf32> {jax.result_info = "result[1]"}) {
    %c = stablehlo.constant dense<[-1, 13, -6, 3, 9, 0, -7, -9]> : tensor<8xi8> loc(#loc34)
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32> loc(#loc48)
    %cst_1 = stablehlo.constant dense<0.000000e+00> : tensor<f32> loc(#loc34)
    %1 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<8x8xf32> loc(#loc48)
    %2 = stablehlo.maximum %0, %1 : tensor<8x8xf32> loc(#loc48)
    %3 = sdy.sharding_constraint %2 <@mesh, [{"data"}, {"model"}]> : tensor<8x8xf32> loc(#loc48)
    %cst_2 = stablehlo.constant dense<0xFF800000> : tensor<f32> loc(#loc34)
    %4 = stablehlo.reduce(%3 init: %cst_2) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32> loc(#loc48)
    return %4, %2 : tensor<f32>, tensor<8x8xf32> loc(#loc34)
  } loc(#loc3)
} loc(#loc3)
#loc34 = loc("jit(f)"(#loc20))
#loc35 = loc(callsite(#loc1 at #loc20))
#loc48 = loc("jit(f)/dot_general"(#loc35))
)mlir");
}

TEST(OpText, CollectivesOfGlobalValuesRoundTrip) {
  expect_round_trip(R"mlir(sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func public @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], unreduced={"y"}>}) -> tensor<8x8xf32> {
  %0 = sdy.all_reduce {"y"} %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %2 = sdy.reduce_scatter [{}, {"y"}] %a out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  %3 = sdy.all_to_all [{"x"}: 0->1] %1 out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  %4 = sdy.collective_permute %1 out_sharding=<@mesh, [{"y", "x":(1)2}, {}]> : tensor<8x8xf32>
  %5 = sdy.all_gather [{"x"}, {}] %1 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  %6 = sdy.all_slice [{"x"}, {"y"}] %5 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
})mlir");
}

TEST(OpText, LocalCollectivesRoundTrip) {
  expect_round_trip(R"mlir(module @main_module attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%a: tensor<8x8xf32>) -> tensor<64x8xf32> {
    %0 = "shardwise.all_gather"(%a) <{gather = #sdy<list_of_axis_ref_lists[{"x", "y"}, {}]>, mesh = @mesh}> : (tensor<8x8xf32>) -> tensor<64x8xf32>
    %1 = "shardwise.axis_index"() <{axes = #sdy<axis_ref_list{"y", "x"}>, mesh = @mesh}> : () -> tensor<i32>
    return %0 : tensor<64x8xf32>
  }
})mlir");
}

}  // namespace
}  // namespace shardwise
