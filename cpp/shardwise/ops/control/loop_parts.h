// SPDX-License-Identifier: Apache-2.0
//
// The parts of a loop, for all ops whose regions mean Regions::kLoop:
//
//   while(%x = %a) cond { return %p } do { return %y }   condition, body; predicate: %p; carry: %a, %x, %y, the result
//   scan %xs, %a { ^bb0(%row, %x): return %z, %y }       no condition; input: %xs, %row; output: %z; the same carry
//
// Passes take a loop apart only with loop_parts: which region is the condition, and which operands, arguments and
// results belong together, is written nowhere else.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ops/control/scan_attributes.h"

namespace shardwise {

struct LoopParts {
  struct Carry {
    ValueId entry, argument, next, result;
    ValueId tested = {};  // the argument of the condition, if there is one
    bool is_invariant() const { return next == argument; }
  };
  struct Input {
    ValueId stack, row;   // an operand, an argument of the body
    int64_t offset = 0;   // in the trip of row i, the row i + offset
    ValueId border = {};  // the row that the stack lacks, if any
  };
  struct Output {
    ValueId row, stack;  // a result of the body, a result of the op
  };

  RegionId condition = {};  // none for a scan
  ValueId predicate = {};
  RegionId body;
  std::vector<Input> inputs = {};
  std::vector<Output> outputs = {};
  std::vector<Carry> carries = {};
};
LoopParts loop_parts(const OpView& loop);

std::optional<ScanOrder> scan_order(const OpView& loop);  // none: a while

}  // namespace shardwise
