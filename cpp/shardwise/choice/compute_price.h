// SPDX-License-Identifier: Apache-2.0
//
// The price of computing one op on a device, where a candidate takes and makes its tensors:
//
//   dot_general, bf16 (32768, 8192) @ (8192, 8192), k on t=8      556 us        2·32768·8192·8192 / 8 flops at 989 TFLOP/s
//   the same on gathered operands                                 4.45 ms
//
// What its operands and results cost to move is the price of their transfers (ReshardPlanner::price); a method's price is that
// of its dry run (dry_run.h).
#pragma once

#include "shardwise/choice/choice.h"
#include "shardwise/cost/hardware.h"
#include "shardwise/cost/price.h"

namespace shardwise {

// `ps`, without the launch, and `work` alone: nothing is sent. `in_memory`: the tensors that memory is paid for, by bit
// (analysis/op_time.h).
Price compute_price(const OpView& op, const OpChoice& choice, const Hardware& hardware,
                    uint64_t in_memory = ~uint64_t{0});

// Of a value in this placement on one device, padding included. No placement: the whole value.
TypeId local_type(Context& context, TypeId type, PlacementId placement);

}  // namespace shardwise
