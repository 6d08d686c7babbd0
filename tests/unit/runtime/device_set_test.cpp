// SPDX-License-Identifier: Apache-2.0
#include "shardwise/runtime/device_set.h"

#include <gtest/gtest.h>

#include "runtime/local_program.h"
#include "runtime/processes.h"
#include "runtime/simulator.h"
#include "shardwise/base/error.h"
#include "shardwise/ir/builder.h"
#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/runtime/plan/plan.h"
#include "support/message_of.h"

namespace shardwise {
namespace {

using namespace shardwise::testing;

MeshPtr mesh_4x2() { return std::make_shared<const Mesh>("mesh", std::vector<MeshAxis>{{"x", 4}, {"y", 2}}); }

NdArray counted(DimSpan shape) {
  NdArray array = NdArray::empty(DType::kF32, to_dims(shape));
  for (int64_t i = 0; i < array.size(); ++i) {
    store_at(array, i, Scalar::of_float(DType::kF32, static_cast<double>(i % 17 - 8)));
  }
  return array;
}

TEST(DeviceSet, OwnsTheDevicesAtOnePosition) {
  const auto mesh = mesh_4x2();
  const DeviceSet third{{full_axis(*mesh, 0)}, 2};
  std::vector<int64_t> owned;
  for (int64_t i = 0; i < mesh->device_count(); ++i) {
    if (third.owns(*mesh, i)) owned.push_back(i);
    EXPECT_TRUE(DeviceSet{}.owns(*mesh, i));
  }
  EXPECT_EQ(owned, (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(third.free(AxisList{full_axis(*mesh, 0), full_axis(*mesh, 1)}), AxisList{full_axis(*mesh, 1)});
}

TEST(DeviceSet, SubAxesThatCutAcrossTheRanksAreRefused) {
  const Mesh mesh("mesh", std::vector<MeshAxis>{{"x", 6}, {"y", 4}});
  const AxisList two = pinned_axes(mesh, 2), six = pinned_axes(mesh, 6);
  const AxisList thirds{{0, 1, 3}}, last_halves{{0, 3, 2}}, halves{{0, 1, 2}}, rest{{0, 2, 3}};
  for (const AxisList& axes : {AxisList{}, halves, rest, AxisList{{1, 1, 2}}, AxisList{full_axis(mesh, 0)}}) {
    EXPECT_NO_THROW(expect_uncut("array", mesh, two, axes));
  }
  for (const AxisList& axes : {thirds, last_halves}) {
    EXPECT_THROW(expect_uncut("array", mesh, two, axes), UnsupportedError);
    EXPECT_NO_THROW(expect_uncut("array", mesh, six, axes));  // all of x
    EXPECT_NO_THROW(expect_uncut("array", mesh, {}, axes));
  }
  EXPECT_EQ(message_of<UnsupportedError>([&] { expect_uncut("array", mesh, two, thirds); }),
            R"(array: no sub-axis may cut across the ranks, got ranks along {"x":(1)2} and {"x":(1)3}; )"
            "start 1, 3, 6, 12 or 24 ranks, or use other axis sizes");
}

TEST(DeviceSet, TakesItsShardsFromThoseOfAllDevices) {
  const auto mesh = mesh_4x2();
  const AxisRef x = full_axis(*mesh, 0), y = full_axis(*mesh, 1);
  const NdArray rows = counted(Dims{4, 2, 3});
  const Shards all({x, y}, rows);
  const DeviceSet second{{AxisRef{0, 1, 2}}, 1};  // the second half of x
  const Shards own = second.owned(all);
  EXPECT_EQ(own.axes(), (AxisList{AxisRef{0, 2, 2}, y}));
  EXPECT_TRUE(own.is_stacked());
  EXPECT_EQ(own[0].data(), all[4].data());
  EXPECT_EQ(own[3].data(), all[7].data());
  EXPECT_EQ(second.position_along(AxisList{x}, own.axes(), 2), 3);
  EXPECT_EQ(DeviceSet{}.owned(all).stacked().data(), rows.data());
}

// A tensor-parallel layer whose result is resharded, with a number of each device in it.
struct Layer {
  explicit Layer(const MeshPtr& mesh_of_all) : mesh(mesh_of_all), program(mesh) {
    const AxisList x{full_axis(*mesh, 0)}, y{full_axis(*mesh, 1)};
    const ValueId input = program.argument(DType::kF32, {8, 6}, {x, {}});
    const ValueId weights = program.argument(DType::kF32, {6, 4}, {{}, y});
    Builder builder = program.builder();
    const ValueId product = build_dot(builder, input, weights, {{}, {}, {1}, {0}}, DType::kF32);  // 2x2
    const ValueId number = build_convert(builder, create_axis_index(builder, *mesh, AxisList{x[0], y[0]}), DType::kF32);
    const ValueId numbers = build_broadcast(builder, number, Dims{2, 2}, Dims{});
    const ValueId sum = builder.create("stablehlo.add", {product, numbers});
    const ValueId gathered = create_all_gather(builder, *mesh, sum, std::vector<AxisList>{{}, y});       // 2x4
    const ValueId reduced = create_all_reduce(builder, *mesh, sum, x, Reducer::kMax);                    // 2x2
    const ValueId moved = create_all_to_all(builder, *mesh, sum, std::vector<AllToAllMove>{{y, 1, 0}});  // 1x4
    results = {{gathered, {8, 4}, {x, {}}}, {reduced, {2, 4}, {{}, y}}, {moved, {8, 4}, {{x[0], y[0]}, {}}}};
  }

  MeshPtr mesh;
  LocalProgram program;
  std::vector<LocalProgram::Result> results;
};

TEST(DeviceSet, ProcessesTogetherComputeWhatOneDoes) {
  const auto mesh = mesh_4x2();
  const AxisRef x = full_axis(*mesh, 0), y = full_axis(*mesh, 1);
  Layer layer(mesh);
  const auto whole = layer.program.finish(layer.results);
  const std::vector<ShardedArray> arguments{given(*whole, 0, counted(Dims{8, 6})),
                                            given(*whole, 1, counted(Dims{6, 4}))};
  const auto expected = run_virtual(*whole, arguments);
  const auto make = [&](const DeviceSet& devices) { return layer.program.executable({.devices = devices}); };
  for (const AxisList& pinned :
       {AxisList{x}, AxisList{y}, AxisList{x, y}, AxisList{y, x}, AxisList{{0, 1, 2}}, AxisList{{0, 2, 2}, y}}) {
    for (const bool faithful : {false, true}) {
      expect_same_in_processes(pinned, make, arguments, expected, {.faithful = faithful, .poison = true});
    }
  }
}

TEST(DeviceSet, PinnedAxesHaveNoShards) {
  const auto mesh = mesh_4x2();
  const AxisRef x = full_axis(*mesh, 0), y = full_axis(*mesh, 1);
  Layer layer(mesh);
  layer.program.finish(layer.results);
  const Plan plan = make_plan(layer.program.module(), *mesh, {.pinned = {x}});
  ASSERT_TRUE(std::holds_alternative<KernelCall>(plan.main.steps[0].work));
  EXPECT_EQ(plan.main.steps[0].axes, AxisList{y});  // the product varies along both
  EXPECT_EQ(plan.digits.axes(plan.free), AxisList{y});
}

}  // namespace
}  // namespace shardwise
