// SPDX-License-Identifier: Apache-2.0
//
// The cost of collectives: bytes received by one device. Knows no op.
//
//   all_gather_bytes(1024, 8)            // 7168: the shards of the seven other devices
//   all_reduce_bytes(16384, 8, 4)        // 28672: a reduce-scatter, then an all-gather
//   all_reduce_bytes(4, 8, 4)            // 28: the one element is the part of one device, which receives 7 addends
//   mean_all_reduce_bytes(4, 8)          // 7: the others receive the sum
//
// `bytes` is the size of the operand on one device, padding included, `item_size` that of one element; `group` is the
// number of participating devices.
#pragma once

#include <cstdint>

#include "shardwise/base/quantity.h"

namespace shardwise {

// How the devices of a group exchange data, whatever op asks for it.
enum class TransferKind : uint8_t {
  kAllGather,
  kReduceScatter,
  kAllReduce,
  kAllToAll,
  kShift,     // to the next device of the group
  kPermute,   // to any other device, one from each
  kExchange,  // parts from any devices; `bytes` is what a device receives
  kChain,     // a running total, from the first device to the last
};

constexpr double all_gather_bytes(double bytes, int64_t group) { return bytes * static_cast<double>(group - 1); }
constexpr double reduce_scatter_bytes(double bytes, int64_t group) {
  return bytes * static_cast<double>(group - 1) / static_cast<double>(group);
}
constexpr double all_to_all_bytes(double bytes, int64_t group) { return reduce_scatter_bytes(bytes, group); }
// Received by a device on average. It does not jump where the devices become more than the elements.
constexpr double mean_all_reduce_bytes(double bytes, int64_t group) { return 2 * reduce_scatter_bytes(bytes, group); }
// Received by the device whose part of the elements is largest.
constexpr double all_reduce_bytes(double bytes, int64_t group, int64_t item_size) {
  // A double does not show the rest of such a division, and 64 bits do not hold 2^63 bytes.
  if (!(bytes < static_cast<double>(kSaturated))) return mean_all_reduce_bytes(bytes, group);
  const auto elements = static_cast<int64_t>(bytes) / item_size;
  const int64_t part = (elements + group - 1) / group;
  return (static_cast<double>(elements) + static_cast<double>(group - 2) * static_cast<double>(part)) *
         static_cast<double>(item_size);
}
constexpr double collective_permute_bytes(double bytes, int64_t group) { return group > 1 ? bytes : 0; }

constexpr double received_bytes(TransferKind kind, double bytes, int64_t group, int64_t item_size) {
  switch (kind) {
    case TransferKind::kAllGather: return all_gather_bytes(bytes, group);
    case TransferKind::kReduceScatter: return reduce_scatter_bytes(bytes, group);
    case TransferKind::kAllReduce: return all_reduce_bytes(bytes, group, item_size);
    case TransferKind::kAllToAll: return all_to_all_bytes(bytes, group);
    default: return collective_permute_bytes(bytes, group);
  }
}

// Messages that wait for each other, by the schedules with the fewest.
constexpr int64_t transfer_rounds(TransferKind kind, int64_t group) {
  if (group <= 1) return 0;
  if (kind == TransferKind::kChain) return group - 1;
  return kind == TransferKind::kAllReduce ? 2 : 1;
}

}  // namespace shardwise
