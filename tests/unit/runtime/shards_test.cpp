// SPDX-License-Identifier: Apache-2.0
#include "shardwise/base/array_view.h"
#include "shardwise/runtime/shards.h"

#include <gtest/gtest.h>

#include "runtime/simulator.h"

namespace shardwise {
namespace {

using namespace shardwise::testing;

TEST(Shards, AlongAddsCopiesAndTakesCoordinateZero) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    const MeshPtr mesh = random_mesh(random);
    const AxisList digits = random_digits(random, *mesh);
    const AxisList axes = sorted(some_of(random, digits));
    const AxisList other = sort_and_merge(some_of(random, digits));
    const Shards shards = random_shards(random, DType::kI32, axes, {2});
    const Shards moved = shards.along(other);
    ASSERT_EQ(moved.axes(), other);
    const Held held = on_devices(*mesh, shards);
    const Held after = on_devices(*mesh, moved);
    for (int64_t d = 0; d < mesh->device_count(); ++d) {
      bool at_zero = true;  // along what went away
      for (const AxisRef& axis : difference(axes, other)) at_zero = at_zero && axis_coordinate(*mesh, axis, d) == 0;
      if (at_zero) {
        ASSERT_TRUE(same_elements(held[static_cast<size_t>(d)], after[static_cast<size_t>(d)]));
      }
    }
  }
}

TEST(Shards, AlongCutsThatNoSingleSplitHas) {
  const AxisList halves{{0, 1, 2}};  // of x = 6
  const AxisList thirds{{0, 1, 3}};
  std::vector<NdArray> list;
  for (int i = 0; i < 2; ++i) list.push_back(NdArray::full(DType::kI32, {1}, Scalar::of_int(DType::kI32, i)));
  const Shards shards(halves, std::move(list));
  const Shards whole = shards.along(AxisList{{0, 1, 6}});
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(whole[i].scalar_at().integer, i / 3);
  const Shards third = shards.along(thirds);
  EXPECT_EQ(third[0].scalar_at().integer, 0);
  EXPECT_EQ(third[2].scalar_at().integer, 1);
}

TEST(Shards, ListsOfRegularViewsAreStacks) {
  const AxisList axes{{0, 1, 2}, {1, 1, 3}};
  const NdArray whole = NdArray::empty(DType::kF32, {6, 9});
  std::vector<NdArray> list;
  for (int64_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 3; ++j) list.push_back(whole.sliced(0, i * 3, 3).sliced(1, j * 3, 3));
  }
  const Shards regular(axes, list);
  ASSERT_TRUE(regular.is_stacked());
  EXPECT_EQ(regular.stacked().strides(), (Dims{108, 12, 36, 4}));
  std::swap(list[1], list[2]);
  EXPECT_FALSE(Shards(axes, list).is_stacked());
}

TEST(Shards, StackCopiesOnlyLists) {
  Random random(12);
  const AxisList axes{{0, 1, 4}};
  const Shards stacked(axes, random_array(random, DType::kF32, {4, 2}));
  EXPECT_EQ(stacked.stack().data(), stacked.stacked().data());
  std::vector<NdArray> list;
  for (int i = 0; i < 4; ++i) list.push_back(random_array(random, DType::kF32, {2}));
  const Shards apart(axes, list);
  const Shards copy(axes, apart.stack());
  for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(same_elements(copy[i], list[static_cast<size_t>(i)]));
}

TEST(ArrayView, MergesOnlyDimsThatNest) {
  const NdArray a = NdArray::empty(DType::kF32, {2, 4, 6});
  EXPECT_EQ(merge_dims(a, 0, 2)->shape(), (Dims{8, 6}));
  const std::vector<size_t> order{1, 0, 2};
  EXPECT_FALSE(merge_dims(reorder_dims(a, order), 0, 2).has_value());
  EXPECT_EQ(merge_dims(a, 1, 1)->shape(), (Dims{2, 1, 4, 6}));
  EXPECT_EQ(split_dim(a, 1, Dims{2, 2}).strides(), (Dims{96, 48, 24, 4}));
  EXPECT_EQ(select(a, 1, 3).data() - a.data(), 72);
  EXPECT_EQ(insert_dim(a, 0, 5).strides(), (Dims{0, 96, 24, 4}));
}

}  // namespace
}  // namespace shardwise
