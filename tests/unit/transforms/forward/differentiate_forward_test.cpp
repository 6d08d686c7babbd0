// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/forward/differentiate_forward.h"

#include <gtest/gtest.h>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/rewrite/dce.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

// The tangent of the first result along the last argument, a tangent of the first argument.
std::string tangent(const std::string& text) {
  Module module = parse_program(text);
  const std::vector<ValueId> arguments = module.region(module.main().body).arguments;
  const std::vector<ValueId> outputs = module.region(module.main().body).results;
  Builder builder(module, module.main().body);
  const Tangents made = append_jvp(builder, outputs, std::span(arguments).first(1), std::span(arguments).last(1));
  module.region(module.main().body).results = {made.values[0]};
  module.main().result_shardings.assign(1, {});
  dce(module);
  return body_text(module);
}

TEST(DifferentiateForward, TransposesTheGradientOfAnOp) {
  EXPECT_EQ(tangent(R"(func.func @main(%x: tensor<f32>, %t: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %x : tensor<f32>
    return %0 : tensor<f32>
  })"),
            "%0 = stablehlo.cosine %arg0 : tensor<f32>\n"
            "%1 = stablehlo.multiply %arg1, %0 : tensor<f32>\n"
            "return %1 : tensor<f32>\n");
}

TEST(DifferentiateForward, AppliesALinearOpToTheTangent) {
  EXPECT_EQ(
      tangent(R"(func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>, %t: tensor<2x3xf32>) -> tensor<3x2xf32> {
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
    %1 = stablehlo.add %0, %y : tensor<3x2xf32>
    return %1 : tensor<3x2xf32>
  })"),
      "%0 = stablehlo.transpose %arg2, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>\n"
      "return %0 : tensor<3x2xf32>\n");
}

}  // namespace
}  // namespace shardwise
