// SPDX-License-Identifier: Apache-2.0

#include "ops/kernel_harness.h"

namespace shardwise::test {
namespace {

TEST(Transpose, PermutesEveryDType) {
  for (DType dtype : all_dtypes()) {
    const NdArray x = random_array(dtype, {2, 3, 4});
    for (const NdArray& operand : {x, in_odd_strides(x), column_major(x)}) {
      const NdArray y = run_op("stablehlo.transpose", {operand}, {{"permutation", IntArray{2, 0, 1}}});
      for (int64_t i = 0; i < 2; ++i) {
        for (int64_t j = 0; j < 3; ++j) {
          for (int64_t k = 0; k < 4; ++k) EXPECT_EQ(y.scalar_at((k * 2 + i) * 3 + j), x.scalar_at((i * 3 + j) * 4 + k));
        }
      }
    }
  }
}

TEST(Transpose, IsAView) {
  const NdArray x = random_array(DType::kF32, {2, 3});
  EXPECT_EQ(run_op("stablehlo.transpose", {x}, {{"permutation", IntArray{1, 0}}}).data(), x.data());
}

TEST(Transpose, RefusesDimsTwice) {
  const NdArray x = random_array(DType::kF32, {2, 3});
  EXPECT_EQ(
      error_of<ShapeError>([&] { run_op("stablehlo.transpose", {x}, {{"permutation", IntArray{0, 0}}}); }),
      "stablehlo.transpose: permutation must be different dims of a tensor with 2 dims, got permutation = [0, 0] for "
      "tensor<2x3xf32>; name each dim once");
}

TEST(TransposeRule, HasAFactorPerResultDim) {
  EXPECT_EQ(rule_text("stablehlo.transpose", {{2, 3, 4}}, {{"permutation", IntArray{2, 0, 1}}}),
            "([j, k, i])->([i, j, k]) {i=4, j=2, k=3}");
}

NdArray reshaped(const NdArray& x, Dims shape) {
  return run_op("stablehlo.reshape", {x}, {}, TensorType{x.dtype(), std::move(shape)});
}

TEST(Reshape, KeepsTheOrderOfElements) {
  for (DType dtype : all_dtypes()) {
    const NdArray x = random_array(dtype, {4, 6});
    for (const NdArray& operand : {x, in_odd_strides(x), column_major(x)}) {
      for (const Dims& shape : {Dims{24}, Dims{2, 3, 4}, Dims{6, 4}, Dims{1, 4, 1, 6, 1}, Dims{2, 2, 6}}) {
        EXPECT_EQ(elements(reshaped(operand, shape)), elements(x));
      }
    }
  }
}

TEST(Reshape, IsAViewWhereStridesAllow) {
  const NdArray x = random_array(DType::kF32, {4, 6});
  EXPECT_EQ(reshaped(x, {2, 2, 3, 2}).data(), x.data());
  const NdArray columns = x.sliced(1, 0, 3);
  EXPECT_EQ(reshaped(columns, {2, 2, 3}).data(), x.data());
  EXPECT_NE(reshaped(columns, {12}).data(), x.data());
}

TEST(Reshape, OfNothingAndOfOne) {
  EXPECT_EQ(reshaped(NdArray::empty(DType::kF32, {0, 3}), {2, 0, 5}).size(), 0);
  EXPECT_EQ(elements(reshaped(array_of(DType::kF32, {1, 1}, {5}), {})), std::vector<double>{5});
}

TEST(Reshape, RefusesAnotherNumberOfElements) {
  EXPECT_EQ(error_of<ShapeError>([&] { reshaped(random_array(DType::kF32, {4, 6}), {5, 5}); }),
            "stablehlo.reshape: operand and result must have the same number of elements, got tensor<4x6xf32> (24) and "
            "tensor<5x5xf32> (25); choose sizes with the same product");
}

std::string reshape_rule(Dims from, Dims to) {
  return rule_text("stablehlo.reshape", {std::move(from)}, {}, std::move(to));
}

TEST(ReshapeRule, EqualsShardys) {
  EXPECT_EQ(reshape_rule({8}, {2, 4}), "([ij])->([i, j]) {i=2, j=4}");
  EXPECT_EQ(reshape_rule({8, 4}, {2, 16}), "([ij, k])->([i, jk]) {i=2, j=4, k=4}");
  EXPECT_EQ(reshape_rule({3, 2}, {2, 3}), "([i, l])->([j, k]) {i=3, j=2, k=3, l=2}");
  EXPECT_EQ(reshape_rule({6, 4}, {4, 6}), "([ij, mn])->([ik, ln]) {i=2, j=3, k=2, l=3, m=2, n=2}");
  EXPECT_EQ(reshape_rule({1, 8, 4}, {8, 1, 4, 1}), "([i, j, l])->([j, k, l, m]) {i=1, j=8, k=1, l=4, m=1}");
  EXPECT_EQ(reshape_rule({8, 4}, {32, 1}), "([i, j])->([ij, k]) {i=8, j=4, k=1}");
  EXPECT_EQ(reshape_rule({5, 2, 5, 3}, {5, 3, 5, 2}).substr(0, 30), "([i, j, l, n])->([i, k, m, o])");
  EXPECT_EQ(reshape_rule({0, 3}, {3, 0}), "()->()");
  EXPECT_EQ(reshape_rule({1, 1}, {}), "([i, j])->([]) {i=1, j=1}");
}

TEST(BroadcastInDim, RepeatsNewDimsAndDimsOfSizeOne) {
  for (DType dtype : all_dtypes()) {
    const NdArray x = random_array(dtype, {3, 1});
    for (const NdArray& operand : {x, in_odd_strides(x)}) {
      const NdArray y = run_op("stablehlo.broadcast_in_dim", {operand}, {{"broadcast_dimensions", IntArray{1, 2}}},
                               TensorType{dtype, {2, 3, 4}});
      for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(y.scalar_at(i), x.scalar_at(i / 4 % 3));
    }
  }
}

TEST(BroadcastInDim, MayPermute) {
  const NdArray x = random_array(DType::kI32, {3, 4});
  const NdArray y = run_op("stablehlo.broadcast_in_dim", {x}, {{"broadcast_dimensions", IntArray{1, 0}}},
                           TensorType{DType::kI32, {4, 3}});
  for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(y.scalar_at(i), x.scalar_at(i % 3 * 4 + i / 3));
}

TEST(BroadcastInDim, RefusesOtherSizes) {
  const auto run = [] {
    run_op("stablehlo.broadcast_in_dim", {random_array(DType::kF32, {3})}, {{"broadcast_dimensions", IntArray{0}}},
           TensorType{DType::kF32, {6, 2}});
  };
  EXPECT_EQ(error_of<ShapeError>(run),
            "stablehlo.broadcast_in_dim: dim 0 of the operand must have size 1 or that of dim 0 of the result, got "
            "tensor<3xf32> to tensor<6x2xf32> with broadcast_dimensions = [0]; only dims of size 1 are repeated");
}

TEST(BroadcastInDimRule, GivesARepeatedDimItsOwnFactor) {
  const Attrs attrs{{"broadcast_dimensions", IntArray{0, 1, 2}}};
  EXPECT_EQ(rule_text("stablehlo.broadcast_in_dim", {{2, 1, 13}}, attrs, Dims{2, 64, 13}),
            "([i, j, l])->([i, k, l]) {i=2, j=1, k=64, l=13}");
}

TEST(Reverse, ReversesTheGivenDims) {
  for (DType dtype : all_dtypes()) {
    const NdArray x = random_array(dtype, {3, 4});
    for (const NdArray& operand : {x, in_odd_strides(x)}) {
      const NdArray y = run_op("stablehlo.reverse", {operand}, {{"dimensions", IntArray{1}}});
      for (int64_t i = 0; i < 12; ++i) EXPECT_EQ(y.scalar_at(i), x.scalar_at(i / 4 * 4 + 3 - i % 4));
    }
  }
  EXPECT_EQ(run_op("stablehlo.reverse", {NdArray::empty(DType::kF32, {0, 4})}, {{"dimensions", IntArray{0, 1}}}).size(),
            0);
}

TEST(ReverseRule, PermutesReversedDims) {
  EXPECT_EQ(rule_text("stablehlo.reverse", {{4, 32, 8}}, {{"dimensions", IntArray{1}}}),
            "([i, j, k])->([i, j, k]) {i=4, j=32, k=8} permutation={j}");
}

TEST(LayoutVjp, AgreesWithDifferences) {
  const NdArray x = random_reals(DType::kF64, {2, 3, 1});
  check_vjp(op_builder("stablehlo.transpose", {{"permutation", IntArray{1, 2, 0}}}), {x});
  check_vjp(op_builder("stablehlo.reshape", {}, TensorType{DType::kF64, {6}}), {x});
  check_vjp(op_builder("stablehlo.broadcast_in_dim", {{"broadcast_dimensions", IntArray{3, 0, 2}}},
                       TensorType{DType::kF64, {3, 5, 4, 2}}),
            {x});
  check_vjp(op_builder("stablehlo.reverse", {{"dimensions", IntArray{0, 1}}}), {x});
}

TEST(LayoutBatch, AgreesWithEveryExample) {
  const NdArray x = random_array(DType::kF32, {3, 2, 4});
  check_batch(op_builder("stablehlo.transpose", {{"permutation", IntArray{1, 0}}}), {x}, {true});
  check_batch(op_builder("stablehlo.reshape", {}, TensorType{DType::kF32, {8}}), {x}, {true});
  check_batch(op_builder("stablehlo.broadcast_in_dim", {{"broadcast_dimensions", IntArray{2, 0}}},
                         TensorType{DType::kF32, {4, 3, 2}}),
              {x}, {true});
  check_batch(op_builder("stablehlo.reverse", {{"dimensions", IntArray{1}}}), {x}, {true});
}

}  // namespace
}  // namespace shardwise::test
