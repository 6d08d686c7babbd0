// SPDX-License-Identifier: Apache-2.0

#include "ops/kernel_harness.h"

namespace shardwise::test {
namespace {

NdArray index(DType dtype, double value) { return array_of(dtype, {}, {value}); }

TEST(DynamicSlice, ClampsItsStart) {
  for (DType dtype : all_dtypes()) {
    const NdArray x = random_array(dtype, {8, 3});
    for (DType index_dtype : {DType::kI8, DType::kI32, DType::kI64, DType::kU8, DType::kU64}) {
      for (double start : {-5., 0., 2., 5., 6., 100.}) {
        if (start < 0 && is_unsigned_integer(index_dtype)) continue;
        const NdArray y =
            run_op("stablehlo.dynamic_slice", {in_odd_strides(x), index(index_dtype, start), index(index_dtype, 0)},
                   {{"slice_sizes", IntArray{3, 3}}});
        const auto from = static_cast<int64_t>(std::clamp(start, 0., 5.));
        EXPECT_EQ(elements(y), elements(x.sliced(0, from, 3)));
      }
    }
  }
}

TEST(DynamicSlice, TakesTheLargestIndex) {
  const NdArray x = random_array(DType::kF32, {8});
  const NdArray last = NdArray::full(DType::kU64, {}, Scalar::of_uint(DType::kU64, ~uint64_t{0}));
  EXPECT_EQ(elements(run_op("stablehlo.dynamic_slice", {x, last}, {{"slice_sizes", IntArray{3}}})),
            elements(x.sliced(0, 5, 3)));
}

TEST(DynamicSlice, RefusesLargerSlicesAndFloatIndices) {
  const NdArray x = random_array(DType::kF32, {8});
  EXPECT_EQ(
      error_of<ShapeError>(
          [&] { run_op("stablehlo.dynamic_slice", {x, index(DType::kI32, 0)}, {{"slice_sizes", IntArray{9}}}); }),
      "stablehlo.dynamic_slice: the slice must not be larger than the operand, got size 9 on dim 0 of tensor<8xf32>; "
      "make the slice smaller");
  EXPECT_EQ(
      error_of<DTypeError>(
          [&] { run_op("stablehlo.dynamic_slice", {x, index(DType::kF32, 0)}, {{"slice_sizes", IntArray{2}}}); }),
      "stablehlo.dynamic_slice: start indices must be integers, got tensor<8xf32>, tensor<f32>; convert them first");
}

std::string rule_of(std::string_view name, const std::vector<Dims>& shapes, const Attrs& attrs) {
  TestGraph graph;
  std::vector<ValueId> values;
  for (const Dims& shape : shapes) {
    values.push_back(graph.input(NdArray::empty(shape.empty() ? DType::kI32 : DType::kF32, shape)));
  }
  const OpView op(graph.module(), graph.create(name, values, attrs, {}));
  return text(op.def().rule(op));
}

TEST(DynamicSliceRule, BlocksDimsThatAreCut) {
  EXPECT_EQ(rule_of("stablehlo.dynamic_slice", {{32, 4, 8}, {}, {}, {}}, {{"slice_sizes", IntArray{32, 1, 2}}}),
            "([i, j, k], [], [], [])->([i, j, k]) {i=32, j=4, k=8} need_replication={j, k} blocked_propagation={j, k}");
}

TEST(DynamicUpdateSliceRule, NeedsTheUpdateWhole) {
  EXPECT_EQ(rule_of("stablehlo.dynamic_update_slice", {{32, 4, 8}, {32, 1, 2}, {}, {}, {}}, {}),
            "([i, j, l], [i, k, m], [], [], [])->([i, j, l]) {i=32, j=4, k=1, l=8, m=2} need_replication={k, m}");
}

TEST(DynamicUpdateSlice, ReplacesAtTheClampedStart) {
  for (DType dtype : all_dtypes()) {
    const NdArray x = random_array(dtype, {8, 3}, 1), update = random_array(dtype, {3, 3}, 2);
    for (double start : {-5., 0., 2., 5., 6., 100.}) {
      const NdArray y = run_op("stablehlo.dynamic_update_slice", {in_odd_strides(x), column_major(update),
                                                                  index(DType::kI32, start), index(DType::kI32, 9)});
      const auto from = static_cast<int64_t>(std::clamp(start, 0., 5.));
      for (int64_t i = 0; i < 24; ++i) {
        const bool inside = i / 3 >= from && i / 3 < from + 3;
        EXPECT_EQ(y.scalar_at(i), inside ? update.scalar_at(i - from * 3) : x.scalar_at(i));
      }
    }
  }
}

TEST(DynamicSlicingVjp, AgreesWithDifferences) {
  const NdArray x = random_reals(DType::kF64, {5, 4}, 1), update = random_reals(DType::kF64, {2, 3}, 2);
  const NdArray i = index(DType::kI32, 4), j = index(DType::kI32, 1);
  check_vjp(op_builder("stablehlo.dynamic_slice", {{"slice_sizes", IntArray{2, 3}}}), {x, i, j});
  check_vjp(op_builder("stablehlo.dynamic_update_slice"), {x, update, i, j});
}

TEST(DynamicSlicingBatch, AgreesWithEveryExample) {
  const NdArray x = random_array(DType::kF32, {3, 5, 4}, 1), one = random_array(DType::kF32, {5, 4}, 2);
  const NdArray i = index(DType::kI32, 2), places = array_of(DType::kI32, {3}, {0, 4, -1});
  const BuildOp slice = op_builder("stablehlo.dynamic_slice", {{"slice_sizes", IntArray{2, 3}}});
  check_batch(slice, {x, i, i}, {true, false, false});
  check_batch(slice, {x, places, i}, {true, true, false});
  check_batch(slice, {one, places, places}, {false, true, true});
  const NdArray update = random_array(DType::kF32, {3, 2, 3}, 3);
  const BuildOp put_slice = op_builder("stablehlo.dynamic_update_slice");
  check_batch(put_slice, {one, update, i, i}, {false, true, false, false});
  check_batch(put_slice, {x, update, places, i}, {true, true, true, false});
}

}  // namespace
}  // namespace shardwise::test
