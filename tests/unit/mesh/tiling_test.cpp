// SPDX-License-Identifier: Apache-2.0
#include "shardwise/mesh/tiling.h"

#include <limits>
#include <map>

#include <gtest/gtest.h>

#include "shardwise/base/error.h"
#include "support/message_of.h"

namespace shardwise {
namespace {

using testing::message_of;

MeshPtr make_mesh(std::vector<MeshAxis> axes, Dims ids = {}) {
  return std::make_shared<const Mesh>("m", std::move(axes), std::move(ids));
}

TensorSharding shard(MeshPtr mesh, std::vector<AxisList> dims) {
  TensorSharding sharding{std::move(mesh), {}, {}, {}, {}};
  for (AxisList& axes : dims) sharding.dims.push_back({std::move(axes), false, {}});
  return sharding;
}

TEST(Tiling, BlocksAreCeil) {
  EXPECT_EQ(block_size(7, 2), 4);
  EXPECT_EQ(block_size(0, 4), 0);
  EXPECT_EQ(block_size(1, 8), 1);
  EXPECT_EQ(block_size(std::numeric_limits<int64_t>::max(), 2), int64_t{1} << 62);
}

TEST(Tiling, LastShardsAreShortOrEmpty) {
  const auto sharding = shard(make_mesh({{"x", 4}}), {{{0, 1, 4}}});
  EXPECT_EQ(local_shape(sharding, Dims{5}), Dims{2});
  const std::vector<LocalSlice> expected{{{0}, {2}}, {{2}, {2}}, {{4}, {1}}, {{5}, {0}}};
  EXPECT_EQ(slices(sharding, Dims{5}), expected);
  EXPECT_EQ(slice_of(sharding, Dims{0}, 3), (LocalSlice{{0}, {0}}));
}

TEST(Tiling, TakesLargerBlocks) {
  const auto sharding = shard(make_mesh({{"x", 4}}), {{{0, 1, 4}}, {}});
  EXPECT_EQ(local_shape(sharding, Dims{5, 3}, Dims{4, 3}), (Dims{4, 3}));
  EXPECT_EQ(slice_of(sharding, Dims{5, 3}, 1, Dims{4, 3}), (LocalSlice{{4, 0}, {1, 3}}));
  EXPECT_EQ(slice_of(sharding, Dims{5, 3}, 3, Dims{4, 3}), (LocalSlice{{5, 0}, {0, 3}}));
  const int64_t huge = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(slice_of(sharding, Dims{5, 3}, 3, Dims{huge, huge}), (LocalSlice{{5, 0}, {0, 3}}));
}

TEST(Tiling, DevicesFollowIds) {
  const auto sharding = shard(make_mesh({{"x", 2}, {"y", 2}}, {3, 2, 1, 0}), {{{1, 1, 2}}, {{0, 1, 2}}});
  // Device 2 is at x=0, y=1.
  EXPECT_EQ(slice_of(sharding, Dims{4, 6}, sharding.mesh->logical_index(2)), (LocalSlice{{2, 0}, {2, 3}}));
  EXPECT_EQ(slice_of(sharding, Dims{4, 6}, 2), (LocalSlice{{0, 3}, {2, 3}}));
}

TEST(Tiling, MaximalMeshHoldsEverything) {
  const auto sharding = shard(make_mesh({}, {3}), {});
  EXPECT_EQ(local_shape(sharding, Dims{4, 6}), (Dims{4, 6}));
  EXPECT_EQ(slice_of(sharding, Dims{4, 6}, sharding.mesh->logical_index(3)), (LocalSlice{{0, 0}, {4, 6}}));
}

TEST(Tiling, SubAxisIsADigit) {
  const auto mesh = make_mesh({{"x", 12}, {"y", 2}});
  for (int64_t device = 0; device < 24; ++device) {
    const int64_t x = device / 2;
    EXPECT_EQ(axis_coordinate(*mesh, {0, 1, 2}, device), x / 6);
    EXPECT_EQ(axis_coordinate(*mesh, {0, 2, 3}, device), x / 2 % 3);
    EXPECT_EQ(axis_coordinate(*mesh, {0, 6, 2}, device), x % 2);
    // Minor digit first, then y, then the major digit.
    EXPECT_EQ(shard_index(*mesh, AxisList{{0, 6, 2}, {1, 1, 2}, {0, 1, 2}}, device),
              (x % 2 * 2 + device % 2) * 2 + x / 6);
  }
}

// Split the axis into its digits as axes of their own: nothing may change.
TEST(Tiling, SubAxesEqualARefinedMesh) {
  const auto coarse = make_mesh({{"x", 12}, {"y", 2}});
  const auto fine = make_mesh({{"a", 2}, {"b", 3}, {"c", 2}, {"y", 2}});
  const auto of_coarse = shard(coarse, {{{0, 6, 2}, {0, 1, 2}}, {{1, 1, 2}, {0, 2, 3}}});
  const auto of_fine = shard(fine, {{{2, 1, 2}, {0, 1, 2}}, {{3, 1, 2}, {1, 1, 3}}});
  EXPECT_EQ(slices(of_coarse, Dims{7, 17}), slices(of_fine, Dims{7, 17}));
}

// For every size: the shards tile the dim in order, and all devices outside the axes hold copies.
TEST(Tiling, EveryElementIsHeldOncePerReplica) {
  const auto mesh = make_mesh({{"x", 8}, {"y", 3}}, {});
  const std::vector<AxisList> lists{{}, {{0, 1, 8}}, {{0, 2, 2}}, {{1, 1, 3}, {0, 4, 2}}, {{0, 1, 8}, {1, 1, 3}}};
  for (const AxisList& axes : lists) {
    for (int64_t size = 0; size <= 30; ++size) {
      const auto sharding = shard(mesh, {axes});
      std::vector<int64_t> holders(static_cast<size_t>(size), 0);
      std::map<int64_t, LocalSlice> by_shard;
      for (int64_t device = 0; device < mesh->device_count(); ++device) {
        const LocalSlice slice = slice_of(sharding, Dims{size}, device);
        EXPECT_EQ(by_shard.emplace(shard_index(*mesh, axes, device), slice).first->second, slice);
        for (int64_t i = 0; i < slice.size[0]; ++i) ++holders[static_cast<size_t>(slice.start[0] + i)];
      }
      for (int64_t count : holders) EXPECT_EQ(count, mesh->device_count() / product(axes));
      int64_t end = 0;
      for (const auto& [shard, slice] : by_shard) {
        EXPECT_EQ(slice.start[0], end);
        end += slice.size[0];
      }
      EXPECT_EQ(end, size);
    }
  }
}

TEST(TilingError, NamesValues) {
  const auto sharding = shard(make_mesh({{"x", 4}}), {{{0, 1, 4}}});
  EXPECT_EQ(message_of<ShardingError>([&] { local_shape(sharding, Dims{5, 5}); }),
            "sharding: it must have one entry per dim of the tensor, got 1 for 2 dims");
  EXPECT_EQ(message_of<ShardingError>([&] { local_shape(sharding, Dims{5}, Dims{2, 2}); }),
            "sharding: there must be one block per dim, got 2 for 1 dims");
  EXPECT_EQ(message_of<ShardingError>([&] { local_shape(sharding, Dims{5}, Dims{1}); }),
            "sharding: 4 blocks must cover dim 0 of size 5, got blocks of 1; use at least 2");
  EXPECT_EQ(message_of<MeshError>([&] { slice_of(sharding, Dims{5}, 4); }),
            "mesh @m: a logical index must be from 0 to 3, got 4");
  EXPECT_EQ(message_of<MeshError>([&] { slice_of(sharding, Dims{5}, sharding.mesh->logical_index(-1)); }),
            "mesh @m: a device id must be from 0 to 3, got -1");
}

}  // namespace
}  // namespace shardwise
