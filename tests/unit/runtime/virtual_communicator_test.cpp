// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/virtual_communicator.h"

#include <gtest/gtest.h>

#include "runtime/collective_cases.h"
#include "shardwise/runtime/fold.h"

namespace shardwise {
namespace {

using namespace shardwise::testing;

TEST(VirtualCommunicator, AllReduceFoldsGroupsInOrder) {
  Random random(1);
  for (DType dtype : kDTypes) {
    for (int round = 0; round < kRandomCases / 10; ++round) {
      const Case c = random_case(random, dtype, {2, 3});
      const AxisList axes = some_of(random, c.digits);
      const Reducer reducer = random_reducer(random, dtype);
      const Held expected = simulate_all_reduce(*c.mesh, on_devices(*c.mesh, c.operand), axes, reducer);
      expect_held(*c.mesh, VirtualCommunicator().all_reduce(c.operand, axes, reducer), expected);
      if (HasFatalFailure()) FAIL() << mlir_name(dtype) << " " << name(reducer) << " " << axis_list_text(*c.mesh, axes);
    }
  }
}

TEST(VirtualCommunicator, AllReduceCountsCopiesOfAValueThatDoesNotVary) {
  const Mesh mesh("mesh", {{"x", 20}});
  const Shards ones(NdArray::full(DType::kBF16, {3}, Scalar::of_float(DType::kBF16, 1.01)));
  const AxisList axes{full_axis(mesh, 0)};
  const Held expected = simulate_all_reduce(mesh, on_devices(mesh, ones), axes, Reducer::kSum);
  const Shards sum = VirtualCommunicator().all_reduce(ones, axes, Reducer::kSum);
  EXPECT_EQ(sum.count(), 1);
  expect_held(mesh, sum, expected);
}

TEST(VirtualCommunicator, AllGatherConcatenates) {
  Random random(2);
  for (int round = 0; round < kRandomCases; ++round) {
    const Case c = random_case(random, kDTypes[round % 13], {2, 1, 3});
    const std::vector<AxisList> gather = deal(random, some_of(random, c.digits), 3);
    Held expected = on_devices(*c.mesh, c.operand);
    for (size_t d = 0; d < 3; ++d) expected = simulate_gather(*c.mesh, expected, gather[d], static_cast<int64_t>(d));
    expect_held(*c.mesh, VirtualCommunicator().all_gather(c.operand, gather), expected);
    if (HasFatalFailure()) return;
  }
}

TEST(VirtualCommunicator, AllGatherOfAdjacentShardsIsAView) {
  const Mesh mesh("mesh", {{"x", 4}, {"y", 2}});
  const AxisList x{full_axis(mesh, 0)};
  const NdArray stack = NdArray::empty(DType::kF32, {4, 2, 16, 8});
  const Shards operand({full_axis(mesh, 0), full_axis(mesh, 1)}, stack);
  const AxisList both{full_axis(mesh, 0), full_axis(mesh, 1)};
  EXPECT_EQ(VirtualCommunicator().all_gather(operand, std::vector<AxisList>{both, {}}).stacked().data(), stack.data());
  // dim 1 needs a copy
  EXPECT_NE(VirtualCommunicator().all_gather(operand, std::vector<AxisList>{{}, x}).stacked().data(), stack.data());
}

TEST(VirtualCommunicator, ReduceScatterKeepsTheOwnPart) {
  Random random(3);
  for (int round = 0; round < kRandomCases; ++round) {
    const DType dtype = kDTypes[round % 13];
    const Case c = random_case(random, dtype, {24, 24});
    const AxisList axes = some_of(random, c.digits);
    const std::vector<AxisList> scatter = deal(random, some_of(random, axes), 2);
    const Reducer reducer = random_reducer(random, dtype);
    Held expected = simulate_all_reduce(*c.mesh, on_devices(*c.mesh, c.operand), axes, reducer);
    for (size_t d = 0; d < 2; ++d) expected = simulate_slice(*c.mesh, expected, scatter[d], static_cast<int64_t>(d));
    expect_held(*c.mesh, VirtualCommunicator().reduce_scatter(c.operand, axes, scatter, reducer), expected);
    if (HasFatalFailure()) return;
  }
}

TEST(VirtualCommunicator, AllToAllMovesAxesBetweenDims) {
  Random random(4);
  for (int round = 0; round < kRandomCases; ++round) {
    const Case c = random_case(random, kDTypes[round % 13], {24, 24, 24});
    std::vector<AllToAllMove> moves;
    Held expected = on_devices(*c.mesh, c.operand);
    for (const AxisList& axes : deal(random, some_of(random, c.digits), 2)) {
      const int64_t from = below(random, 3);
      moves.push_back({axes, from, (from + 1 + below(random, 2)) % 3});
      // every device sends part j of to_dim to member j of its group
      expected = simulate_gather(*c.mesh, expected, axes, from);
      expected = simulate_slice(*c.mesh, expected, axes, moves.back().to_dim);
    }
    expect_held(*c.mesh, VirtualCommunicator().all_to_all(c.operand, moves), expected);
    if (HasFatalFailure()) return;
  }
}

TEST(VirtualCommunicator, AllToAllOfAStackCopiesAtMostOnce) {
  const Mesh mesh("mesh", {{"x", 4}});
  const AxisList x{full_axis(mesh, 0)};
  const NdArray whole = NdArray::empty(DType::kF32, {16, 8});
  const Shards rows(x, NdArray(DType::kF32, {4, 4, 8}, {128, 32, 4}, whole.data(), whole.owner()));
  const Shards columns = VirtualCommunicator().all_to_all(rows, std::vector<AllToAllMove>{{x, 0, 1}});
  EXPECT_EQ(columns.stacked().data(), whole.data());  // columns of the same matrix: a view
  EXPECT_EQ(columns.local_shape(), (Dims{16, 2}));
}

TEST(VirtualCommunicator, PermuteReordersDigits) {
  Random random(5);
  for (int round = 0; round < kRandomCases; ++round) {
    const Case c = random_case(random, kDTypes[round % 13], {2, 3});
    const AxisList from = some_of(random, c.digits);
    AxisList to = from;
    std::shuffle(to.begin(), to.end(), random);
    const Held held = on_devices(*c.mesh, c.operand);
    Held expected;
    for (int64_t d = 0; d < c.mesh->device_count(); ++d) {
      const auto members = group_of(*c.mesh, from, d);
      expected.push_back(held[static_cast<size_t>(members[static_cast<size_t>(shard_index(*c.mesh, to, d))])]);
    }
    expect_held(*c.mesh, VirtualCommunicator().permute(c.operand, from, to), expected);
    if (HasFatalFailure()) return;
  }
}

TEST(VirtualCommunicator, PermuteToOtherAxesSwapsThem) {
  const Mesh mesh("mesh", {{"x", 4}, {"y", 4}});
  const AxisList x{full_axis(mesh, 0)};
  const AxisList y{full_axis(mesh, 1)};
  Random random(6);
  const Shards along_x(x, random_array(random, DType::kF32, {4, 3}));
  const Shards along_y = VirtualCommunicator().permute(along_x, x, y).along(y);
  ASSERT_EQ(along_y.count(), 4);
  for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(same_elements(along_y[i], along_x[i]));
}

TEST(VirtualCommunicator, PermuteBetweenDigitsOfOtherSizesGoesByTheProduct) {
  const Mesh mesh("mesh", {{"x", 6}, {"y", 2}, {"z", 3}});
  const AxisList from{full_axis(mesh, 0)};
  const AxisList to{full_axis(mesh, 2), full_axis(mesh, 1)};
  Random random(7);
  const Shards operand(from, random_array(random, DType::kI32, {6, 2}));
  const Shards result = VirtualCommunicator().permute(operand, from, to);
  for (int64_t d = 0; d < mesh.device_count(); ++d) {
    const NdArray held = result[shard_index(mesh, result.axes(), d)];
    EXPECT_TRUE(same_elements(held, operand[shard_index(mesh, to, d)])) << d;
  }
}

TEST(VirtualCommunicator, ShiftPassesNeighbours) {
  Random random(8);
  for (int round = 0; round < kRandomCases; ++round) {
    const Case c = random_case(random, kDTypes[round % 13], {2});
    const AxisList axes = some_of(random, c.digits);
    const int64_t offset = below(random, 9) - 4;
    const bool wrap = below(random, 2) == 0;
    const Held expected = simulate_shift(*c.mesh, on_devices(*c.mesh, c.operand), axes, offset, wrap);
    expect_held(*c.mesh, VirtualCommunicator().shift(c.operand, axes, offset, wrap), expected);
    if (HasFatalFailure()) return;
  }
}

// Each device has the sum of those before it, or after it, in their order.
TEST(VirtualCommunicator, ChainPassesOnWhatDevicesBeforeCombineTo) {
  Random random(10);
  for (int round = 0; round < kRandomCases; ++round) {
    const Case c = random_case(random, DType::kF32, {2});
    const AxisList axes = some_of(random, c.digits);
    const int64_t step = below(random, 2) == 0 ? 1 : -1;
    const Held held = on_devices(*c.mesh, c.operand);
    Held expected;
    for (int64_t d = 0; d < c.mesh->device_count(); ++d) {
      const auto members = group_of(*c.mesh, axes, d);
      const int64_t own = shard_index(*c.mesh, axes, d), count = std::ssize(members);
      std::vector<NdArray> before;
      for (int64_t k = step > 0 ? 0 : count - 1; k != own; k += step) {
        before.push_back(held[static_cast<size_t>(members[static_cast<size_t>(k)])]);
      }
      const Scalar zero = Scalar::of_int(DType::kF32, 0);
      expected.push_back(before.empty() ? NdArray::full(DType::kF32, held[0].shape(), zero)
                                        : fold(Reducer::kSum, before));
    }
    expect_held(*c.mesh, VirtualCommunicator().chain(c.operand, axes, step, Reducer::kSum), expected);
    if (HasFatalFailure()) return;
  }
}

TEST(VirtualCommunicator, AxisIndexIsTheRowMajorPosition) {
  Random random(9);
  for (int round = 0; round < kRandomCases; ++round) {
    const MeshPtr mesh = random_mesh(random);
    const AxisList axes = some_of(random, random_digits(random, *mesh));
    const Shards index = VirtualCommunicator().axis_index(axes);
    EXPECT_EQ(index.count(), product(axes));
    const Held held = on_devices(*mesh, index);
    for (int64_t d = 0; d < mesh->device_count(); ++d) {
      ASSERT_EQ(held[static_cast<size_t>(d)].scalar_at().integer, shard_index(*mesh, axes, d));
    }
  }
}

}  // namespace
}  // namespace shardwise
