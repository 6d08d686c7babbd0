// SPDX-License-Identifier: Apache-2.0
//
// A scan with other inputs and outputs, in the place of one whose body it takes over:
//
//   %ys = shardwise.scan %xs, %h0 {…}     ->     %ys, %hs = shardwise.scan %xs, %ws, %h0 {…}
//
// The carries stay. The results that stay are handed over to the new op.
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {

struct RebuiltScan {
  OpId op;
  std::vector<ValueId> stacks = {};  // of the added rows
};

// `inputs`: all of them, each with its row, an argument of the body (new ones are added to it first).
// `dropped`: outputs of the old scan that nothing reads. `added`: values of the body that become rows of a new output.
RebuiltScan rebuild_scan(Module& module, Rewrite& rewrite, OpId scan, std::span<const LoopParts::Input> inputs,
                         std::span<const ValueId> dropped, std::span<const ValueId> added);

// An argument of the body for rows that are in another scan as `like` is in its own.
ValueId add_row_argument(Module& module, RegionId body, ValueId like);
// An argument of the body for the rows of a stack along `dim`.
ValueId add_row_of(Module& module, RegionId body, ValueId stack, size_t dim);

}  // namespace shardwise
