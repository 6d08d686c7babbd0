// SPDX-License-Identifier: Apache-2.0

#include "ops/kernel_harness.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise::test {
namespace {

NdArray iota(DType dtype, Dims shape, int64_t dim) {
  return run_op("stablehlo.iota", {}, {{"iota_dimension", IntAttr{dim}}}, TensorType{dtype, std::move(shape)});
}

TEST(Iota, CountsAlongOneDim) {
  for (DType dtype : all_dtypes()) {
    if (dtype == DType::kBool) continue;
    EXPECT_EQ(elements(iota(dtype, {2, 3}, 1)), (std::vector<double>{0, 1, 2, 0, 1, 2}));
    EXPECT_EQ(elements(iota(dtype, {2, 3}, 0)), (std::vector<double>{0, 0, 0, 1, 1, 1}));
    EXPECT_EQ(iota(dtype, {0, 3}, 0).size(), 0);
  }
  EXPECT_EQ(iota(DType::kI8, {130}, 0).scalar_at(129), Scalar::of_int(DType::kI8, -127));
  EXPECT_EQ(iota(DType::kBF16, {260}, 0).scalar_at(257), Scalar::of_float(DType::kBF16, 256));
}

TEST(Iota, RefusesBooleansAndScalars) {
  EXPECT_EQ(error_of<DTypeError>([] { iota(DType::kBool, {4}, 0); }),
            "stablehlo.iota: the result must have a number dtype, got tensor<4xi1>; make integers and compare them");
  EXPECT_EQ(error_of<ShapeError>([] { iota(DType::kI32, {}, 0); }),
            "stablehlo.iota: iota_dimension must be a dim of the result, got iota_dimension = 0 for tensor<i32>; use a "
            "dim of "
            "the result; a scalar has none");
}

TEST(Constant, IsItsElements) {
  const NdArray data = random_array(DType::kF16, {2, 3});
  EXPECT_EQ(run_op("stablehlo.constant", {}, {{"value", DenseAttr{data}}}).data(), data.data());
}

TEST(ConstantRule, LetsSplatsBeSharded) {
  const auto text = [](NdArray data) {
    return rule_text("stablehlo.constant", {}, {{"value", DenseAttr{std::move(data)}}});
  };
  EXPECT_EQ(text(NdArray::full(DType::kF32, {4, 8}, scalar_of(DType::kF32, 1))), "()->([i, j]) {i=4, j=8}");
  EXPECT_EQ(text(random_array(DType::kF32, {4, 8})), "()->([i, j]) {i=4, j=8} need_replication={i, j}");
}

TEST(SplatValue, LooksThroughMovement) {
  TestGraph graph;
  Builder builder = graph.builder();
  const ValueId two = build_scalar(builder, scalar_of(DType::kF32, 2));
  EXPECT_EQ(splat_value(graph.module(), build_broadcast(builder, two, Dims{3, 4}, {})), scalar_of(DType::kF32, 2));
  EXPECT_FALSE(splat_value(graph.module(), graph.input(random_array(DType::kF32, {3}))));
}

}  // namespace
}  // namespace shardwise::test
