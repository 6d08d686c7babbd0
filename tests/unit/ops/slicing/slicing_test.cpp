// SPDX-License-Identifier: Apache-2.0

#include "ops/kernel_harness.h"

namespace shardwise::test {
namespace {

Attrs slice_attrs(IntArray start, IntArray limit, IntArray strides) {
  return {{"start_indices", std::move(start)}, {"limit_indices", std::move(limit)}, {"strides", std::move(strides)}};
}

Attrs pad_attrs(IntArray low, IntArray high, IntArray interior) {
  return {{"edge_padding_low", std::move(low)},
          {"edge_padding_high", std::move(high)},
          {"interior_padding", std::move(interior)}};
}

TEST(Slice, TakesEveryStrideThElement) {
  for (DType dtype : all_dtypes()) {
    const NdArray x = random_array(dtype, {5, 9});
    for (const NdArray& operand : {x, in_odd_strides(x)}) {
      const NdArray y = run_op("stablehlo.slice", {operand}, slice_attrs({1, 2}, {4, 9}, {1, 3}));
      ASSERT_EQ(y.shape(), (Dims{3, 3}));
      for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(y.scalar_at(i), x.scalar_at((1 + i / 3) * 9 + 2 + i % 3 * 3));
    }
  }
  EXPECT_EQ(run_op("stablehlo.slice", {random_array(DType::kF32, {4})}, slice_attrs({4}, {4}, {1})).size(), 0);
}

TEST(Slice, RefusesRangesOutside) {
  EXPECT_EQ(
      error_of<ShapeError>(
          [] { run_op("stablehlo.slice", {random_array(DType::kF32, {4})}, slice_attrs({1}, {5}, {1})); }),
      "stablehlo.slice: 0 <= start <= limit <= size and stride >= 1 must hold for every dim, got 1:5:1 on dim 0 of "
      "tensor<4xf32>; clip the range to the dim; reverse for a negative stride");
}

TEST(SliceRule, PermutesDimsThatChange) {
  EXPECT_EQ(rule_text("stablehlo.slice", {{32, 4, 8}}, slice_attrs({0, 1, 4}, {32, 3, 8}, {1, 1, 2})),
            "([i, j, k])->([i, j, k]) {i=32, j=4, k=8} permutation={j, k}");
}

// Element by element, as the specification says: element i of the operand stands at low + i * (interior + 1).
NdArray padded(const NdArray& x, double value, int64_t low, int64_t high, int64_t interior) {
  const int64_t n = x.shape()[0], columns = x.shape()[1];
  const int64_t rows = low + n + std::max<int64_t>(n - 1, 0) * interior + high;
  NdArray y = make_array(x.dtype(), {rows, columns}, [&](int64_t) { return value; });
  for (int64_t i = 0; i < n; ++i) {
    const int64_t row = low + i * (interior + 1);
    if (row < 0 || row >= rows) continue;
    for (int64_t j = 0; j < columns; ++j) put(y, row * columns + j, as_double(x.scalar_at(i * columns + j)));
  }
  return y;
}

TEST(Pad, AgreesWithTheDefinition) {
  for (DType dtype : all_dtypes()) {
    for (int64_t n : {0, 1, 4}) {
      const NdArray x = random_array(dtype, {n, 3});
      for (int64_t low : {-3, -1, 0, 2}) {
        for (int64_t high : {-3, 0, 1}) {
          for (int64_t interior : {0, 1, 2}) {
            if (low + n + std::max<int64_t>(n - 1, 0) * interior + high < 0) continue;
            const NdArray y = run_op("stablehlo.pad", {in_odd_strides(x), array_of(dtype, {}, {1})},
                                     pad_attrs({low, 0}, {high, 0}, {interior, 0}));
            const NdArray expected = padded(x, 1, low, high, interior);
            ASSERT_EQ(y.shape(), expected.shape());
            EXPECT_EQ(elements(y), elements(expected)) << n << " " << low << " " << high << " " << interior;
          }
        }
      }
    }
  }
}

TEST(Pad, RefusesNegativeSizes) {
  EXPECT_EQ(error_of<ShapeError>([] {
              run_op("stablehlo.pad", {random_array(DType::kF32, {2}), array_of(DType::kF32, {}, {0})},
                     pad_attrs({-2}, {-1}, {0}));
            }),
            "stablehlo.pad: interior padding and the padded size must not be negative, got low -2, high -1, interior 0 "
            "on dim "
            "0 of tensor<2xf32>, which gives size -1; cut off fewer elements");
}

TEST(PadRule, PermutesDimsThatChangeOrShift) {
  EXPECT_EQ(rule_text("stablehlo.pad", {{28, 28, 16}, {}}, pad_attrs({1, 0, 1}, {0, 0, -1}, {0, 0, 0})),
            "([i, j, k], [])->([i, j, k]) {i=28, j=28, k=16} permutation={i, k}");
}

TEST(Concatenate, JoinsEveryDType) {
  for (DType dtype : all_dtypes()) {
    const NdArray x = random_array(dtype, {2, 3}, 1), y = random_array(dtype, {2, 0}, 2),
                  z = random_array(dtype, {2, 2}, 3);
    const NdArray joined =
        run_op("stablehlo.concatenate", {in_odd_strides(x), y, column_major(z)}, {{"dimension", IntAttr{1}}});
    ASSERT_EQ(joined.shape(), (Dims{2, 5}));
    for (int64_t i = 0; i < 2; ++i) {
      for (int64_t j = 0; j < 5; ++j) {
        EXPECT_EQ(joined.scalar_at(i * 5 + j), j < 3 ? x.scalar_at(i * 3 + j) : z.scalar_at(i * 2 + j - 3));
      }
    }
  }
}

TEST(Concatenate, RefusesOtherShapes) {
  EXPECT_EQ(error_of<ShapeError>([] {
              run_op("stablehlo.concatenate", {random_array(DType::kF32, {2, 3}), random_array(DType::kF32, {3, 3})},
                     {{"dimension", IntAttr{1}}});
            }),
            "stablehlo.concatenate: operands must have the same shape apart from dim 1, got tensor<2x3xf32>, "
            "tensor<3x3xf32>; "
            "reshape or broadcast them first");
}

TEST(ConcatenateRule, NeedsTheJoinedDimWhole) {
  EXPECT_EQ(rule_text("stablehlo.concatenate", {{4, 32, 256}, {4, 48, 256}, {4, 24, 256}}, {{"dimension", IntAttr{1}}}),
            "([i, j, k], [i, j, k], [i, j, k])->([i, j, k]) {i=4, j=104, k=256} need_replication={j}");
}

TEST(SlicingVjp, AgreesWithDifferences) {
  const NdArray x = random_reals(DType::kF64, {5, 4}, 1), y = random_reals(DType::kF64, {5, 2}, 2);
  const NdArray value = array_of(DType::kF64, {}, {0.5});
  check_vjp(op_builder("stablehlo.slice", slice_attrs({1, 0}, {5, 3}, {2, 1})), {x});
  check_vjp(op_builder("stablehlo.slice", slice_attrs({2, 0}, {2, 4}, {1, 1})), {x});
  for (int64_t interior : {0, 2}) {
    check_vjp(op_builder("stablehlo.pad", pad_attrs({1, -2}, {-2, 1}, {interior, 0})), {x, value});
    check_vjp(op_builder("stablehlo.pad", pad_attrs({-1, 2}, {2, -1}, {0, interior})), {x, value});
  }
  check_vjp(op_builder("stablehlo.concatenate", {{"dimension", IntAttr{1}}}), {x, y, x});
}

TEST(SlicingBatch, AgreesWithEveryExample) {
  const NdArray x = random_array(DType::kF32, {3, 5, 4}, 1), row = random_array(DType::kF32, {5, 4}, 2);
  const NdArray value = array_of(DType::kF32, {}, {7}), values = array_of(DType::kF32, {3}, {7, 8, 9});
  check_batch(op_builder("stablehlo.slice", slice_attrs({1, 0}, {5, 3}, {2, 1})), {x}, {true});
  const BuildOp pad = op_builder("stablehlo.pad", pad_attrs({1, -2}, {-2, 1}, {2, 0}));
  check_batch(pad, {x, value}, {true, false});
  check_batch(pad, {x, values}, {true, true});
  check_batch(pad, {row, values}, {false, true});
  check_batch(op_builder("stablehlo.concatenate", {{"dimension", IntAttr{0}}}), {x, row}, {true, false});
}

}  // namespace
}  // namespace shardwise::test
