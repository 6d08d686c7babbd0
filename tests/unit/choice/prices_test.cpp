// SPDX-License-Identifier: Apache-2.0
// Prices in time: those of transfers, of compute and of methods, against sums by hand.
#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "shardwise/base/text.h"
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
    return planner.price(module.value(value).type, at(value, from), at(value, to), default_hardware()).price;
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

// ---- methods -------------------------------------------------------------------------------------------------------

// A device has 1024 of 4096 rows of 1024 float32 columns.
constexpr int64_t kDevices = 4, kRows = 1024, kColumns = 1024, kRow = 4 * kColumns, kShard = kRows * kRow;
constexpr int64_t kSlice = 512 * kRow;  // what slices, gathers and scatters take

constexpr std::string_view kArgmax =
    R"(func.func @main(%arg0: tensor<4096x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<4096x1024xi32>, %i: tensor<f32>, %j: tensor<i32>)
    -> tensor<1024xf32> {
    %0:2 = stablehlo.reduce(%arg0 init: %i), (%arg1 init: %j) across dimensions = [0] : (tensor<4096x1024xf32>, tensor<4096x1024xi32>, tensor<f32>, tensor<i32>) -> (tensor<1024xf32>, tensor<1024xi32>)
  reducer(%p: tensor<f32>, %q: tensor<f32>) (%s: tensor<i32>, %t: tensor<i32>) {
    %c = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %v = stablehlo.select %c, %p, %q : tensor<i1>, tensor<f32>
    %w = stablehlo.select %c, %s, %t : tensor<i1>, tensor<i32>
    stablehlo.return %v, %w : tensor<f32>, tensor<i32>
  }
    return %0#0 : tensor<1024xf32>
}
)";
constexpr std::string_view kCumulativeSum =
    R"(func.func @main(%arg0: tensor<4096x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %i: tensor<f32>)
    -> tensor<4096x1024xf32> {
    %0 = "stablehlo.reduce_window"(%arg0, %i) <{window_dimensions = array<i64: 4096, 1>, window_strides = array<i64: 1, 1>, padding = dense<[[4095, 0], [0, 0]]> : tensor<2x2xi64>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4096x1024xf32>, tensor<f32>) -> tensor<4096x1024xf32>
    return %0 : tensor<4096x1024xf32>
}
)";
constexpr std::string_view kTopK =
    R"(func.func @main(%arg0: tensor<64x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    -> tensor<64x16xf32> {
    %0, %1 = chlo.top_k(%arg0, k = 16) : tensor<64x4096xf32> -> (tensor<64x16xf32>, tensor<64x16xi32>)
    return %0 : tensor<64x16xf32>
}
)";
constexpr std::string_view kGather =
    R"(func.func @main(%arg0: tensor<4096x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<512x1xi32>)
    -> tensor<512x1024xf32> {
    %0 = "stablehlo.gather"(%arg0, %arg1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1024>, indices_are_sorted = false}> : (tensor<4096x1024xf32>, tensor<512x1xi32>) -> tensor<512x1024xf32>
    return %0 : tensor<512x1024xf32>
}
)";
constexpr std::string_view kScatter =
    R"(func.func @main(%arg0: tensor<4096x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<512x1xi32>, %arg2: tensor<512x1024xf32>)
    -> tensor<4096x1024xf32> {
    %0 = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, indices_are_sorted = false, unique_indices = false}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4096x1024xf32>, tensor<512x1xi32>, tensor<512x1024xf32>) -> tensor<4096x1024xf32>
    return %0 : tensor<4096x1024xf32>
}
)";
constexpr std::string_view kDynamicSlice =
    R"(func.func @main(%arg0: tensor<4096x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %i: tensor<i32>, %j: tensor<i32>)
    -> tensor<512x1024xf32> {
    %0 = stablehlo.dynamic_slice %arg0, %i, %j, sizes = [512, 1024] : (tensor<4096x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<512x1024xf32>
    return %0 : tensor<512x1024xf32>
}
)";
constexpr std::string_view kSliceAtAConstant =
    R"(func.func @main(%arg0: tensor<4096x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    -> tensor<2048x1024xf32> {
    %i = stablehlo.constant dense<100> : tensor<i32>
    %j = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %i, %j, sizes = [2048, 1024] : (tensor<4096x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<2048x1024xf32>
    return %0 : tensor<2048x1024xf32>
}
)";
constexpr std::string_view kDynamicUpdate =
    R"(func.func @main(%arg0: tensor<4096x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %u: tensor<512x1024xf32>, %i: tensor<i32>, %j: tensor<i32>)
    -> tensor<4096x1024xf32> {
    %0 = stablehlo.dynamic_update_slice %arg0, %u, %i, %j : (tensor<4096x1024xf32>, tensor<512x1024xf32>, tensor<i32>, tensor<i32>) -> tensor<4096x1024xf32>
    return %0 : tensor<4096x1024xf32>
}
)";
constexpr std::string_view kMiddleRows =
    R"(func.func @main(%arg0: tensor<4096x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    -> tensor<2048x1024xf32> {
    %0 = stablehlo.slice %arg0 [1024:3072, 0:1024] : (tensor<4096x1024xf32>) -> tensor<2048x1024xf32>
    return %0 : tensor<2048x1024xf32>
}
)";
constexpr std::string_view kWithoutEightRows =
    R"(func.func @main(%arg0: tensor<4096x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    -> tensor<4088x1024xf32> {
    %0 = stablehlo.slice %arg0 [8:4096, 0:1024] : (tensor<4096x1024xf32>) -> tensor<4088x1024xf32>
    return %0 : tensor<4088x1024xf32>
}
)";
constexpr std::string_view kConcatenate =
    R"(func.func @main(%arg0: tensor<4096x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<4096x1024xf32>)
    -> tensor<8192x1024xf32> {
    %0 = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<4096x1024xf32>, tensor<4096x1024xf32>) -> tensor<8192x1024xf32>
    return %0 : tensor<8192x1024xf32>
}
)";
constexpr std::string_view kRoll =
    R"(func.func @main(%arg0: tensor<8x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<4088x1024xf32>)
    -> tensor<4096x1024xf32> {
    %0 = stablehlo.concatenate %arg0, %arg1, dim = 0 : (tensor<8x1024xf32>, tensor<4088x1024xf32>) -> tensor<4096x1024xf32>
    return %0 : tensor<4096x1024xf32>
}
)";
constexpr std::string_view kReverse =
    R"(func.func @main(%arg0: tensor<4096x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    -> tensor<4096x1024xf32> {
    %0 = stablehlo.reverse %arg0, dims = [0] : tensor<4096x1024xf32>
    return %0 : tensor<4096x1024xf32>
}
)";
constexpr std::string_view kPad =
    R"(func.func @main(%arg0: tensor<4096x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    -> tensor<4112x1024xf32> {
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.pad %arg0, %z, low = [8, 0], high = [8, 0], interior = [0, 0] : (tensor<4096x1024xf32>, tensor<f32>) -> tensor<4112x1024xf32>
    return %0 : tensor<4112x1024xf32>
}
)";

struct MethodCount {
  std::string_view program, method;
  std::vector<std::string> tensors;  // operands, then results; by dim: 'x' is sharded, 'u' in front is unreduced
  int64_t work = 0, received = 0, rounds = 0;
  int64_t memory = 0;               // read and written; what is less than 1 % of all is left out
  int64_t sent_in_turn = received;  // bytes whose times add up: those of each message of a chain
};

// Prices that a dry run counts. A sort along its sharded dim, a Fourier transform and a product have no such method:
// they run on other placements by their rule.
const MethodCount kMethodCounts[] = {
    // One combination per element, then one per shard for a quarter of the columns: 4 * 1024 / 4. The value and the
    // index are exchanged by columns (3/4 of 4 B * 1024), and their quarters gathered (3 * 4 B * 256).
    {kArgmax,
     "partial results",
     {"x-", "x-", "", "", "-", "-"},
     kRows* kColumns + kColumns,
     2 * (kRow * 3 / 4) + 2 * (3 * kRow / 4),
     4,
     2 * kShard},
    // The same, but the result stays split: nothing is gathered.
    {kArgmax,
     "partial results",
     {"x-", "x-", "", "", "x", "x"},
     kRows* kColumns + kColumns,
     2 * (kRow * 3 / 4),
     2,
     2 * kShard},
    // Every device gets the 3 other rows of values and of indices, and combines 4 rows.
    {kArgmax,
     "gathered partial results",
     {"x-", "x-", "", "", "-", "-"},
     kRows* kColumns + kDevices* kColumns,
     2 * 3 * kRow,
     2,
     2 * kShard + 2 * kDevices* kRow},
    // The own rows, the totals of 4 shards for a quarter of the columns, two additions per element (the totals before,
    // and the initial value), and the initial value for 4096 rows. Own rows are read and written twice. What is computed of
    // a device's place alone, here and below, is free (analysis/fusion_roles.h).
    {kCumulativeSum,
     "totals",
     {"x-", "", "x-"},
     3 * kRows* kColumns + kColumns + kDevices* kRows,
     2 * (kRow * 3 / 4),
     2,
     4 * kShard},
    // The totals of all shards: a selection and a sum of 4 rows.
    {kCumulativeSum,
     "gathered totals",
     {"x-", "", "x-"},
     3 * kRows* kColumns + 2 * kDevices* kColumns + kDevices* kRows,
     3 * kRow,
     1,
     4 * kShard},
    // A running total of one row, passed on 3 times. The first device takes zeros (1 row of selections).
    {kCumulativeSum,
     "chain",
     {"x-", "", "x-"},
     3 * kRows* kColumns + kColumns + kDevices* kRows,
     kRow,
     3,
     4 * kShard,
     3 * kRow},
    // log2(16) comparisons per element: of 64 rows of 1024, and of 64 rows of 4 * 16 winners. Their indices move to the
    // place of the shard (64 * 16 additions). Winners and indices are gathered: 3 * 64 * 16 * 4 B each.
    {kTopK,
     "winners",
     {"-x", "--", "--"},
     64 * 1024 * 4 + 64 * 64 * 4 + 64 * 16,
     2 * (3 * 64 * 16 * 4),
     2,
     64 * 1024 * 4 + 2 * 4096 + 64 * 64 * 4 + 2 * 4096 + 3 * 4096},
    // 512 indices: clamped, made local, clamped, compared; a selection per element.
    {kGather, "owned rows", {"x-", "--", "u--"}, 4 * 512 + 512 * kColumns, 0, 0, 2 * kSlice},
    // 512 indices made local; an addition per element. Updates and rows are read, rows are written.
    {kScatter, "owned rows", {"x-", "--", "--", "x-"}, 512 + 512 * kColumns, 0, 0, 3 * kSlice},
    // A quarter of the updates; the shard is copied to its place in a whole result.
    {kScatter, "shards as addends", {"x-", "x-", "x-", "u--"}, 128 * kColumns, 0, 0, 2 * kShard + 3 * kSlice / 4},
    // 6 operations of the start and the place. The slice is read and written, padded by itself on both sides, and sliced again.
    {kDynamicSlice, "owned rows", {"x-", "", "", "u--"}, 6, 0, 0, 2 * kSlice + (1 + 3) * kSlice + 2 * kSlice},
    // Rows [100, 2148): device 2 needs [1124, 1636), and has [2048, 3072).
    {kSliceAtAConstant, "exchange", {"x-", "", "", "x-"}, 0, kSlice, 1, 0},
    // As the slice; then the update is written into the padded rows, and these into the shard.
    {kDynamicUpdate, "owned rows", {"x-", "--", "", "", "x-"}, 6, 0, 0, 2 * kSlice + (1 + 3) * kSlice + 4 * kSlice},
    // Rows [1024, 3072): device 0 needs 512 rows of device 1.
    {kMiddleRows, "exchange", {"x-", "x-"}, 0, 512 * kRow, 1, 0},
    // Rows [8, 4096) in blocks of 1022: device 0 needs [8, 1030), and has [0, 1024).
    {kWithoutEightRows, "exchange", {"x-", "x-"}, 0, 6 * kRow, 1, 0},
    // Device 1 needs rows [2048, 4096) of the first operand, and has [1024, 2048).
    {kConcatenate, "exchange", {"x-", "x-", "x-"}, 0, 2048 * kRow, 1, 0},
    // Device 0 needs 8 rows of the first operand, and has 2.
    {kRoll, "exchange", {"x-", "x-", "x-"}, 0, 6 * kRow, 1, 0},
    // All rows come from the other end.
    {kReverse, "exchange", {"x-", "x-"}, 0, kShard, 1, 0},
    // Blocks of 1028 from row -8 on: device 1 needs [1020, 2048), and has [1024, 2048).
    {kPad, "exchange", {"x-", "", "x-"}, 0, 4 * kRow, 1, 0},
};

PlacementId placement_of(const ProgramPlacements& placements, TypeId type, std::string_view text) {
  const AxisList x{full_axis(*placements.mesh(), 0)};
  const bool is_unreduced = text.starts_with('u');
  std::vector<AxisList> dims;
  for (const char dim : text.substr(is_unreduced ? 1 : 0)) dims.push_back(dim == 'x' ? x : AxisList{});
  return placements.of(type, dims, is_unreduced ? x : AxisList{}, is_unreduced ? Reducer::kSum : Reducer::kNone);
}

Price price_of(const MethodCount& count) {
  const Module module = parse_program(str("sdy.mesh @mesh = <[\"x\"=4]>\n", count.program));
  const ProgramPlacements placements(module);
  const std::vector<OpId>& ops = module.region(module.main().body).ops;
  const auto has_methods = [&](OpId id) { return !OpView(module, id).def().methods.empty(); };
  const OpView op(module, *std::ranges::find_if(ops, has_methods));
  const auto method = std::ranges::find(op.def().methods, count.method, &Method::name);
  std::vector<PlacementId> tensors;
  for (size_t t = 0; t < count.tensors.size(); ++t) {
    const ValueId value = t < op.operand_count() ? op.operand(t) : op.result(t - op.operand_count());
    tensors.push_back(placement_of(placements, module.value(value).type, count.tensors[t]));
  }
  DryRuns runs(module, *default_hardware());
  return runs.cost(op, sharding_rule(op), *method, tensors, std::vector<bool>(op.result_count(), true)).price;
}

TEST(MethodPrice, IsThatOfACountByHand) {
  for (const MethodCount& count : kMethodCounts) {
    const Price price = price_of(count);
    const std::string name = str(count.method, " of ", count.program.substr(count.program.find("%0"), 60));
    EXPECT_EQ(price.work, count.work) << name;
    EXPECT_EQ(price.bytes, count.received) << name;
    EXPECT_EQ(price.rounds, count.rounds) << name;
    // 3352.32 GB/s of memory and 450 GB/s of links: no op here has work enough to take longer.
    const double seconds =
        static_cast<double>(count.memory) / 3352.32e9 + static_cast<double>(count.sent_in_turn) / 450e9;
    EXPECT_NEAR(static_cast<double>(price.ps) / (seconds * 1e12), 1, 0.01) << name;
  }
}

}  // namespace
}  // namespace shardwise
