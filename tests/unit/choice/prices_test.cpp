// SPDX-License-Identifier: Apache-2.0
// Prices in time: those of transfers, of compute and of methods, against sums by hand.
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/choice/compute_price.h"
#include "shardwise/choice/dry_run.h"
#include "shardwise/choice/program_placements.h"
#include "shardwise/choice/reshard_planner.h"
#include "support/program_text.h"

namespace shardwise {
namespace {

constexpr int64_t kMiB = 1 << 20;

// Megatron's output projection: bf16 (32768, 8192) @ (8192, 8192), both split along the contraction over 8 devices.
class Projection : public ::testing::Test {
 protected:
  PlacementId at(ValueId value, int dim) const {  // -1: replicated; 2: unreduced
    const AxisList t{full_axis(*placements.mesh(), 0)};
    std::vector<AxisList> dims(2);
    if (dim == 0 || dim == 1) dims[static_cast<size_t>(dim)] = t;
    return placements.of(module.value(value).type, dims, dim == 2 ? t : AxisList{}, Reducer::kSum);
  }
  Price moved(ValueId value, int from, int to) {
    return planner.price(module.value(value).type, at(value, from), at(value, to), hardware);
  }
  Price computed(int x, int w, int result) const {
    return compute_price(
        op, {.operands = {at(op.operand(0), x), at(op.operand(1), w)}, .results = {at(op.result(), result)}}, hardware);
  }

  Module module = parse_program(R"(
sdy.mesh @mesh = <["t"=8]>
func.func @main(%arg0: tensor<32768x8192xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"t"}]>},
                %arg1: tensor<8192x8192xbf16>) -> tensor<32768x8192xbf16> {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<32768x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<32768x8192xbf16>
  return %0 : tensor<32768x8192xbf16>
}
)");
  ProgramPlacements placements{module};
  ReshardPlanner planner{module.context()};
  const Hardware& hardware = *default_hardware();
  OpView op{module, module.region(module.main().body).ops.front()};
};

constexpr double kMilli = 1e9;  // picoseconds

TEST_F(Projection, IsReduced) {
  const Price price = computed(1, 0, 2) + moved(op.result(), 2, -1);
  EXPECT_EQ(price.bytes, 896 * kMiB);
  EXPECT_NEAR(static_cast<double>(price.ps) / kMilli, 2.64, 0.01);
  EXPECT_EQ(price.work, int64_t{2} * 32768 * 8192 * 8192 / 8);
}

TEST_F(Projection, IsMovedToRows) {
  const Price price =
      moved(op.operand(0), 1, 0) + moved(op.operand(1), 0, -1) + computed(0, -1, 0) + moved(op.result(), 0, -1);
  EXPECT_EQ(price.bytes, 616 * kMiB);
  EXPECT_NEAR(static_cast<double>(price.ps) / kMilli, 1.99, 0.01);
  EXPECT_EQ(price.work, int64_t{2} * 32768 * 8192 * 8192 / 8);
}

TEST_F(Projection, IsRepeated) {
  const Price price = moved(op.operand(0), 1, -1) + moved(op.operand(1), 0, -1) + computed(-1, -1, -1);
  EXPECT_EQ(price.bytes, 560 * kMiB);
  EXPECT_NEAR(static_cast<double>(price.ps) / kMilli, 5.75, 0.01);
  EXPECT_EQ(price.work, int64_t{2} * 32768 * 8192 * 8192);
}

TEST_F(Projection, WhatIsInPlaceCostsNothing) { EXPECT_EQ(moved(op.result(), 0, 0), Price{}); }

TEST(MethodPrice, HasTheOpsThatItEmits) {
  const Module module = parse_program(R"(
sdy.mesh @mesh = <["x"=4]>
func.func @main(%arg0: tensor<16x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8x1024xf32> {
  %0 = stablehlo.slice %arg0 [4:12, 0:1024] : (tensor<16x1024xf32>) -> tensor<8x1024xf32>
  return %0 : tensor<8x1024xf32>
}
)");
  const ProgramPlacements placements(module);
  const OpView op(module, module.region(module.main().body).ops.front());
  const AxisList x{full_axis(*placements.mesh(), 0)};
  const auto rows = [&](ValueId value) { return placements.of(module.value(value).type, {x, {}}, {}, Reducer::kNone); };
  DryRuns runs(module);
  const std::vector<PlacementId> placed{rows(op.operand(0)), rows(op.result())};
  const Price price = runs.price(op, sharding_rule(op), op.def().methods[0], placed, {true}, *default_hardware());
  // Two rows of 4 KiB: each device holds other rows than it gives.
  EXPECT_EQ(price.bytes, 2 * 4096);
  EXPECT_EQ(runs.cost(op, sharding_rule(op), op.def().methods[0], placed, {true}).bytes, 2 * 4096);
  EXPECT_EQ(price.rounds, 1);
  EXPECT_GE(price.ps, picoseconds(2 * 4096, 450'000'000'000));
}

}  // namespace
}  // namespace shardwise
