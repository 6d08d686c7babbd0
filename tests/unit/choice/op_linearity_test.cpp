// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/op_linearity.h"

#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "support/program_text.h"

namespace shardwise {
namespace {

// The last op of main, of two floats named %arg0 and %arg1 and a predicate %arg2.
struct LastOp {
  explicit LastOp(std::string_view dtype, std::string_view ops)
      : module(parse_program("func.func @main(%arg0: tensor<8x" + std::string(dtype) + ">, %arg1: tensor<8x" +
                             std::string(dtype) + ">, %arg2: tensor<8xi1>) {\n" + std::string(ops) +
                             "\n  return\n}\n")),
        linearity(module),
        id(module.region(module.main().body).ops.back()) {}
  OpLinearity by(Reducer reducer) const { return linearity.of(id, reducer); }

  Module module;
  ProgramLinearity linearity;
  OpId id;
};

TEST(OpLinearity, OfAnAddIsJointInSumsAlone) {
  const LastOp op("f32", "%0 = stablehlo.add %arg0, %arg1 : tensor<8xf32>");
  const OpLinearity sums = op.by(Reducer::kSum);
  EXPECT_EQ(sums.kind, Linear::kJoint);
  EXPECT_TRUE(sums.combines);
  EXPECT_TRUE(sums.passes({true, true}));
  EXPECT_TRUE(sums.passes({true, false}));
  EXPECT_FALSE(sums.passes({false, false}));
  EXPECT_FALSE(op.by(Reducer::kMax).may_pass());
  EXPECT_FALSE(op.by(Reducer::kNone).may_pass());
}

TEST(OpLinearity, OfAMultiplyIsInOneOperandAtATime) {
  const LastOp op("f32", "%0 = stablehlo.multiply %arg0, %arg1 : tensor<8xf32>");
  const OpLinearity sums = op.by(Reducer::kSum);
  EXPECT_EQ(sums.kind, Linear::kEach);
  EXPECT_TRUE(sums.may_be_pending(0) && sums.may_be_pending(1));
  EXPECT_TRUE(sums.passes({false, true}));
  EXPECT_FALSE(sums.passes({true, true}));
  EXPECT_TRUE(op.by(Reducer::kProd).combines);
}

TEST(OpLinearity, OfASelectIsJointInItsBranchesAndCopiesThem) {
  const LastOp op("f32", "%0 = stablehlo.select %arg2, %arg0, %arg1 : tensor<8xi1>, tensor<8xf32>");
  const OpLinearity sums = op.by(Reducer::kSum);
  EXPECT_EQ(sums.kind, Linear::kJoint);
  EXPECT_FALSE(sums.may_be_pending(0));
  EXPECT_FALSE(sums.passes({true, true, false}));
  EXPECT_TRUE(sums.passes({false, true, true}));
  EXPECT_TRUE(sums.copies_inexact);
  EXPECT_FALSE(LastOp("i32", "%0 = stablehlo.select %arg2, %arg0, %arg1 : tensor<8xi1>, tensor<8xi32>")
                   .by(Reducer::kSum)
                   .copies_inexact);
}

TEST(OpLinearity, AConstantIsAFreeAddendWhereItIsNeutral) {
  const auto is_free = [](std::string_view constant, std::string_view name, Reducer reducer) {
    const std::string text = "%c = stablehlo.constant dense<" + std::string(constant) +
                             "> : tensor<f32>\n%0 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> "
                             "tensor<8xf32>\n%1 = stablehlo." +
                             std::string(name) + " %arg0, %0 : tensor<8xf32>";
    const LastOp op("f32", text);
    const OpLinearity found = op.by(reducer);
    EXPECT_FALSE(found.is_free(0));
    return found.is_free(1);
  };
  EXPECT_TRUE(is_free("0.0", "add", Reducer::kSum));
  EXPECT_FALSE(is_free("1.0", "add", Reducer::kSum));
  EXPECT_TRUE(is_free("0xFF800000", "maximum", Reducer::kMax));
  EXPECT_FALSE(is_free("0.0", "maximum", Reducer::kMax));
}

TEST(OpLinearity, ANarrowFloatIsNotAddedInParts) {
  EXPECT_FALSE(LastOp("f16", "%0 = stablehlo.add %arg0, %arg1 : tensor<8xf16>").by(Reducer::kSum).may_pass());
  EXPECT_TRUE(LastOp("f16", "%0 = stablehlo.add %arg0, %arg1 : tensor<8xf16>").by(Reducer::kSum).combines);
  const LastOp narrowed("f32", "%0 = stablehlo.convert %arg0 : (tensor<8xf32>) -> tensor<8xf16>");
  EXPECT_FALSE(narrowed.by(Reducer::kSum).may_pass());
  EXPECT_FALSE(narrowed.linearity.is_linear(narrowed.id));
  const LastOp widened("f16", "%0 = stablehlo.convert %arg0 : (tensor<8xf16>) -> tensor<8xf32>");
  EXPECT_EQ(widened.by(Reducer::kSum).kind, Linear::kFirst);
  EXPECT_TRUE(widened.linearity.is_linear(widened.id));
}

TEST(OpLinearity, OpsOfRegionsHaveOne) {
  const Module module = parse_program(R"(
func.func @main(%arg0: tensor<i32>, %arg1: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.case"(%arg0) ({
    %1 = stablehlo.negate %arg1 : tensor<8xf32>
    stablehlo.return %1 : tensor<8xf32>
  }, {
    stablehlo.return %arg1 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
)");
  const ProgramLinearity linearity(module);
  const OpId branches = module.region(module.main().body).ops.back();
  const OpId negate = module.region(module.regions(branches)[0]).ops.front();
  EXPECT_EQ(linearity.of(negate, Reducer::kSum).kind, Linear::kFirst);
  EXPECT_FALSE(linearity.of(branches, Reducer::kSum).may_pass());
}

}  // namespace
}  // namespace shardwise
