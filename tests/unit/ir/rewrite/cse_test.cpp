// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/cse.h"

#include <gtest/gtest.h>

#include "ir/test_ops.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ir/verifier.h"

namespace shardwise::testing {
namespace {

constexpr const char* kSum =
    "\"test.any\"(%a) ({\n^bb0(%x: tensor<8x8xf32>):\n %s = stablehlo.add %x, %x : tensor<8x8xf32>\n"
    " stablehlo.return %s : tensor<8x8xf32>\n}) : (tensor<8x8xf32>) -> tensor<8x8xf32>\n";

int64_t merged(Module& module) {
  const int64_t count = cse(module);
  verify(module);
  return count;
}
int64_t merged(const std::string& body) {
  Module module = parse_test(program(body));
  return merged(module);
}

std::string two(const std::string& first, const std::string& second) {
  return "%0 = " + first + "%1 = " + second + "%2 = stablehlo.add %0, %1 : tensor<8x8xf32>\n";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

TEST(Cse, MergesEqualRegionsByStructure) {
  Module module = parse_test(program(two(kSum, kSum)));
  EXPECT_EQ(merged(module), 1);
  const std::vector<OpId>& ops = module.region(module.main().body).ops;
  ASSERT_EQ(ops.size(), 2u);
  EXPECT_EQ(module.operands(ops[1])[0], module.result(ops[0]));
  EXPECT_EQ(module.operands(ops[1])[1], module.result(ops[0]));
}

TEST(Cse, KeepsRegionsThatDiffer) {
  EXPECT_EQ(merged(two(kSum, replaced(kSum, "return %s", "return %x"))), 0);
  EXPECT_EQ(merged(two(kSum, replaced(kSum, "%x, %x", "%x, %a"))), 0);
  EXPECT_EQ(merged(two(replaced(kSum, "%x, %x", "%x, %b"), replaced(kSum, "%x, %x", "%x, %a"))), 0);
  EXPECT_EQ(merged(two(replaced(kSum, "%x, %x", "%x, %a"), replaced(kSum, "%x, %x", "%x, %a"))), 1);
  EXPECT_EQ(merged(two(kSum, replaced(kSum, "(%a)", "(%b)"))), 0);
}

TEST(Cse, KeepsEffectsAndAnnotationsInRegions) {
  const std::string effect = replaced(kSum, " stablehlo.return", " \"test.effect\"() : () -> ()\n stablehlo.return");
  EXPECT_EQ(merged(two(effect, effect)), 0);
  const std::string constraint = replaced(kSum, "stablehlo.add %x, %x : tensor<8x8xf32>",
                                          "\"test.constraint\"(%x) : (tensor<8x8xf32>) -> tensor<8x8xf32>");
  EXPECT_EQ(merged(two(constraint, constraint)), 0);
  const std::string reshard = "sdy.reshard %a <@mesh, [{\"x\"}, {}]> : tensor<8x8xf32>\n";
  EXPECT_EQ(merged(two(reshard, reshard)), 0);
}

TEST(Cse, OrdersOperandsOfCommutativeOps) {
  EXPECT_EQ(merged(two("stablehlo.add %a, %b : tensor<8x8xf32>\n", "stablehlo.add %b, %a : tensor<8x8xf32>\n")), 1);
}

TEST(Cse, KeepsOtherShardings) {
  const std::string sharded =
      "stablehlo.add %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\"}, {}]>]>} : tensor<8x8xf32>\n";
  const std::string plain = "stablehlo.add %a, %b : tensor<8x8xf32>\n";
  EXPECT_EQ(merged(two(sharded, plain)), 0);
  EXPECT_EQ(merged(two(sharded, sharded)), 1);
}

TEST(Cse, MergesCollectivesWhateverTheirCause) {
  const auto gather = [](const std::string& attributes) {
    return "\"test.gather\"(%a) <{" + attributes + "}> : (tensor<8x8xf32>) -> tensor<8x8xf32>\n";
  };
  EXPECT_EQ(merged(two(gather("cause = \"operand 0 of tanh\""), gather("cause = \"operand 1 of add\""))), 1);
  EXPECT_EQ(merged(two(gather("dim = 0 : i64"), gather("dim = 1 : i64"))), 0);
  EXPECT_EQ(merged(two("\"test.any\"(%a) <{cause = \"a\"}> : (tensor<8x8xf32>) -> tensor<8x8xf32>\n",
                       "\"test.any\"(%a) <{cause = \"b\"}> : (tensor<8x8xf32>) -> tensor<8x8xf32>\n")),
            0);
}

TEST(Cse, KeepsValuesThatHoldOtherPartsOfGlobalValues) {
  const std::string sum = "stablehlo.add %a, %b : tensor<8x8xf32>\n";
  Module module = parse_test(program(two(sum, sum)));
  const OpId second = module.region(module.main().body).ops[1];
  module.set_part(module.result(second), {module.context().tensor(DType::kF32, Dims{15, 8}), {}, {}});
  EXPECT_EQ(cse(module), 0);
  module.set_part(module.result(second), {});
  EXPECT_EQ(cse(module), 1);
}

TEST(Dce, RemovesWhatNothingDependsOn) {
  const std::string text =
      "%0 = stablehlo.add %a, %b : tensor<8x8xf32>\n%1 = stablehlo.add %0, %0 : tensor<8x8xf32>\n"
      "%2 = \"test.constraint\"(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>\n"
      "%3 = \"test.any\"(%a) ({\n \"test.effect\"() : () -> ()\n stablehlo.return\n}) : (tensor<8x8xf32>) -> "
      "tensor<8x8xf32>\n"
      "%4 = stablehlo.add %b, %b : tensor<8x8xf32>\n";
  Module module = parse_test(program(text));
  const std::vector<OpId> ops = module.region(module.main().body).ops;
  EXPECT_FALSE(module.uses(module.result(ops[0])).empty());
  EXPECT_EQ(dce(module), 3);
  EXPECT_EQ(module.region(module.main().body).ops, (std::vector<OpId>{ops[2], ops[3]}));
  EXPECT_TRUE(module.uses(module.result(ops[0])).empty());
  EXPECT_EQ(dce(module, UnusedConstraints::kRemove), 1);
  EXPECT_EQ(module.region(module.main().body).ops, (std::vector<OpId>{ops[3]}));
  verify(module);
}

}  // namespace
}  // namespace shardwise::testing
