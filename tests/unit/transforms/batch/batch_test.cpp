// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/batch/batch.h"

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "shardwise/ir/builder.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

// main of the text, batched over `size` for the flagged arguments, as a new main.
Module batched(const std::string& text, const std::vector<bool>& flags, int64_t size) {
  Module module = parse_program(text);
  const RegionId original = module.main().body;
  const std::vector<ValueId> parameters = module.region(original).arguments;
  const RegionId body = module.add_region();
  std::vector<ValueId> arguments;
  for (size_t i = 0; i < parameters.size(); ++i) {
    TensorType type = module.type(parameters[i]);
    if (flags[i]) type.shape.insert(type.shape.begin(), size);
    arguments.push_back(module.add_argument(body, module.context().intern(type)));
  }
  Builder builder(module, body);
  module.region(body).results = append_batched(builder, original, arguments, flags, {.size = size}).values;
  module.main().body = body;
  module.main().result_shardings.assign(module.region(body).results.size(), {});
  return module;
}

TEST(Batch, BroadcastsWhatIsNotBatched) {
  const Module module = batched(R"(func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.sine %w : tensor<4xf32>
    %1 = stablehlo.multiply %x, %0 : tensor<4xf32>
    return %1 : tensor<4xf32>
  })",
                                {true, false}, 8);
  EXPECT_EQ(body_text(module),
            "%0 = stablehlo.sine %arg1 : tensor<4xf32>\n"
            "%1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>\n"
            "%2 = stablehlo.multiply %arg0, %1 : tensor<8x4xf32>\n"
            "return %2 : tensor<8x4xf32>\n");
}

TEST(Batch, ShiftsDims) {
  const Module module = batched(R"(func.func @main(%x: tensor<4x2xf32>) -> tensor<2x4xf32> {
    %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x2xf32>) -> tensor<2x4xf32>
    return %0 : tensor<2x4xf32>
  })",
                                {true}, 3);
  EXPECT_EQ(body_text(module),
            "%0 = stablehlo.transpose %arg0, dims = [0, 2, 1] : (tensor<3x4x2xf32>) -> tensor<3x2x4xf32>\n"
            "return %0 : tensor<3x2x4xf32>\n");
}

TEST(Batch, GivesRowsAFactorOfTheUsersRule) {
  const Module module = batched(R"(func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.multiply %x, %w {sdy.sharding_rule = #sdy.op_sharding_rule<([i], [j])->([i]) {i=4, j=4}>} : tensor<4xf32>
    return %0 : tensor<4xf32>
  })",
                                {true, false}, 3);
  EXPECT_NE(body_text(module).find("<([k, i], [k, j])->([k, i]) {i=4, j=4, k=3}>"), std::string::npos)
      << body_text(module);
  verify(module);
}

TEST(Batch, ExpandsAnOpThatOthersMakeUp) {
  const Module module = batched(R"(func.func @main(%x: tensor<4xf32>) -> tensor<4xi1> {
    %0 = chlo.tan %x : tensor<4xf32> -> tensor<4xf32>
    %1 = chlo.is_neg_inf %0 : tensor<4xf32> -> tensor<4xi1>
    return %1 : tensor<4xi1>
  })",
                                {true}, 3);
  EXPECT_EQ(body_text(module),
            "%0 = stablehlo.tan %arg0 : tensor<3x4xf32>\n"
            "%1 = stablehlo.constant dense<0xFF800000> : tensor<4xf32>\n"
            "%2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>\n"
            "%3 = stablehlo.compare EQ, %0, %2 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xi1>\n"
            "return %3 : tensor<3x4xi1>\n");
}

TEST(Batch, SelectsTheBranchOfEachExample) {
  const Module module = batched(R"(func.func @main(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.if"(%p) ({
      stablehlo.return %x : tensor<4xf32>
    }, {
      %1 = stablehlo.negate %x : tensor<4xf32>
      stablehlo.return %1 : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  })",
                                {true, false}, 3);
  EXPECT_EQ(body_text(module),
            "%0 = stablehlo.broadcast_in_dim %arg1, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>\n"
            "%1 = stablehlo.negate %arg1 : tensor<4xf32>\n"
            "%2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>\n"
            "%3 = stablehlo.broadcast_in_dim %arg0, dims = [0] : (tensor<3xi1>) -> tensor<3x4xi1>\n"
            "%4 = stablehlo.select %3, %0, %2 : tensor<3x4xi1>, tensor<3x4xf32>\n"
            "return %4 : tensor<3x4xf32>\n");
}

// The body of main, with its indentation.
void expect_body(const Module& module, const std::string& body) {
  verify(module);
  const std::string text = print(module);
  EXPECT_NE(text.find("{\n" + body + "  }\n"), std::string::npos) << text;
}

TEST(Batch, BatchesTheBranchesForAllExamples) {
  const Module module = batched(R"(func.func @main(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>) {
    %0:2 = "stablehlo.if"(%p) ({
      stablehlo.return %x, %y : tensor<4xf32>, tensor<4xf32>
    }, {
      stablehlo.return %y, %y : tensor<4xf32>, tensor<4xf32>
    }) : (tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
    return %0#0, %0#1 : tensor<4xf32>, tensor<4xf32>
  })",
                                {false, true, false}, 3);
  expect_body(module,
              "    %0:2 = \"stablehlo.if\"(%arg0) ({\n"
              "      stablehlo.return %arg1, %arg2 : tensor<3x4xf32>, tensor<4xf32>\n"
              "    }, {\n"
              "      %1 = stablehlo.broadcast_in_dim %arg2, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>\n"
              "      stablehlo.return %1, %arg2 : tensor<3x4xf32>, tensor<4xf32>\n"
              "    }) : (tensor<i1>) -> (tensor<3x4xf32>, tensor<4xf32>)\n"
              "    return %0#0, %0#1 : tensor<3x4xf32>, tensor<4xf32>\n");
}

TEST(Batch, InlinesCallsAndKeepsNamedComputations) {
  const Module module = batched(R"(
  func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
    %0 = func.call @twice(%x) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = sdy.named_computation<"product">(%0, %w) (%a: tensor<4xf32>, %b: tensor<4xf32>) {
      %2 = stablehlo.multiply %a, %b : tensor<4xf32>
      sdy.return %2 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.add %x, %x : tensor<4xf32>
    return %0 : tensor<4xf32>
  })",
                                {true, false}, 3);
  expect_body(
      module,
      "    %0 = stablehlo.add %arg0, %arg0 : tensor<3x4xf32>\n"
      "    %1 = sdy.named_computation<\"product\">(%0, %arg1) (%arg2: tensor<3x4xf32>, %arg3: tensor<4xf32>) {\n"
      "      %2 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<4xf32>) -> tensor<3x4xf32>\n"
      "      %3 = stablehlo.multiply %arg2, %2 : tensor<3x4xf32>\n"
      "      sdy.return %3 : tensor<3x4xf32>\n"
      "    } : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>\n"
      "    return %1 : tensor<3x4xf32>\n");
}

std::string message_of(const std::string& text, const std::vector<bool>& flags) {
  try {
    batched(text, flags, 3);
  } catch (const Error& error) {
    return error.message();
  }
  return "none";
}

TEST(Batch, RefusesWhatOnlySomeExamplesWouldDo) {
  EXPECT_EQ(message_of(R"(func.func @main(%p: tensor<i1>, %x: tensor<f32>) -> tensor<f32> {
    %0 = "stablehlo.if"(%p) ({
      %1 = stablehlo.custom_call @print(%x) {has_side_effect = true} : (tensor<f32>) -> tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }, {
      stablehlo.return %x : tensor<f32>
    }) : (tensor<i1>) -> tensor<f32>
    return %0 : tensor<f32>
  })",
                       {true, false}),
            "stablehlo.custom_call: an op with a side effect must run for all examples in a stablehlo.if, got a "
            "condition that differs between them; move it out of the region, or out of sw.vmap");
}

TEST(Batch, RefusesFunctionsThatCallThemselves) {
  EXPECT_EQ(message_of(R"(func.func @main(%x: tensor<f32>) -> tensor<f32> {
    %0 = func.call @main(%x) : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  })",
                       {true}),
            "func.call: calls and regions must nest at most 256 deep, got more; call fewer in a row");
}

TEST(Batch, RefusesAnArgumentOfAnotherSize) {
  Module module = parse_program("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }");
  const RegionId body = module.add_region();
  const ValueId argument = module.add_argument(body, module.context().tensor(DType::kF32, Dims{5, 4}));
  Builder builder(module, body);
  EXPECT_THROW(append_batched(builder, module.main().body, std::span(&argument, 1), {true}, {.size = 3}), ShapeError);
}

}  // namespace
}  // namespace shardwise
