// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/gradient/differentiate.h"

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ops/build/constants.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

// Appends the gradients of the function's first result with respect to `wrt`, and returns them.
void append_gradients(Module& module, const std::vector<ValueId>& wrt) {
  Builder builder(module, module.main().body);
  const ValueId output = module.region(module.main().body).results[0];
  const ValueId one = build_scalar(builder, Scalar::of_float(module.type(output).dtype, 1));
  std::vector<ValueId> gradients = append_vjp(builder, std::span(&output, 1), std::span(&one, 1), wrt).values;
  module.main().result_shardings.assign(gradients.size(), {});
  module.region(module.main().body).results = std::move(gradients);
}

// Differentiates `times` times with respect to the first argument.
std::string gradient(const std::string& text, int times = 1) {
  Module module = parse_program(text);
  const ValueId first = module.region(module.main().body).arguments[0];
  for (int i = 0; i < times; ++i) append_gradients(module, {first});
  dce(module);
  return body_text(module);
}

TEST(Differentiate, SumsTheCotangentsOfAllUses) {
  EXPECT_EQ(gradient(R"(func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32>
    %1 = stablehlo.multiply %0, %0 : tensor<f32>
    return %1 : tensor<f32>
  })"),
            "%0 = stablehlo.sine %arg0 : tensor<f32>\n"
            "%1 = stablehlo.add %0, %0 : tensor<f32>\n"
            "%2 = stablehlo.cosine %arg0 : tensor<f32>\n"
            "%3 = stablehlo.multiply %1, %2 : tensor<f32>\n"
            "return %3 : tensor<f32>\n");
}

TEST(Differentiate, GivesZerosWhereNothingFlows) {
  EXPECT_EQ(gradient(R"(func.func @main(%x: tensor<2xf32>, %y: tensor<f32>) -> tensor<f32> {
    return %y : tensor<f32>
  })"),
            "%0 = stablehlo.constant dense<0.000000e+00> : tensor<2xf32>\nreturn %0 : tensor<2xf32>\n");
}

TEST(Differentiate, ExpandsAnOpThatOthersMakeUp) {
  EXPECT_EQ(gradient(R"(func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = chlo.conj %x : tensor<f32> -> tensor<f32>
    %1 = chlo.broadcast_multiply %0, %0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %1 : tensor<f32>
  })"),
            "%0 = stablehlo.add %arg0, %arg0 : tensor<f32>\n"
            "return %0 : tensor<f32>\n");
}

TEST(Differentiate, ConstrainsTheCotangentOfAConstraint) {
  const std::string body = gradient(R"(sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = sdy.sharding_constraint %x <@mesh, []> : tensor<f32>
    return %0 : tensor<f32>
  })");
  EXPECT_NE(body.find("= sdy.sharding_constraint %1 <@mesh, []>"), std::string::npos) << body;
}

TEST(Differentiate, WorksOnItsOwnResult) {
  const std::string body = gradient(R"(func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32>
    return %0 : tensor<f32>
  })",
                                    2);
  EXPECT_NE(body.find("stablehlo.sine %arg0"), std::string::npos) << body;
}

TEST(Differentiate, StopsAtWrt) {
  Module module = parse_program(R"(func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32>
    %1 = stablehlo.multiply %0, %x : tensor<f32>
    return %1 : tensor<f32>
  })");
  const Region body = module.region(module.main().body);
  const ValueId sine = module.result(body.ops[0]);
  append_gradients(module, {sine, body.arguments[0]});
  dce(module);
  EXPECT_EQ(body_text(module),
            "%0 = stablehlo.sine %arg0 : tensor<f32>\n"
            "return %arg0, %0 : tensor<f32>, tensor<f32>\n");
}

TEST(Differentiate, RefusesWhatHasNoGradient) {
  const std::string integer =
      "func.func @main(%x: tensor<i32>, %y: tensor<f32>) -> tensor<f32> { return %y : tensor<f32> }";
  EXPECT_THROW(gradient(integer), DTypeError);
}

}  // namespace
}  // namespace shardwise
