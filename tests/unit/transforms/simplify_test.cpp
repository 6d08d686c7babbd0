// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/simplify.h"

#include <gtest/gtest.h>

#include "shardwise/ir/rewrite/dce.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

std::string simplified(const std::string& text) {
  PassContext context;
  return body_text(simplify(parse_program(text), context));
}

TEST(Simplify, MergesEqualOps) {
  EXPECT_EQ(simplified(R"(func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %x, %y : tensor<4xf32>
    %1 = stablehlo.add %y, %x : tensor<4xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<4xf32>
    return %2 : tensor<4xf32>
  })"),
            "%0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>\n"
            "%1 = stablehlo.multiply %0, %0 : tensor<4xf32>\n"
            "return %1 : tensor<4xf32>\n");
}

TEST(Simplify, KeepsOpsWhoseShardingsDiffer) {
  const std::string body = simplified(R"(sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine %x {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} : tensor<4xf32>
    %1 = stablehlo.sine %x : tensor<4xf32>
    %2 = stablehlo.multiply %0, %1 : tensor<4xf32>
    return %2 : tensor<4xf32>
  })");
  EXPECT_NE(body.find("multiply %0, %1"), std::string::npos) << body;
}

TEST(Simplify, FoldsMovedSplats) {
  EXPECT_EQ(simplified(R"(func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
    %c = stablehlo.constant dense<1.5> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<2x4xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<2x4xf32>) -> tensor<4x2xf32>
    %2 = stablehlo.add %x, %1 : tensor<4x2xf32>
    return %2 : tensor<4x2xf32>
  })"),
            "%0 = stablehlo.constant dense<1.500000e+00> : tensor<4x2xf32>\n"
            "%1 = stablehlo.add %arg0, %0 : tensor<4x2xf32>\n"
            "return %1 : tensor<4x2xf32>\n");
}

TEST(Simplify, RemovesUnusedOpsButNotConstraints) {
  const std::string text = R"(sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine %x : tensor<4xf32>
    %1 = stablehlo.cosine %0 : tensor<4xf32>
    %2 = sdy.sharding_constraint %x <@mesh, [{"x"}]> : tensor<4xf32>
    return %x : tensor<4xf32>
  })";
  EXPECT_EQ(simplified(text),
            "%0 = sdy.sharding_constraint %arg0 <@mesh, [{\"x\"}]> : tensor<4xf32>\nreturn %arg0 : tensor<4xf32>\n");
  Module module = parse_program(text);
  EXPECT_EQ(dce(module, UnusedConstraints::kRemove), 3);
}

TEST(Simplify, DropsAnnotationsInCombiners) {
  Module module = parse_program(R"(sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<4x3xf32>, %z: tensor<f32>) -> tensor<4xf32> {
    %0 = "stablehlo.reduce"(%x, %z) <{dimensions = array<i64: 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %1 = sdy.sharding_constraint %q <@mesh, []> : tensor<f32>
      %2 = sdy.reshard %1 <@mesh, []> : tensor<f32>
      %3 = stablehlo.add %p, %2 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  })");
  PassContext context;
  module = simplify(std::move(module), context);
  EXPECT_EQ(body_text(module),
            "%0 = stablehlo.reduce(%arg0 init: %arg1) applies stablehlo.add across dimensions = [1] : "
            "(tensor<4x3xf32>, tensor<f32>) -> tensor<4xf32>\n"
            "return %0 : tensor<4xf32>\n");
}

// ---- one form of each movement: tests/golden/simplify shows more of them -------------------------------------------

TEST(Simplify, FoldedOpsHaveTheLocationAndTheOriginOfTheOldOnes) {
  Module module = parse_program(R"(sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<4xf32>) -> tensor<4x1xf32> {
    %0 = stablehlo.broadcast_in_dim %x, dims = [0] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {?}]>]>}
        : (tensor<4xf32>) -> tensor<4x1xf32> loc("train.py":7:0)
    return %0 : tensor<4x1xf32>
  })");
  module.mark_origins();
  const Value before = module.value(module.region(module.main().body).results[0]);
  const std::string place = module.context().location_text(module.op(before.op).loc);
  PassContext context;
  module = simplify(std::move(module), context);
  const Value after = module.value(module.region(module.main().body).results[0]);
  EXPECT_EQ(OpView(module, after.op).name(), "stablehlo.reshape");
  EXPECT_EQ(module.context().location_text(module.op(after.op).loc), place);
  EXPECT_NE(place.find("train.py:7"), std::string::npos) << place;
  EXPECT_EQ(module.op(after.op).origin, before.op);
  EXPECT_EQ(after.origin, before.origin);
  EXPECT_EQ(after.sharding, before.sharding);
}

// The dims that a rule names are those of this op.
TEST(Simplify, KeepsOpsWithARuleOfTheUser) {
  const std::string reshape =
      "stablehlo.broadcast_in_dim %arg0, dims = [0] {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i, j]) {i=4, "
      "j=1}, custom>} : (tensor<4xf32>) -> tensor<4x1xf32>";
  const std::string product =
      "stablehlo.dot_general %1, %0, contracting_dims = [0] x [0] {sdy.sharding_rule = #sdy.op_sharding_rule<([k, j], "
      "[k, i])->([j, i]) {i=1, j=3, k=4}, custom>} : (tensor<4x3xf32>, tensor<4x1xf32>) -> tensor<3x1xf32>";
  const std::string transpose = "stablehlo.transpose %arg1, dims = [1, 0] : (tensor<3x4xf32>) -> tensor<4x3xf32>";
  const std::string body = "%0 = " + reshape + "\n%1 = " + transpose + "\n%2 = " + product + "\n";
  EXPECT_EQ(simplified("func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<3x4xf32>) -> tensor<3x1xf32> {\n" + body +
                       "return %2 : tensor<3x1xf32>\n}"),
            body + "return %2 : tensor<3x1xf32>\n");
}

// As a reshape, it has no sharding rule.
TEST(Simplify, KeepsBroadcastsWithoutElements) {
  const std::string body =
      "%0 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<0xf32>) -> tensor<0x1xf32>\n"
      "return %0 : tensor<0x1xf32>\n";
  EXPECT_EQ(simplified("func.func @main(%arg0: tensor<0xf32>) -> tensor<0x1xf32> {\n" + body + "}"), body);
}

// Both readers of the reshape are one op, so nothing else reads it.
TEST(Simplify, CountsEqualReadersOnce) {
  EXPECT_EQ(simplified(R"(func.func @main(%x: tensor<4x6xf32>) -> (tensor<8x3xf32>, tensor<8x3xf32>) {
    %0 = stablehlo.reshape %x : (tensor<4x6xf32>) -> tensor<24xf32>
    %1 = stablehlo.reshape %0 : (tensor<24xf32>) -> tensor<8x3xf32>
    %2 = stablehlo.reshape %0 : (tensor<24xf32>) -> tensor<8x3xf32>
    %3 = stablehlo.sine %0 : tensor<24xf32>
    return %1, %2 : tensor<8x3xf32>, tensor<8x3xf32>
  })"),
            "%0 = stablehlo.reshape %arg0 : (tensor<4x6xf32>) -> tensor<8x3xf32>\n"
            "return %0, %0 : tensor<8x3xf32>, tensor<8x3xf32>\n");
}

}  // namespace
}  // namespace shardwise
