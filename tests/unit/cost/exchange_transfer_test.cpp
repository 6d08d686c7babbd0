// SPDX-License-Identifier: Apache-2.0
#include "shardwise/cost/exchange_transfer.h"

#include <gtest/gtest.h>

namespace shardwise {
namespace {

const AxisList kData{{0, 1, 2}}, kModel{{1, 1, 8}}, kMajor{{1, 1, 2}}, kMinor{{1, 2, 4}};

ExchangeTarget target(const AxisList& axes, int64_t rows, int64_t step, int64_t size) {
  return {axes, rows, step, size};
}
ExchangeSource source(const AxisList& axes, int64_t block, int64_t size) {
  return {.axes = axes, .block = block, .size = size};
}
// Dim 0 stays where it is, along data=2.
ExchangeMap map_of(const ExchangeTarget& to, std::vector<ExchangeSource> operands) {
  ExchangeMap map{.to = {target(kData, 4, 4, 8), to}, .from = {}};
  for (ExchangeSource& from : operands) map.from.push_back({source(kData, 4, 8), std::move(from)});
  return map;
}

TEST(ExchangeTransfer, OfAHaloIsAShiftAlongItsDim) {
  ExchangeSource from = source(kModel, 8, 64);
  from.offset = -1;
  const ExchangeMap halo = map_of(target(kModel, 10, 8, 66), {from});
  EXPECT_EQ(transfer_of(halo), TransferKind::kShift);
  EXPECT_EQ(moving_axes(halo), kModel);
}

// Tile 5 is [50, 60), which shards 6 and 7 have; tiles 6 and 7 have no rows.
TEST(ExchangeTransfer, OfOtherBlocksLooksAtTheLastTileThatHasRows) {
  EXPECT_EQ(transfer_of(map_of(target(kModel, 10, 10, 60), {source(kModel, 8, 60)})), TransferKind::kPermute);
  // [27, 36) and [36, 40) of shards [24, 32), [32, 40)
  EXPECT_EQ(transfer_of(map_of(target(kModel, 9, 9, 40), {source(kModel, 8, 40)})), TransferKind::kShift);
}

// The second half comes from 4 devices before, though the first tiles need nothing of it.
TEST(ExchangeTransfer, OfARangeOfTheResultLooksAtItsTiles) {
  ExchangeSource second = source(kModel, 4, 32);
  second.begin = 32, second.end = 64, second.offset = -32;
  ExchangeSource first = source(kModel, 8, 64);
  first.end = 32;
  EXPECT_EQ(transfer_of(map_of(target(kModel, 8, 8, 64), {first, second})), TransferKind::kPermute);
  EXPECT_EQ(transfer_of(map_of(target(kModel, 8, 8, 64), {first})), TransferKind::kShift);
}

TEST(ExchangeTransfer, OfOtherAxesIsAmongTheWholeGroup) {
  const ExchangeMap map = map_of(target({}, 64, 64, 64), {source(kModel, 8, 64)});
  EXPECT_EQ(transfer_of(map), TransferKind::kExchange);
  EXPECT_EQ(moving_axes(map), kModel);
}

TEST(MovingAxes, AreEveryDigitOnceAndNoMore) {
  // (1)2 -> (2)4: both are the axis
  EXPECT_EQ(moving_axes(map_of(target(kMinor, 16, 16, 64), {source(kMajor, 32, 64)})), kModel);
  // (2)4 -> replicated stays a sub-axis
  EXPECT_EQ(moving_axes(map_of(target({}, 64, 64, 64), {source(kMinor, 16, 64)})), kMinor);
  // one operand of two moves
  EXPECT_EQ(moving_axes(map_of(target(kMinor, 16, 16, 64), {source(kMinor, 16, 64), source(kModel, 8, 64)})), kModel);
  // (1)2 and (1)3 of 6
  EXPECT_EQ(moving_axes(map_of(target({{1, 1, 3}}, 16, 16, 48), {source({{1, 1, 2}}, 24, 48)})), (AxisList{{1, 1, 6}}));
}

TEST(MovingAxes, AreNoneWhereAllIsInPlace) {
  EXPECT_EQ(moving_axes(map_of(target(kModel, 8, 8, 64), {source(kModel, 8, 64)})), AxisList{});
  ExchangeSource reversed = source({}, 64, 64);
  reversed.scale = -1, reversed.offset = 63;
  EXPECT_EQ(moving_axes(map_of(target({}, 64, 64, 64), {reversed})), AxisList{});
}

TEST(MovingAxes, AcrossMeshesAreAllOfTheReceivingMesh) {
  ExchangeMap map = map_of(target(kModel, 8, 8, 64), {source(kModel, 8, 64)});
  map.from_mesh = std::make_shared<const Mesh>("from", std::vector<MeshAxis>{{"x", 2}, {"y", 8}});
  map.to_mesh = std::make_shared<const Mesh>("to", std::vector<MeshAxis>{{"a", 4}, {"b", 4}});
  EXPECT_EQ(transfer_of(map), TransferKind::kPermute);
  EXPECT_EQ(moving_axes(map), all_axes(*map.to_mesh));
}

}  // namespace
}  // namespace shardwise
