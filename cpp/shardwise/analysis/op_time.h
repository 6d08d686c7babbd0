// SPDX-License-Identifier: Apache-2.0
//
// The time of an op on one device: launch + max(operations / peak, bytes / bandwidth), in picoseconds (cost/price.h).
//
//   %2 = dot_general %0, %1 : tensor<4096x4096xbf16>, … -> tensor<4096x4096xbf16>        default hardware, an H100
//   op_time(OpView(module, %2), types, hardware)
//     operations   2·4096³ = 137'438'953'472 at 989.4 TFLOP/s in bf16       138'911'415 ps
//     bytes        3·2·4096² = 100'663'296 at 3.35 TB/s                      30'048'746 ps
//     ps() 138'911'415, bound() kMatrix
//
// Types are those of one device, padding included, also of an op of a global module (ir/op_cost.h). Each unit works beside
// the others and beside the memory, so the largest of their times counts. The op is alone here: what its neighbors leave
// in the cache is in group_time (group_time.h).
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "shardwise/cost/hardware.h"
#include "shardwise/ir/op_cost.h"

namespace shardwise {

// What takes the time.
enum class Bound : uint8_t { kNothing, kMemory, kMatrix, kVector, kTranscendental };
std::string_view name(Bound bound);  // "memory"

struct OpTime {
  int64_t launch_ps = 0;
  int64_t memory_ps = 0;
  std::array<int64_t, kComputeUnitCount> unit_ps = {};  // by ComputeUnit
  int64_t bytes = 0;
  int64_t flops = 0;
  int64_t products_ps = 0;  // of the matrix unit at its peak, whatever share of it hardware reaches

  int64_t ps() const;
  int64_t ps_without_launch() const;
  Bound bound() const;  // kMemory where a unit takes as long
  friend bool operator==(const OpTime&, const OpTime&) = default;
};

// `types`: operands first. Zero without a launch for an op that costs nothing, such as an annotation or a call. A
// collective only writes its result here: what it sends is priced by collective_price.h.
OpTime op_time(const OpView& op, std::span<const TypeId> types, const Hardware& hardware);
// Only these tensors are in memory, by bit; the 65th and later ones always are. The others stay on the chip, between the ops
// of a group.
OpTime op_time(const OpView& op, std::span<const TypeId> types, const Hardware& hardware, uint64_t in_memory);
OpTime op_time(const OpView& op, const Hardware& hardware);  // on its own types

// Adds the operations of an op to the times of the units: in the format of a product, or in the dtype of its elements.
void add_operations(const OpView& op, const LocalTypes& types, const OpCost& cost, const Hardware& hardware,
                    OpTime& time);

}  // namespace shardwise
