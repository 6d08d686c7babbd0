// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/verify_assigned.h"

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "support/message_of.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

// The error of a text on x=4, y=2 that claims to be resharded.
std::string error_of(const std::string& arguments, const std::string& results, const std::string& body) {
  const Module module =
      parse_program("module @m attributes {shardwise.stage = \"resharded\"} {\n" + (R"(sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main()" + arguments + ") -> (" + results + ") {\n" + body + "\n}\n}\n"));
  return testing::message_of<ShardingError>([&] { verify_assigned(module); });
}

std::string sharded(const std::string& type, const std::string& sharding) {
  return type + " {sdy.sharding = #sdy.sharding<@mesh, " + sharding + ">}";
}

std::string with(const std::string& sharding) {
  return "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, " + sharding + ">]>}";
}

TEST(VerifyAssigned, TensorsMustBeShardedAlikeAlongEachFactor) {
  const std::string rows = R"([{"x"}])", whole = "[{}]", type = "tensor<8xf32>";
  const auto add = [&](const std::string& lhs, const std::string& rhs, const std::string& result) {
    return error_of("%a: " + sharded(type, lhs) + ", %b: " + sharded(type, rhs), sharded(type, result),
                    "%0 = stablehlo.add %a, %b " + with(result) + " : tensor<8xf32> return %0 : tensor<8xf32>");
  };
  EXPECT_EQ(add(rows, rows, rows), "no error");
  EXPECT_EQ(add(rows, whole, rows),
            R"(stablehlo.add: its operands and results must be sharded alike along each factor, got operand 0 dim 0 )"
            R"(over {"x"}, operand 1 dim 0 over {}; run assign on the program before)");
  EXPECT_NE(add(rows, rows, whole).find(R"(result 0 dim 0 over {})"), std::string::npos);
}

TEST(VerifyAssigned, AReductionLeavesItsResultUnreduced) {
  const std::string found =
      error_of("%a: " + sharded("tensor<8x4xf32>", R"([{}, {"y"}])") + ", %z: tensor<f32>", "tensor<8xf32>",
               "%0 = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] "
               ": (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32> return %0 : tensor<8xf32>");
  EXPECT_EQ(found,
            R"(stablehlo.reduce: a reduced dim must be unsharded, or the result must be unreduced, got dim 1 of )"
            R"(operand 0 over "y")");
}

TEST(VerifyAssigned, ResultsMustBeWhereTheFunctionDeclaresThem) {
  EXPECT_EQ(error_of("%a: " + sharded("tensor<8xf32>", R"([{"x"}])"), sharded("tensor<8xf32>", "[{}]"),
                     "return %a : tensor<8xf32>"),
            R"(localize: result 0 must be sharded as declared, [{}], got [{"x"}]; run assign on the program before)");
}

TEST(VerifyAssigned, CarriesMustBePlacedLikeTheResultsOfTheLoop) {
  const auto loop = [](const std::string& entry, const std::string& carry) {
    return error_of("%a: " + sharded("tensor<8xf32>", entry) + ", %n: tensor<i32>", sharded("tensor<8xf32>", carry),
                    R"(%0:2 = "stablehlo.while"(%a, %n) ({
^bb0(%x: tensor<8xf32>, %i: tensor<i32>):
  %1 = stablehlo.compare LT, %i, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
  "stablehlo.return"(%1) : (tensor<i1>) -> ()
}, {
^bb0(%x: tensor<8xf32>, %i: tensor<i32>):
  "stablehlo.return"(%x, %i) : (tensor<8xf32>, tensor<i32>) -> ()
}) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, )" +
                        carry + R"(>, <@mesh, []>]>} : (tensor<8xf32>, tensor<i32>) -> (tensor<8xf32>, tensor<i32>)
return %0#0 : tensor<8xf32>)");
  };
  EXPECT_EQ(loop(R"([{"x"}])", R"([{"x"}])"), "no error");
  EXPECT_EQ(loop("[{}]", R"([{"x"}])"),
            R"(stablehlo.while: operand 0 must be placed like the result, #shardwise.placement<@mesh, [{"x"}: 2]>, )"
            R"(got #shardwise.placement<@mesh, [{}: 8]>; run assign on the program before)");
}

TEST(VerifyAssigned, AMethodMustSuitThePlacements) {
  const auto row = [](const std::string& method, const std::string& result) {
    return error_of("%a: " + sharded("tensor<8x4xf32>", R"([{"x"}, {}])") + ", %i: tensor<i32>, %z: tensor<i32>",
                    "tensor<1x4xf32>",
                    "%0 = stablehlo.dynamic_slice %a, %i, %z, sizes = [1, 4] {method = \"" + method +
                        "\", sdy.sharding = #sdy.sharding_per_value<[<@mesh, " + result +
                        ">]>} : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>\n"
                        "return %0 : tensor<1x4xf32>");
  };
  EXPECT_EQ(row("owned rows", R"([{}, {}], unreduced={"x"})"), "no error");
  const std::string said =
      "stablehlo.dynamic_slice: its operands and results must be sharded as one of its methods needs them, got method ";
  EXPECT_EQ(row("owned rows", "[{}, {}]"), said + "owned rows; run assign on the program before");
  EXPECT_EQ(row("magic", R"([{}, {}], unreduced={"x"})"), said + "magic; run assign on the program before");
}

}  // namespace
}  // namespace shardwise
