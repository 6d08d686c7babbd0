// SPDX-License-Identifier: Apache-2.0
//
// Larger dims never cost less, and those up to 2^62 saturate: no count and no time is negative or wraps around.
#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "analysis/timed.h"
#include "shardwise/base/quantity.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {
namespace {

using testing::round_hardware;
using testing::Timed;

// The types of the op with the dims of each factor multiplied.
std::vector<TypeId> enlarged(const OpView& op, const std::vector<int64_t>& by_factor) {
  const ShardingRule& rule = sharding_rule(op);
  std::vector<TypeId> types = own_types(op);
  rule.for_each_dim([&](size_t tensor, size_t dim, std::span<const FactorId> factors) {
    TensorType type = op.module().context().type(types[tensor]);
    for (const FactorId factor : factors) type.shape[dim] = saturated_product(type.shape[dim], by_factor[factor]);
    types[tensor] = op.module().context().tensor(type.dtype, type.shape);
  });
  return types;
}

void expect_monotone(const Timed& timed) {
  const OpView op(timed.module, timed.op);
  const Hardware hardware = round_hardware();
  const size_t factors = sharding_rule(op).factors().size();
  for (size_t f = 0; f < factors; ++f) {
    OpTime last = op_time(op, hardware);
    for (int shift = 1; shift <= 60; ++shift) {
      std::vector<int64_t> by_factor(factors, 1);
      by_factor[f] = int64_t{1} << shift;
      const OpTime time = op_time(op, enlarged(op, by_factor), hardware);
      EXPECT_GE(time.ps(), last.ps()) << op.name() << " factor " << f << " times 2^" << shift;
      EXPECT_GE(time.bytes, last.bytes) << op.name() << " factor " << f << " times 2^" << shift;
      EXPECT_GE(time.flops, last.flops) << op.name() << " factor " << f << " times 2^" << shift;
      EXPECT_LE(std::max({time.ps(), time.bytes, time.flops}), kSaturated);
      last = time;
    }
  }
  const OpTime huge = op_time(op, enlarged(op, std::vector<int64_t>(factors, int64_t{1} << 62)), hardware);
  EXPECT_EQ(huge.ps(), kSaturated) << op.name();
  EXPECT_EQ(huge.bytes, kSaturated) << op.name();
}

TEST(Saturation, Products) {
  expect_monotone(
      Timed("%r = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : "
            "(tensor<2x3x4xbf16>, tensor<2x4x5xbf16>) -> tensor<2x3x5xbf16>",
            "%a: tensor<2x3x4xbf16>, %b: tensor<2x4x5xbf16>", "tensor<2x3x5xbf16>"));
  expect_monotone(Timed(R"(
    %x = stablehlo.convert %a : (tensor<3x4xbf16>) -> tensor<3x4xf32>
    %y = stablehlo.convert %b : (tensor<4x5xbf16>) -> tensor<4x5xf32>
    %r = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>)",
                        "%a: tensor<3x4xbf16>, %b: tensor<4x5xbf16>", "tensor<3x5xf32>"));
  expect_monotone(
      Timed("%r = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} "
            "{batch_group_count = 1 : i64, feature_group_count = 1 : i64} : "
            "(tensor<2x8x3xf32>, tensor<2x3x5xf32>) -> tensor<2x7x5xf32>",
            "%a: tensor<2x8x3xf32>, %b: tensor<2x3x5xf32>", "tensor<2x7x5xf32>"));
}

TEST(Saturation, ElementsAndMovement) {
  expect_monotone(Timed("%r = stablehlo.tanh %a : tensor<2x3xf32>", "%a: tensor<2x3xf32>", "tensor<2x3xf32>"));
  expect_monotone(Timed("%r = stablehlo.add %a, %a : tensor<2x3xf64>", "%a: tensor<2x3xf64>", "tensor<2x3xf64>"));
  expect_monotone(Timed("%r = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>",
                        "%a: tensor<2x3xf32>", "tensor<3x2xf32>"));
  expect_monotone(Timed("%r = stablehlo.slice %a [1:9:2, 0:3] : (tensor<10x3xf32>) -> tensor<4x3xf32>",
                        "%a: tensor<10x3xf32>", "tensor<4x3xf32>"));
  expect_monotone(
      Timed("%r = stablehlo.dynamic_slice %a, %i, %i, sizes = [1, 64] : (tensor<36x64xf32>, tensor<i32>, "
            "tensor<i32>) -> tensor<1x64xf32>",
            "%a: tensor<36x64xf32>, %i: tensor<i32>", "tensor<1x64xf32>"));
  expect_monotone(Timed(R"(%r = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 32>}>
      : (tensor<500x32xf32>, tensor<64x1xi32>) -> tensor<64x32xf32>)",
                        "%a: tensor<500x32xf32>, %i: tensor<64x1xi32>", "tensor<64x32xf32>"));
}

TEST(Saturation, ReductionsAndSorts) {
  expect_monotone(
      Timed("%z = stablehlo.constant dense<0.0> : tensor<f32>\n"
            "%r = stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [1] : "
            "(tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>",
            "%a: tensor<3x4xf32>", "tensor<3xf32>"));
  expect_monotone(Timed(R"(%r = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.compare LT, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %s : tensor<i1>
    }) : (tensor<8x10xf32>) -> tensor<8x10xf32>)",
                        "%a: tensor<8x10xf32>", "tensor<8x10xf32>"));
  expect_monotone(
      Timed("%r = stablehlo.fft %a, type = FFT, length = [16] : (tensor<4x16xcomplex<f32>>) -> "
            "tensor<4x16xcomplex<f32>>",
            "%a: tensor<4x16xcomplex<f32>>", "tensor<4x16xcomplex<f32>>"));
  expect_monotone(Timed("%r = stablehlo.cholesky %a, lower = true : tensor<3x8x8xf32>", "%a: tensor<3x8x8xf32>",
                        "tensor<3x8x8xf32>"));
}

}  // namespace
}  // namespace shardwise
