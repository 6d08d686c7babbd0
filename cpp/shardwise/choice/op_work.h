// SPDX-License-Identifier: Apache-2.0
//
// The work of each op of a chosen program, beside its share: what one device computes, and what the op computes on the whole.
//
//   dot_general, bf16 (32768, 8192) @ (8192, 8192) on t=8      flops           whole            repeated
//     k: "t"                                                   2^42 / 8        2^42             {}
//     both operands gathered                                   2^42            2^42             {"t"}
//
// An op repeats its work if devices do more together than the op on the whole: padding and halos count, too.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shardwise/analysis/executions.h"
#include "shardwise/ir/module.h"
#include "shardwise/mesh/axis.h"

namespace shardwise {

// A dim whose split an op cannot keep (lost_splits.h).
struct LostSplit {
  enum Kind : uint8_t {
    kRow,      // a loop reads one row of the dim in each trip
    kReshape,  // a reshape whose dims do not nest with the shards
    kOp,       // an op that needs the dim whole
    kNoRule    // an op without a sharding rule
  };
  // One that loses the split, or makes the value that has it.
  struct Reshape {
    LocId operand, result;  // of these values
    Dims from, to;
  };
  Kind kind = kOp;
  std::string_view name;  // of the op
  LocId loc;              // of the op
  LocId value;            // of the operand that is split
  size_t dim = 0;         // of it
  AxisList axes;          // of that dim
  int64_t instead = -1;   // another dim to split: of the result for kReshape, else of the operand; -1: none
  std::optional<Reshape> reshape = {};
};

struct OpWork {
  OpId op;
  LocId loc;
  std::string_view name;               // of the op
  int64_t flops = 0;                   // of one device, in one execution
  int64_t whole = 0;                   // of the op on the whole, in one execution
  Executions executions;               // how often it runs: sums of large programs do not fit 64 bits
  AxisList repeated;                   // devices along these compute the same
  int64_t dim = -1;                    // the largest dim of the result that these could split; -1: none
  std::optional<LostSplit> lost = {};  // the reason why they compute the same, if an operand lost a split
};

}  // namespace shardwise
