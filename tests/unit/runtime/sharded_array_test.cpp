// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/sharded_array.h"

#include <cstring>

#include <gtest/gtest.h>

#include "runtime/simulator.h"
#include "shardwise/base/error.h"

namespace shardwise {
namespace {

using namespace shardwise::testing;

TensorSharding random_sharding(Random& random, const MeshPtr& mesh, int64_t ndim) {
  TensorSharding sharding = TensorSharding::fully_replicated(mesh, ndim);
  for (const AxisRef& axis : some_of(random, random_digits(random, *mesh))) {
    append_merged(sharding.dims[static_cast<size_t>(below(random, ndim))].axes, axis);
  }
  return sharding;
}

TEST(ShardedArray, ScatterGivesEveryDeviceItsSlice) {
  Random random(21);
  const std::vector<Dims> shapes = {{16, 24}, {17, 5}, {1, 8}, {0, 4}, {7, 1}, {3, 0}};
  for (int round = 0; round < 400; ++round) {
    const MeshPtr mesh = random_mesh(random);
    const Dims& shape = shapes[static_cast<size_t>(below(random, 6))];
    const NdArray whole = random_array(random, DType::kI16, shape);
    const TensorSharding sharding = random_sharding(random, mesh, 2);
    Dims blocks;
    if (below(random, 3) == 0) {  // larger blocks than needed
      blocks = local_shape(sharding, shape);
      for (size_t d = 0; d < 2; ++d) {
        if (!sharding.dims[d].axes.empty()) blocks[d] += below(random, 3);
      }
    }
    const ShardedArray array = scatter(whole, sharding, blocks);
    for (int64_t device = 0; device < mesh->device_count(); ++device) {
      const LocalSlice expected = slice_of(sharding, shape, mesh->logical_index(device), blocks);
      ASSERT_EQ(array.slice(device), expected);
      NdArray part = whole;
      for (int64_t d = 0; d < 2; ++d) {
        part = part.sliced(d, expected.start[static_cast<size_t>(d)], expected.size[static_cast<size_t>(d)]);
      }
      ASSERT_TRUE(same_elements(array.shard(device), part));
      ASSERT_EQ(array.padded_shard(device).shape(), array.placement().local_shape());
    }
    ASSERT_TRUE(same_elements(gather(array), whole));
    ASSERT_TRUE(replicas_agree(array));
  }
}

TEST(ShardedArray, ScatterCopiesOnlyUnevenTails) {
  const auto mesh = std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 4}, {"y", 2}});
  const NdArray even = NdArray::empty(DType::kF32, {8, 6});
  TensorSharding sharding = TensorSharding::fully_replicated(mesh, 2);
  sharding.dims[0].axes = {full_axis(*mesh, 0)};
  sharding.dims[1].axes = {full_axis(*mesh, 1)};
  const ShardedArray views = scatter(even, sharding);
  EXPECT_TRUE(views.shards().is_stacked());
  EXPECT_EQ(views.shards().stacked().data(), even.data());
  EXPECT_EQ(gather(views).data(), even.data());  // and back without a copy

  const NdArray uneven = NdArray::empty(DType::kF32, {7, 6});
  const ShardedArray tailed = scatter(uneven, sharding);
  EXPECT_EQ(tailed.padded_shard(0).data(), uneven.data());
  EXPECT_EQ(tailed.padded_shard(4).owner(), uneven.owner());
  EXPECT_NE(tailed.padded_shard(6).owner(), uneven.owner());
}

TEST(ShardedArray, PaddingIsZeroOrPoison) {
  const auto mesh = std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 4}});
  TensorSharding sharding = TensorSharding::fully_replicated(mesh, 1);
  sharding.dims[0].axes = {full_axis(*mesh, 0)};
  const NdArray ones = NdArray::full(DType::kF32, {5}, Scalar::of_float(DType::kF32, 1));
  EXPECT_EQ(scatter(ones, sharding).padded_shard(2).scalar_at(1).real, 0);
  EXPECT_TRUE(std::isnan(scatter(ones, sharding, {}, PaddingFill::kPoison).padded_shard(3).scalar_at(0).real));
  const NdArray bytes = NdArray::full(DType::kU8, {5}, Scalar::of_int(DType::kU8, 1));
  EXPECT_EQ(scatter(bytes, sharding, {}, PaddingFill::kPoison).padded_shard(2).scalar_at(1).natural, 0xA5U);
  EXPECT_EQ(scatter(ones, sharding).shard(3).shape(), (Dims{0}));
}

TEST(ShardedArray, DeviceIdsNameDevices) {
  const auto mesh = std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 3}}, Dims{2, 0, 1});
  TensorSharding sharding = TensorSharding::fully_replicated(mesh, 1);
  sharding.dims[0].axes = {full_axis(*mesh, 0)};
  Random random(22);
  const NdArray whole = random_array(random, DType::kI32, {3});
  const ShardedArray array = scatter(whole, sharding);
  EXPECT_EQ(array.shard(2).scalar_at(), whole.scalar_at(0));
  EXPECT_EQ(array.shard(0).scalar_at(), whole.scalar_at(1));
  EXPECT_THROW(array.shard(3), MeshError);
}

TEST(ShardedArray, GatherFinishesPendingReductions) {
  const auto mesh = std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 2}, {"y", 3}});
  Random random(23);
  for (Reducer reducer : {Reducer::kSum, Reducer::kProd, Reducer::kMax, Reducer::kMin, Reducer::kAnd, Reducer::kOr}) {
    TensorSharding sharding = TensorSharding::fully_replicated(mesh, 1);
    sharding.dims[0].axes = {full_axis(*mesh, 0)};
    sharding.unreduced = {full_axis(*mesh, 1)};
    sharding.reducer = reducer;
    const NdArray whole = random_array(random, DType::kI32, {5});
    const ShardedArray array = scatter(whole, sharding);
    EXPECT_EQ(array.shards().count(), 6);
    EXPECT_TRUE(same_elements(gather(array), whole)) << name(reducer);
  }
}

TEST(ShardedArray, MaximalMeshHoldsEverythingOnOneDevice) {
  const auto mesh = std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{}, Dims{3});
  const NdArray whole = NdArray::full(DType::kF64, {2, 2}, Scalar::of_float(DType::kF64, 1));
  const ShardedArray array = scatter(whole, TensorSharding::fully_replicated(mesh, 0));
  EXPECT_EQ(array.shard(3).shape(), (Dims{2, 2}));
  EXPECT_EQ(gather(array).data(), whole.data());
}

TEST(ShardedArray, ReplicasMayDisagree) {
  const auto mesh = std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 2}});
  Random random(24);
  const AxisList x{full_axis(*mesh, 0)};
  const ShardedArray array(DType::kI32, {4}, array_layout(TensorSharding::fully_replicated(mesh, 1), Dims{4}),
                           Shards(x, random_array(random, DType::kI32, {2, 4})));
  EXPECT_FALSE(replicas_agree(array));
}

TEST(ShardedArray, ShardsMustBeBlocks) {
  const auto mesh = std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 2}});
  EXPECT_THROW(ShardedArray(DType::kI32, {4}, array_layout(TensorSharding::fully_replicated(mesh, 1), Dims{4}),
                            Shards(NdArray::empty(DType::kI32, {3}))),
               ShapeError);
}

}  // namespace
}  // namespace shardwise
