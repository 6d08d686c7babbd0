// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/decompose.h"

#include <gtest/gtest.h>

#include "shardwise/ops/build/decomposition.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

Module decomposed(const std::string& text) {
  Module module = parse_program(text);
  module.mark_origins();
  decompose_ops(module, is_composed);
  return module;
}

TEST(Decompose, ReplacesWhatADecompositionMakes) {
  EXPECT_EQ(body_text(decomposed(R"(func.func @main(%x: tensor<3x4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.unary_einsum %x, config = "ij->j" : (tensor<3x4xf32>) -> tensor<4xf32>
    %1 = chlo.tan %0 : tensor<4xf32> -> tensor<4xf32>
    %2 = chlo.conj %1 : tensor<4xf32> -> tensor<4xf32>
    return %2 : tensor<4xf32>
  })")),
            "%0 = stablehlo.constant dense<0.000000e+00> : tensor<f32>\n"
            "%1 = stablehlo.reduce(%arg0 init: %0) applies stablehlo.add across dimensions = [0] : "
            "(tensor<3x4xf32>, tensor<f32>) -> tensor<4xf32>\n"
            "%2 = stablehlo.tan %1 : tensor<4xf32>\n"
            "return %2 : tensor<4xf32>\n");
}

TEST(Decompose, KeepsLocationsOriginsAndShardings) {
  const Module module = decomposed(R"(sdy.mesh @mesh = <["x"=2]>
  func.func @main(%x: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<3x4xf32> {
    %0 = chlo.broadcast_add %x, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}
        : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32> loc("model.py":7:1)
    return %0 : tensor<3x4xf32>
  })");
  const std::vector<OpId>& ops = module.region(module.main().body).ops;
  ASSERT_EQ(ops.size(), 2U);
  for (const OpId op : ops) {
    EXPECT_EQ(module.context().location_text(module.op(op).loc), "model.py:7");
    EXPECT_EQ(module.op(op).origin, OpId{1});
  }
  EXPECT_FALSE(module.value(module.result(ops[0])).sharding);
  EXPECT_TRUE(module.value(module.result(ops[1])).sharding);
  EXPECT_EQ(module.value(module.result(ops[1])).origin, (ValueId{3}));
}

TEST(Decompose, LeavesWhatItCannotKnow) {
  const std::string text = R"(func.func @main(%x: tensor<4xf32>, %v: tensor<f32>, %n: tensor<1xi32>) -> tensor<6xf32> {
    %0 = stablehlo.dynamic_pad %x, %v, %n, %n, %n : (tensor<4xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<6xf32>
    return %0 : tensor<6xf32>
  })";
  EXPECT_NE(body_text(decomposed(text)).find("dynamic_pad"), std::string::npos);
}

}  // namespace
}  // namespace shardwise
