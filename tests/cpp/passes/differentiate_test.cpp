// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/differentiate.h"

#include <gtest/gtest.h>

#include "passes/program_text.h"
#include "shardwise/base/error.h"
#include "shardwise/passes/simplify.h"

namespace shardwise {
namespace {

std::string gradient(const std::string& text, const GradientOptions& options = {}) {
  Module module = parse_program(text);
  Function made = differentiate(module, 0, options);
  made.name = "main";
  module.functions.assign(1, made);
  remove_unused_ops(module);
  return body_text(module);
}

TEST(Differentiate, SumsTheCotangentsOfAllUses) {
  EXPECT_EQ(gradient(R"(func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32>
    %1 = stablehlo.multiply %0, %0 : tensor<f32>
    return %1 : tensor<f32>
  })"),
            "%0 = stablehlo.sine %arg0 : tensor<f32>\n"
            "%1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
            "%2 = stablehlo.multiply %1, %0 : tensor<f32>\n"
            "%3 = stablehlo.multiply %1, %0 : tensor<f32>\n"
            "%4 = stablehlo.add %2, %3 : tensor<f32>\n"
            "%5 = stablehlo.cosine %arg0 : tensor<f32>\n"
            "%6 = stablehlo.multiply %4, %5 : tensor<f32>\n"
            "return %6 : tensor<f32>\n");
}

TEST(Differentiate, GivesZerosWhereNothingFlows) {
  EXPECT_EQ(gradient(R"(func.func @main(%x: tensor<2xf32>, %y: tensor<f32>) -> tensor<f32> {
    return %y : tensor<f32>
  })"),
            "%0 = stablehlo.constant dense<0.000000e+00> : tensor<2xf32>\nreturn %0 : tensor<2xf32>\n");
}

TEST(Differentiate, ReturnsTheValueToo) {
  EXPECT_EQ(gradient(R"(func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.negate %x : tensor<f32>
    return %0 : tensor<f32>
  })",
                     {.with_value = true}),
            "%0 = stablehlo.negate %arg0 : tensor<f32>\n"
            "%1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
            "%2 = stablehlo.negate %1 : tensor<f32>\n"
            "return %0, %2 : tensor<f32>, tensor<f32>\n");
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
  Module module = parse_program(R"(func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32>
    return %0 : tensor<f32>
  })");
  differentiate(module, 0, {});
  Function second = differentiate(module, 1, {});
  second.name = "main";
  module.functions.assign(1, second);
  const std::string body = body_text(module);
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
  const ValueId wrt[] = {sine, body.arguments[0]};
  Builder builder(module, module.main().body);
  module.region(module.main().body).results = append_gradient(builder, body.results[0], wrt);
  module.main().result_shardings.resize(2);
  remove_unused_ops(module);
  EXPECT_EQ(body_text(module),
            "%0 = stablehlo.sine %arg0 : tensor<f32>\n"
            "%1 = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
            "%2 = stablehlo.multiply %1, %arg0 : tensor<f32>\n"
            "%3 = stablehlo.multiply %1, %0 : tensor<f32>\n"
            "return %2, %3 : tensor<f32>, tensor<f32>\n");
}

TEST(Differentiate, RefusesWhatHasNoGradient) {
  const std::string vector = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { return %x : tensor<2xf32> }";
  const std::string integer = "func.func @main(%x: tensor<i32>, %y: tensor<f32>) -> tensor<f32> { return %y : tensor<f32> }";
  EXPECT_THROW(gradient(vector), ShapeError);
  EXPECT_THROW(gradient(integer), DTypeError);
}

}  // namespace
}  // namespace shardwise
