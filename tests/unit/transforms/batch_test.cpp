// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/batch.h"

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
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
  module.region(body).results = append_batched(builder, original, arguments, flags, size).values;
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

TEST(Batch, RefusesAnArgumentOfAnotherSize) {
  Module module = parse_program("func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { return %x : tensor<4xf32> }");
  const RegionId body = module.add_region();
  const ValueId argument = module.add_argument(body, module.context().tensor(DType::kF32, Dims{5, 4}));
  Builder builder(module, body);
  EXPECT_THROW(append_batched(builder, module.main().body, std::span(&argument, 1), {true}, 3), ShapeError);
}

}  // namespace
}  // namespace shardwise
