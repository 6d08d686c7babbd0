// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/waiting_values.h"

#include <string>

#include <gtest/gtest.h>

#include "shardwise/ir/rewrite/walk.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

// The names of the ops of main whose results wait, in order.
std::string waiting(const std::string& text) {
  const Module module = parse_program(text);
  const std::vector<bool> waits = waiting_values(module);
  std::string names;
  walk(module, module.main().body, [&](OpId id) {
    const OpView op(module, id);
    if (op.result_count() == 0 || !waits[op.result().index]) return;
    const std::string_view name = op.name();
    names.append(names.empty() ? "" : " ").append(name.substr(name.find('.') + 1));
  });
  return names;
}

TEST(WaitingValues, AreThoseBehindAProduct) {
  EXPECT_EQ(waiting(R"(
func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<8x8xbf16>) -> tensor<8x8xf32> {
  %0 = stablehlo.convert %arg1 : (tensor<8x8xbf16>) -> tensor<8x8xf32>
  %1 = stablehlo.dot_general %arg0, %0, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.negate %0 : tensor<8x8xf32>
  %3 = stablehlo.tanh %1 : tensor<8x8xf32>
  %4 = stablehlo.add %3, %2 : tensor<8x8xf32>
  return %4 : tensor<8x8xf32>
}
)"),
            "dot_general tanh add");
}

// A trip takes a slice of %arg1 at the counter, which waits for nothing; the other carry waits for the trip before.
TEST(WaitingValues, OfLoopsAreCarriesBehindAProductOfATrip) {
  EXPECT_EQ(waiting(R"(
func.func @main(%arg0: tensor<8x8xf32>, %arg1: tensor<4x8x8xf32>) -> tensor<8x8xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%i = %c, %x = %arg0, %w = %arg1) : tensor<i32>, tensor<8x8xf32>, tensor<4x8x8xf32>
  cond {
    %c_0 = stablehlo.constant dense<4> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %c_0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %c_0 = stablehlo.constant dense<0> : tensor<i32>
    %c_1 = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.dynamic_slice %w, %i, %c_0, %c_0, sizes = [1, 8, 8] : (tensor<4x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
    %2 = stablehlo.reshape %1 : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
    %3 = stablehlo.sine %x : tensor<8x8xf32>
    %4 = stablehlo.dot_general %3, %2, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %5 = stablehlo.add %i, %c_1 : tensor<i32>
    stablehlo.return %5, %4, %w : tensor<i32>, tensor<8x8xf32>, tensor<4x8x8xf32>
  }
  %6 = stablehlo.cosine %0#1 : tensor<8x8xf32>
  return %6 : tensor<8x8xf32>
}
)"),
            "sine dot_general cosine");
}

}  // namespace
}  // namespace shardwise
