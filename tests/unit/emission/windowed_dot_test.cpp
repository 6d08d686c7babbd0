// SPDX-License-Identifier: Apache-2.0
#include "shardwise/emission/windowed_dot.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "support/program_text.h"

namespace shardwise {
namespace {

// %g: a gathered weight of 16 rows on x=4, for what reads it.
Module gathered(std::string_view cause, std::string_view readers) {
  std::string text = R"(module attributes {shardwise.stage = "local"} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%a: tensor<8x16xf32>, %w: tensor<4x6xf32>) -> tensor<8x6xf32> {
    %g = "shardwise.all_gather"(%w) <{gather = #sdy<list_of_axis_ref_lists[{"x"}, {}]>, mesh = @mesh)";
  text.append(cause).append("}> : (tensor<4x6xf32>) -> tensor<16x6xf32>\n").append(readers).append("  }\n}\n");
  return parse_program(text);
}

constexpr std::string_view kNeeded = R"(, cause = "operand 1 of dot_general")";
constexpr std::string_view kOneReader = R"(
    %0 = stablehlo.dot_general %a, %g, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x6xf32>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
)";
// The second product reads what is computed from the first one.
constexpr std::string_view kTwoReaders = R"(
    %0 = stablehlo.dot_general %a, %g, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x6xf32>) -> tensor<8x6xf32>
    %1 = stablehlo.dot_general %0, %g, contracting_dims = [1] x [1] : (tensor<8x6xf32>, tensor<16x6xf32>) -> tensor<8x16xf32>
    %2 = stablehlo.slice %1 [0:8, 0:6] : (tensor<8x16xf32>) -> tensor<8x6xf32>
    return %2 : tensor<8x6xf32>
)";
constexpr std::string_view kOtherReader = R"(
    %0 = stablehlo.dot_general %a, %g, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x6xf32>) -> tensor<8x6xf32>
    %1 = stablehlo.slice %g [0:8, 0:6] : (tensor<16x6xf32>) -> tensor<8x6xf32>
    %2 = stablehlo.add %0, %1 : tensor<8x6xf32>
    return %2 : tensor<8x6xf32>
)";

TEST(WindowedDot, AGatherAndItsProduct) {
  Module module = gathered(kNeeded, kOneReader);
  const std::vector<WindowedDot> found = windowed_dots(module, false);
  ASSERT_EQ(found.size(), 1u);
  const WindowedDot& dot = found[0];
  EXPECT_TRUE(dot.gathers);
  EXPECT_EQ(dot.dim, 0u);
  EXPECT_EQ(dot.block, 4);
  ASSERT_EQ(dot.products.size(), 1u);
  EXPECT_FALSE(dot.products[0].gathers_lhs);
  EXPECT_EQ(dot.products[0].dims.lhs, 1u);
  EXPECT_EQ(dot.products[0].dims.result, std::nullopt);
  EXPECT_TRUE(has_ring(dot, Ring::kBothWays));
}

TEST(WindowedDot, AGatherWithoutACauseIsTheUsersOwn) {
  Module module = gathered("", kOneReader);
  EXPECT_TRUE(windowed_dots(module, true).empty());
}

TEST(WindowedDot, ProductsThatFollowEachOtherAreSentForOneByOne) {
  Module module = gathered(kNeeded, kTwoReaders);
  EXPECT_TRUE(windowed_dots(module, false).empty());
  EXPECT_EQ(windowed_dots(module, true).size(), 2u);
}

TEST(WindowedDot, AGatherThatAnotherOpReadsStays) {
  Module module = gathered(kNeeded, kOtherReader);
  EXPECT_TRUE(windowed_dots(module, true).empty());
}

}  // namespace
}  // namespace shardwise
