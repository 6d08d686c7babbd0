// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ir/verifier.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/transforms/gradient/differentiate.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

// The gradient of the function's first result with respect to its first argument.
std::string verified_gradient(const std::string& text) {
  Module module = parse_program(text);
  const RegionId body = module.main().body;
  const ValueId wrt = module.region(body).arguments[0], output = module.region(body).results[0];
  Builder builder(module, body);
  const ValueId one = build_splat(builder, module.type(output).shape, Scalar::of_float(module.type(output).dtype, 1));
  module.region(body).results = append_vjp(builder, std::span(&output, 1), std::span(&one, 1), {&wrt, 1}).values;
  module.main().result_shardings = {{}};
  dce(module);
  verify(module);
  return body_text(module);
}

std::string loop(const std::string& limit, const std::string& next) {
  return R"(func.func @main(%x: tensor<f32>, %n: tensor<i32>) -> tensor<f32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %three = stablehlo.constant dense<3> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %c = %x) : tensor<i32>, tensor<f32>
    cond {
      %p = stablehlo.compare LT, %i, %)" +
         limit + R"( : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
      %d = stablehlo.)" +
         next + R"( : tensor<f32>
      stablehlo.return %j, %d : tensor<i32>, tensor<f32>
    }
    return %r#1 : tensor<f32>
  })";
}

TEST(DifferentiateRegions, ALoopSavesARowForEachTrip) {
  EXPECT_EQ(verified_gradient(loop("three", "exponential %c")), R"(%0 = stablehlo.constant dense<0> : tensor<i32>
%1 = stablehlo.constant dense<3> : tensor<i32>
%2 = stablehlo.constant dense<0.000000e+00> : tensor<3xf32>
%3:3 = stablehlo.while(%arg2 = %0, %arg3 = %arg0, %arg4 = %2) : tensor<i32>, tensor<f32>, tensor<3xf32>
cond {
%4 = stablehlo.compare LT, %arg2, %1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
stablehlo.return %4 : tensor<i1>
}
do {
%5 = stablehlo.constant dense<1> : tensor<i32>
%6 = stablehlo.add %arg2, %5 : tensor<i32>
%7 = stablehlo.exponential %arg3 : tensor<f32>
%8 = stablehlo.reshape %7 : (tensor<f32>) -> tensor<1xf32>
%9 = stablehlo.dynamic_update_slice %arg4, %8, %arg2 : (tensor<3xf32>, tensor<1xf32>, tensor<i32>) -> tensor<3xf32>
stablehlo.return %6, %7, %9 : tensor<i32>, tensor<f32>, tensor<3xf32>
}
%10 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
%11 = stablehlo.constant dense<2> : tensor<i32>
%12:2 = stablehlo.while(%arg5 = %11, %arg6 = %10) : tensor<i32>, tensor<f32>
cond {
%13 = stablehlo.constant dense<0> : tensor<i32>
%14 = stablehlo.compare GE, %arg5, %13 : (tensor<i32>, tensor<i32>) -> tensor<i1>
stablehlo.return %14 : tensor<i1>
}
do {
%15 = stablehlo.dynamic_slice %3#2, %arg5, sizes = [1] : (tensor<3xf32>, tensor<i32>) -> tensor<1xf32>
%16 = stablehlo.reshape %15 : (tensor<1xf32>) -> tensor<f32>
%17 = stablehlo.multiply %arg6, %16 : tensor<f32>
%18 = stablehlo.constant dense<-1> : tensor<i32>
%19 = stablehlo.add %arg5, %18 : tensor<i32>
stablehlo.return %19, %17 : tensor<i32>, tensor<f32>
}
return %12#1 : tensor<f32>
)");
}

TEST(DifferentiateRegions, ALinearLoopSavesNothing) {
  const std::string text = verified_gradient(loop("three", "negate %c"));
  EXPECT_EQ(text.find("dynamic_update_slice"), std::string::npos) << text;
  EXPECT_EQ(text.find("%arg2 = %0, %arg3 = %arg0"), std::string::npos) << text;  // the first loop is not read
}

TEST(DifferentiateRegions, RefusesALoopWithoutAConstantNumberOfTrips) {
  EXPECT_THROW(verified_gradient(loop("n", "exponential %c")), UnsupportedError);
}

TEST(DifferentiateRegions, ALoopWithoutTripsIsTheIdentity) {
  EXPECT_EQ(verified_gradient(loop("zero", "exponential %c")),
            "%0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>\nreturn %0 : tensor<f32>\n");
}

TEST(DifferentiateRegions, ABranchSavesWhatItDoesNotComputeAgain) {
  EXPECT_EQ(
      verified_gradient(R"(func.func @main(%x: tensor<2xf32>, %w: tensor<2x2xf32>, %i: tensor<i32>) -> tensor<2xf32> {
    %r = "stablehlo.case"(%i) ({
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [0] x [0] : (tensor<2xf32>, tensor<2x2xf32>) -> tensor<2xf32>
      %1 = stablehlo.exponential %0 : tensor<2xf32>
      stablehlo.return %1 : tensor<2xf32>
    }, {
      %0 = stablehlo.sine %x : tensor<2xf32>
      %1 = stablehlo.sine %0 : tensor<2xf32>
      stablehlo.return %1 : tensor<2xf32>
    }) : (tensor<i32>) -> tensor<2xf32>
    return %r : tensor<2xf32>
  })"),
      R"(%0 = "stablehlo.case"(%arg2) ({
%1 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [0] x [0] : (tensor<2xf32>, tensor<2x2xf32>) -> tensor<2xf32>
%2 = stablehlo.exponential %1 : tensor<2xf32>
stablehlo.return %2 : tensor<2xf32>
}, {
%3 = stablehlo.sine %arg0 : tensor<2xf32>
%4 = stablehlo.sine %3 : tensor<2xf32>
stablehlo.return %4 : tensor<2xf32>
}) : (tensor<i32>) -> tensor<2xf32>
%5 = stablehlo.constant dense<1.000000e+00> : tensor<2xf32>
%6 = "stablehlo.case"(%arg2) ({
%7 = stablehlo.multiply %5, %0 : tensor<2xf32>
%8 = stablehlo.dot_general %7, %arg1, contracting_dims = [0] x [1] : (tensor<2xf32>, tensor<2x2xf32>) -> tensor<2xf32>
stablehlo.return %8 : tensor<2xf32>
}, {
%9 = stablehlo.sine %arg0 : tensor<2xf32>
%10 = stablehlo.cosine %9 : tensor<2xf32>
%11 = stablehlo.multiply %5, %10 : tensor<2xf32>
%12 = stablehlo.cosine %arg0 : tensor<2xf32>
%13 = stablehlo.multiply %11, %12 : tensor<2xf32>
stablehlo.return %13 : tensor<2xf32>
}) : (tensor<i32>) -> tensor<2xf32>
return %6 : tensor<2xf32>
)");
}

TEST(DifferentiateRegions, CallsAreInlined) {
  EXPECT_EQ(verified_gradient(R"(func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = func.call @f(%x) : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
  func.func private @f(%x: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32>
    return %0 : tensor<f32>
  })"),
            "%0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>\n"
            "%1 = stablehlo.cosine %arg0 : tensor<f32>\n"
            "%2 = stablehlo.multiply %0, %1 : tensor<f32>\n"
            "return %2 : tensor<f32>\n");
}

}  // namespace
}  // namespace shardwise
