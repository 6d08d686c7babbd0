// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/processes/process_communicator.h"

#include <gtest/gtest.h>

#include "runtime/collective_cases.h"
#include "runtime/processes.h"
#include "shardwise/mesh/tiling.h"

namespace shardwise {
namespace {

using namespace shardwise::testing;

constexpr int64_t kMostThreads = 12;

using Collective = std::function<Shards(DeviceCommunicator&, const Shards&)>;

// Each process gets the shards that the virtual mesh computes for its devices, whichever digits are pinned.
void expect_as_on_the_virtual_mesh(Random& random, const Case& c, const Collective& collective) {
  VirtualCommunicator virtual_mesh;
  const Shards expected = collective(virtual_mesh, c.operand);
  AxisList pinned = respelled(random, sorted(some_of(random, c.digits)));
  while (product(pinned) > kMostThreads) pinned.pop_back();
  run_in_processes(pinned, [&](const DeviceSet& devices, DeviceCommunicator& communicator) {
    const Shards actual = collective(communicator, devices.owned(c.operand));
    const AxisList grid = sorted(devices.free(c.digits));
    for (int64_t i = 0; i < product(grid); ++i) {
      const NdArray wanted = expected[devices.position_along(expected.axes(), grid, i)];
      EXPECT_TRUE(same_elements(actual[devices.position_along(actual.axes(), grid, i)], wanted))
          << axis_list_text(*c.mesh, pinned) << " at " << devices.position << ", device " << i;
    }
  });
}

TEST(ProcessCommunicator, AllReduce) {
  Random random(21);
  for (int round = 0; round < kRandomCases; ++round) {
    const DType dtype = kDTypes[round % 13];
    // Large operands are folded in parts.
    const Case c = random_case(random, dtype, round % 10 == 0 ? Dims{3, 30011} : Dims{2, 3});
    const AxisList axes = respelled(random, some_of(random, c.digits));
    const Reducer reducer = random_reducer(random, dtype);
    expect_as_on_the_virtual_mesh(random, c, [&](DeviceCommunicator& communicator, const Shards& operand) {
      return communicator.all_reduce(operand, axes, reducer);
    });
    if (HasFailure()) FAIL() << round << " " << name(reducer) << " " << axis_list_text(*c.mesh, axes);
  }
}

TEST(ProcessCommunicator, AllReducesTogether) {
  Random random(31);
  for (int round = 0; round < kRandomCases; ++round) {
    const DType dtype = kDTypes[round % 13];
    const Case c = random_case(random, dtype, round % 10 == 0 ? Dims{3, 30011} : Dims{2, 3});
    const AxisList axes = respelled(random, some_of(random, c.digits));
    const Reducer first = random_reducer(random, dtype);
    const std::vector<Reducer> reducers{first, random_reducer(random, dtype), first};  // two travel as one array
    for (size_t which = 0; which < 3; ++which) {
      expect_as_on_the_virtual_mesh(random, c, [&](DeviceCommunicator& communicator, const Shards& operand) {
        const NdArray stack = operand.stack();
        const Shards part(operand.axes(), stack.sliced(stack.ndim() - 1, 1, 2));
        return communicator.all_reduce_together(std::vector<Shards>{operand, operand, part}, axes, reducers)[which];
      });
    }
    if (HasFailure()) FAIL() << round << " " << name(reducers[0]) << " " << axis_list_text(*c.mesh, axes);
  }
}

// The same bytes as other numbers: operands of several dtypes share a message, each at an address of its own alignment.
Shards as_bytes(const Shards& operand) {
  const NdArray stack = operand.stack().contiguous();
  Dims shape = stack.shape();
  shape.back() *= item_size(stack.dtype());
  Dims strides = row_major_strides(shape, 1);
  return {operand.axes(), NdArray(DType::kU8, std::move(shape), std::move(strides), stack.data(), stack.owner())};
}

TEST(ProcessCommunicator, AllReducesOfSeveralDtypesTogether) {
  Random random(32);
  const std::vector<Reducer> reducers{Reducer::kMax, Reducer::kSum, Reducer::kMin};
  for (int round = 0; round < kRandomCases; ++round) {
    const DType dtype = round % 2 == 0 ? DType::kF64 : DType::kI16;
    // 3 * 30011 elements do not divide into equal parts.
    const Case c = random_case(random, dtype, round % 10 < 2 ? Dims{3, 30011} : Dims{1, 3});
    const AxisList axes = respelled(random, some_of(random, c.digits));
    for (size_t which = 0; which < 3; ++which) {
      expect_as_on_the_virtual_mesh(random, c, [&](DeviceCommunicator& communicator, const Shards& operand) {
        const Shards bytes = as_bytes(operand);
        return communicator.all_reduce_together(std::vector<Shards>{bytes, operand, bytes}, axes, reducers)[which];
      });
    }
    if (HasFailure()) FAIL() << round << " " << axis_list_text(*c.mesh, axes);
  }
}

TEST(ProcessCommunicator, AllGather) {
  Random random(22);
  for (int round = 0; round < kRandomCases; ++round) {
    const Case c = random_case(random, kDTypes[round % 13], {2, 1, 3});
    const std::vector<AxisList> gather = respelled(random, deal(random, some_of(random, c.digits), 3));
    expect_as_on_the_virtual_mesh(random, c, [&](DeviceCommunicator& communicator, const Shards& operand) {
      return communicator.all_gather(operand, gather);
    });
    if (HasFailure()) FAIL() << round;
  }
}

TEST(ProcessCommunicator, ReduceScatter) {
  Random random(23);
  for (int round = 0; round < kRandomCases; ++round) {
    const DType dtype = kDTypes[round % 13];
    const Case c = random_case(random, dtype, {24, 24});
    const AxisList digits = sorted(some_of(random, c.digits));
    const AxisList axes = respelled(random, digits);
    const std::vector<AxisList> scatter = respelled(random, deal(random, some_of(random, digits), 2));
    const Reducer reducer = random_reducer(random, dtype);
    expect_as_on_the_virtual_mesh(random, c, [&](DeviceCommunicator& communicator, const Shards& operand) {
      return communicator.reduce_scatter(operand, axes, scatter, reducer);
    });
    if (HasFailure()) FAIL() << round;
  }
}

TEST(ProcessCommunicator, AllToAll) {
  Random random(24);
  for (int round = 0; round < kRandomCases; ++round) {
    const Case c = random_case(random, kDTypes[round % 13], {24, 24, 24});
    std::vector<AllToAllMove> moves;
    for (const AxisList& axes : respelled(random, deal(random, some_of(random, c.digits), 2))) {
      const int64_t from = below(random, 3);
      moves.push_back({axes, from, (from + 1 + below(random, 2)) % 3});
    }
    expect_as_on_the_virtual_mesh(random, c, [&](DeviceCommunicator& communicator, const Shards& operand) {
      return communicator.all_to_all(operand, moves);
    });
    if (HasFailure()) FAIL() << round;
  }
}

TEST(ProcessCommunicator, Permute) {
  Random random(25);
  for (int round = 0; round < kRandomCases; ++round) {
    const Case c = random_case(random, kDTypes[round % 13], {2, 3});
    const AxisList from = some_of(random, c.digits);
    AxisList to = from;
    std::shuffle(to.begin(), to.end(), random);
    expect_as_on_the_virtual_mesh(random, c, [&](DeviceCommunicator& communicator, const Shards& operand) {
      return communicator.permute(operand, from, to);
    });
    if (HasFailure()) FAIL() << round;
  }
}

TEST(ProcessCommunicator, PermuteBetweenDigitsOfOtherSizes) {
  const auto mesh = std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 6}, {"y", 2}, {"z", 3}});
  const AxisRef x = full_axis(*mesh, 0), y = full_axis(*mesh, 1), z = full_axis(*mesh, 2);
  Random random(26);
  const NdArray values = random_array(random, DType::kI32, {6, 2});
  for (const AxisList& digits : {AxisList{x, y, z}, AxisList{x}, AxisList{y, z}, AxisList{z}}) {
    const Case c{mesh, digits, Shards({x}, values)};
    VirtualCommunicator virtual_mesh;
    const Shards expected = virtual_mesh.permute(c.operand, AxisList{x}, AxisList{z, y});
    run_in_processes({digits.back()}, [&](const DeviceSet& devices, DeviceCommunicator& communicator) {
      const Shards actual = communicator.permute(devices.owned(c.operand), AxisList{x}, AxisList{z, y});
      const AxisList grid = devices.free(AxisList{x, y, z});
      for (int64_t i = 0; i < product(grid); ++i) {
        EXPECT_TRUE(same_elements(actual[devices.position_along(actual.axes(), grid, i)],
                                  expected[devices.position_along(expected.axes(), grid, i)]));
      }
    });
  }
}

TEST(ProcessCommunicator, Shift) {
  Random random(27);
  for (int round = 0; round < kRandomCases; ++round) {
    const Case c = random_case(random, kDTypes[round % 13], {2});
    const AxisList axes = respelled(random, some_of(random, c.digits));
    const int64_t offset = below(random, 9) - 4;
    const bool wrap = below(random, 2) == 0;
    expect_as_on_the_virtual_mesh(random, c, [&](DeviceCommunicator& communicator, const Shards& operand) {
      return communicator.shift(operand, axes, offset, wrap);
    });
    if (HasFailure()) FAIL() << round;
  }
}

TEST(ProcessCommunicator, Chain) {
  Random random(29);
  for (int round = 0; round < kRandomCases; ++round) {
    const Case c = random_case(random, round % 2 == 0 ? DType::kF32 : DType::kI64, {2});
    const AxisList axes = respelled(random, some_of(random, c.digits));
    const int64_t step = below(random, 2) == 0 ? 1 : -1;
    const Reducer reducer = below(random, 2) == 0 ? Reducer::kSum : Reducer::kMax;
    expect_as_on_the_virtual_mesh(random, c, [&](DeviceCommunicator& communicator, const Shards& operand) {
      return communicator.chain(operand, axes, step, reducer);
    });
    if (HasFailure()) FAIL() << round;
  }
}

TEST(ProcessCommunicator, AxisIndex) {
  Random random(28);
  for (int round = 0; round < kRandomCases; ++round) {
    const Case c = random_case(random, DType::kI32, {1});
    const AxisList axes = respelled(random, some_of(random, c.digits));
    expect_as_on_the_virtual_mesh(
        random, c, [&](DeviceCommunicator& communicator, const Shards&) { return communicator.axis_index(axes); });
    if (HasFailure()) FAIL() << round;
  }
}

TEST(PinnedAxes, AreTheMajorOnesThatDivideTheProcesses) {
  const Mesh even("mesh", {{"x", 4}, {"y", 2}});
  EXPECT_EQ(pinned_axes(even, 1), AxisList{});
  EXPECT_EQ(pinned_axes(even, 2), (AxisList{{0, 1, 2}}));
  EXPECT_EQ(pinned_axes(even, 4), (AxisList{{0, 1, 4}}));
  EXPECT_EQ(pinned_axes(even, 8), (AxisList{{0, 1, 4}, {1, 1, 2}}));
  EXPECT_EQ(pinned_axes(Mesh("mesh", {{"x", 3}, {"y", 2}}), 2), (AxisList{{1, 1, 2}}));
  EXPECT_EQ(pinned_axes(Mesh("mesh", {{"x", 4}, {"y", 3}}), 6), (AxisList{{0, 1, 2}, {1, 1, 3}}));
}

TEST(PinnedAxes, ProcessesAreInOrderOfTheirSmallestDevice) {
  const Mesh reversed("mesh", {{"x", 2}, {"y", 2}}, {3, 2, 1, 0});
  EXPECT_EQ(process_positions(reversed, AxisList{{0, 1, 2}, {1, 1, 2}}), (std::vector<int64_t>{3, 2, 1, 0}));
  EXPECT_EQ(process_positions(reversed, AxisList{{0, 1, 2}}), (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(process_positions(Mesh("mesh", {{"x", 3}, {"y", 2}}), AxisList{{1, 1, 2}}), (std::vector<int64_t>{0, 1}));
}

}  // namespace
}  // namespace shardwise
