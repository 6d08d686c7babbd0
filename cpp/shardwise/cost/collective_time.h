// SPDX-License-Identifier: Apache-2.0
//
// The time of a collective on the links of some hardware. Knows no op.
//
//   latency(kind, group, tier) + sum over tiers of bytes(tier) / (bandwidth of the tier, times its share at that size)
//
// 512 MiB gathered by 16 GPUs of two H100 nodes, each holding 32 MiB:
//
//   collective_time(TransferKind::kAllGather, 32 << 20, cut, h100).tiers
//     infiniband   32 MiB     671 us     each GPU gets the shard of one GPU of the other node, over its own 50 GB/s
//     nvlink      448 MiB    1044 us     then the pairs of shards of the 7 others in its node, at 450 GB/s
//
// The algorithm of each kind is the one with the fewest bytes on that topology. `P` is the number of members inside the
// tier at hand and those inside of it, `n` the members of the tier itself, `p` all members:
//
//   all_gather, reduce_scatter   bytes(tier) = whole (n - 1) / P: outer tiers move the few bytes that inner ones multiply.
//                                On a torus all dims work at once, both ways of a ring, one way of a line: a device
//                                receives at (2 per ring + 1 per line) x bandwidth. What must cross a slow dim, or any
//                                set of dims, may take longer: for each set, the m members that differ in its dims
//                                receive whole (m - 1) / P over the links of these dims. The slowest set counts.
//   all_reduce                   reduce_scatter, then all_gather
//   all_to_all                   each pair sends directly: bytes(tier) = operand (P - P/n) / p; a torus is limited by its
//                                bisection: the links in the middle of a ring of n carry operand n/8, of a line n/4
//   permute, exchange, shift     over the outermost tier of the group; a shift between neighbors
//   chain                        p - 1 messages, one after the other
//
// Links that several groups share, because their members alternate, are slower by that factor.
//
// A group that is part of another one never gathers longer than it, from the same operand. A reduction may: of 16 GPUs in
// two nodes, all 16 sum inside the nodes first, so that less crosses between the nodes than if pairs sum across.
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/cost/collective_cost.h"
#include "shardwise/cost/device_tiers.h"
#include "shardwise/cost/price.h"

namespace shardwise {

// What a collective does to one tier.
struct TierTime {
  size_t tier = 0;    // in Hardware::tiers
  int64_t bytes = 0;  // received by one device over its links
  int64_t ps = 0;     // without latency
};

struct CollectiveTime {
  std::vector<TierTime> tiers;  // from the inside out; a tier may come twice
  int64_t latency_ps = 0;

  int64_t total() const;    // the tiers one after the other: what an estimate uses
  int64_t overlap() const;  // the tiers at the same time, as large messages in many pieces may be: a lower bound
};

// `bytes` is the operand on one device, except for kExchange: what it receives.
CollectiveTime collective_time(TransferKind kind, int64_t bytes, const TierCut& cut, const Hardware& hardware);

// The time (`total`), bytes and rounds of a collective over `axes`, of elements of `item_size` bytes. Constant time, however many devices there are. An
// engine that asks often keeps the tiers of its mesh.
Price collective_price(TransferKind kind, const DeviceTiers& tiers, const AxisList& axes, int64_t bytes,
                       int64_t item_size, const Hardware& hardware);
Price collective_price(TransferKind kind, const Mesh& mesh, const AxisList& axes, int64_t bytes, int64_t item_size,
                       const Hardware& hardware);

}  // namespace shardwise
