// SPDX-License-Identifier: Apache-2.0
//
// Reads a collective of a local program as numbers, and its price on some hardware:
//
//   %1 = "shardwise.all_gather"(%0) <{gather = #sdy<list_of_axis_ref_lists[{"y"}, {}]>, mesh = @mesh}>
//          : (tensor<2x4xf32>) -> tensor<8x4xf32>                      on mesh <"x"=2, "y"=4>
//
//   read_collective(op)      kAllGather, axes {"y"}, dims [{"y"}, {}], group_size 4, bytes 96, exact
//   collective_price(…)      214 ps, 96 B, 1 round     on the hardware `default`
//
// Bytes are those that one device receives in one execution (cost/collective_cost.h); nothing is formatted, because the
// ledger, dry runs and estimates read the same numbers.
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/cost/collective_cost.h"
#include "shardwise/cost/collective_time.h"
#include "shardwise/cost/hardware.h"
#include "shardwise/cost/price.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/collectives/local_collectives.h"

namespace shardwise {

struct LocalCollective {
  CollectiveKind kind = CollectiveKind::kNone;
  TransferKind transfer = TransferKind::kExchange;  // how the devices of a group exchange data
  MeshPtr mesh;
  AxisList axes;              // the devices of a group differ along these
  int64_t group_size = 1;     // devices that take part
  int64_t operand_bytes = 0;  // on one device, of all operands that it combines, padding included
  int64_t item_size = 1;      // of its elements, in bytes
  double bytes = 0;           // received by the device that receives most
  bool is_exact = true;       // false: `bytes` is an upper bound, as of an exchange among too many devices to count
  bool is_chain = false;      // a message is passed on from device to device
  // Each of these is set for some kinds only.
  std::vector<AxisList> dims = {};       // by dim, of an all_gather and a reduce_scatter
  std::vector<AllToAllMove> moves = {};  // of an all_to_all
  PermuteAttrs permute = {};             // of a collective_permute
  MeshPtr from_mesh = nullptr;           // of an exchange across meshes: where its operand is
  AxisList from_axes = {};               // along which the operand is sharded there
  AxisList moving_axes = {};             // of an exchange: along which elements move, for the price
};

// Whether devices send anything: not for all_slice, axis_index and to_unreduced.
bool moves_data(CollectiveKind kind);

// Reads an op of a local program. An op that moves no data has a group of one device, and no mesh.
LocalCollective read_collective(const OpView& op);
// The bytes that are received for one of the operands that it combines.
double received_for(const OpView& op, size_t operand, const LocalCollective& collective);

// The time of one execution on each tier of links; it is empty if no device receives anything.
CollectiveTime collective_time(const LocalCollective& collective, const Hardware& hardware);
// The time, bytes and rounds of one execution. A shift by more than one place, and an exchange along the axes of a dim from
// farther than its neighbors, count as a permutation that crosses the whole group.
Price collective_price(const LocalCollective& collective, const Hardware& hardware);

}  // namespace shardwise
