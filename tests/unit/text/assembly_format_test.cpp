// SPDX-License-Identifier: Apache-2.0
#include "shardwise/text/assembly_format.h"

#include <gtest/gtest.h>

#include "ir/test_ops.h"
#include "shardwise/ir/rewrite/structural_equality.h"

namespace shardwise::testing {
namespace {

// Printed as written, both times, and the same program in generic form.
void expect_round_trip(const std::string& op) {
  const Module module = parse_test(program(op));
  EXPECT_EQ(body_of(module), op);
  const std::string generic = print(module, {.locations = false, .generic = true});
  const Module again = parse_test(generic);
  EXPECT_TRUE(structurally_equal(module, again)) << generic;
  EXPECT_EQ(body_of(again), op);
}

TEST(AssemblyFormat, EveryDirectiveRoundTrips) {
  expect_round_trip("%0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>");
  expect_round_trip("%0 = stablehlo.add %arg0, %arg1 {a = 1 : i64, note} : tensor<8x8xf32>");
  expect_round_trip("%0 = stablehlo.slice %arg0 [0:8:2, 3:5] : (tensor<8x8xf32>) -> tensor<4x2xf32>");
  expect_round_trip(
      "%0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [] x [] : (tensor<8x8xf32>, "
      "tensor<8x8xf32>) -> tensor<8x8x8x8xf32>");
  expect_round_trip(
      "%0 = stablehlo.dot_general %arg0, %arg1, batching_dims = [0] x [1], contracting_dims = [1] x [0], "
      "precision = [HIGHEST, DEFAULT], algorithm = <lhs_precision_type = tf32, lhs_component_count = 1, "
      "allow_imprecise_accumulation = false> : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8xf32>");
  expect_round_trip(
      "%0 = stablehlo.compare LT, %arg0, %arg1, FLOAT : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xi1>\n"
      "%1 = stablehlo.select %0, %arg0, %arg1 : tensor<8x8xi1>, tensor<8x8xf32>\n"
      "%2 = stablehlo.compare GE, %arg0, %arg1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xi1>");
  expect_round_trip("%0 = stablehlo.iota dim = 1 : tensor<2x3xi32>");
  expect_round_trip("%0 = stablehlo.reduce_precision %arg0, format = e5m10 : tensor<8x8xf32>");
  expect_round_trip("%0 = chlo.erf %arg0 : tensor<8x8xf32> -> tensor<8x8xf32>");
  expect_round_trip("%0 = test.pair %arg0 with %arg2 : (tensor<8x8xf32>, tensor<f32>) -> tensor<2xi64>");
  expect_round_trip(
      "%0:2 = func.call @g(%arg0) : (tensor<8x8xf32>) -> (tensor<f32>, tensor<f32>)\n"
      "%1 = stablehlo.add %0#0, %0#1 : tensor<f32>");
}

TEST(AssemblyFormat, ShardyCollectivesRoundTrip) {
  expect_round_trip("%0 = sdy.reshard %arg0 <@mesh, [{\"x\"}, {?}]> : tensor<8x8xf32>");
  expect_round_trip(
      "%0 = sdy.all_gather [{\"x\", \"y\":(1)2}, {}] %arg0 out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>");
  expect_round_trip(
      "%0 = sdy.all_reduce {\"y\"} %arg0 out_sharding=<@mesh, [{\"x\"}, {}], unreduced={\"y\"}> {n = 1 : i32} "
      ": tensor<8x8xf32>");
  expect_round_trip(
      "%0 = sdy.all_to_all [{\"x\"}: 0->1, {}: 1->0] %arg0 out_sharding=<@mesh, [{}, {\"x\"}]> : tensor<8x8xf32>");
}

TEST(AssemblyFormat, ReduceRoundTrips) {
  expect_round_trip(
      "%0 = stablehlo.reduce(%arg0 init: %arg2) applies stablehlo.add across dimensions = [1] {k = 1 : i64} : "
      "(tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>");
  const std::string types =
      "(tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)";
  expect_round_trip(
      "%0:2 = stablehlo.reduce(%arg0 init: %arg2), (%arg1 init: %arg2) across dimensions = [1] : " + types +
      "\n reducer(%arg3: tensor<f32>, %arg4: tensor<f32>) (%arg5: tensor<f32>, %arg6: tensor<f32>) {\n"
      "  %1 = stablehlo.add %arg3, %arg5 : tensor<f32>\n"
      "  stablehlo.return %1, %arg4 : tensor<f32>, tensor<f32>\n}");
}

TEST(AssemblyFormat, WhatItCannotShowIsPrintedGenerically) {
  expect_round_trip("%0 = \"stablehlo.iota\"() <{iota_dimension = 1 : i32}> : () -> tensor<2x3xi32>");
  expect_round_trip(
      "%0 = \"stablehlo.slice\"(%arg0) <{start_indices = array<i64: 1>}> : (tensor<8x8xf32>) -> tensor<2xf32>");
  expect_round_trip(
      "%0 = \"test.any\"(%arg0) <{a, b = 1.500000e+00 : f64}> {x.y = @f} : (tensor<8x8xf32>) -> tensor<f32>");
}

TEST(AssemblyFormat, TextsWithoutDialectPrefixParse) {
  const Module module =
      parse_test(program("%0 = add %a, %b : tensor<8x8xf32>\n%1 = call @g(%0) : (tensor<8x8xf32>) -> tensor<f32>"));
  EXPECT_EQ(body_of(module),
            "%0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>\n"
            "%1 = func.call @g(%0) : (tensor<8x8xf32>) -> tensor<f32>");
}

TEST(AssemblyFormat, MalformedFormatsAreBugs) {
  for (std::string_view format :
       {"`x", "operand", "operand(a)", "( `,` $x^", "( $x^ )?", "( `,` $x )?", ")?", "nothing", "custom<nothing>",
        "custom<axes>", "custom<slice_ranges>($a)", "$x^", "( ( `,` $x^ )? )?"}) {
    EXPECT_THROW(parse_format("test.op", format), InternalError) << format;
  }
  const AssemblyFormat format = parse_format("test.op", "operands ( `,` $x:kind^ )? sharding");
  ASSERT_EQ(format.elements.size(), 5u);
  EXPECT_EQ(format.elements[1].count, 2u);
  EXPECT_EQ(format.elements[3].mnemonic, "kind");
  EXPECT_EQ(format.sharding, "sharding");
  EXPECT_TRUE(format.shows("x") && format.shows("sharding") && !format.shows("y"));
}

}  // namespace
}  // namespace shardwise::testing
