// SPDX-License-Identifier: Apache-2.0
//
// Where placements end a group of ops (fusion.h):
//
//   %0 = tanh %a      {"x"} along dim 0        one group
//   %1 = negate %0    {"x"} along dim 0
//   %2 = exp %1       {"x"} along dim 1        another group: a transfer is between them, and memory is paid
#pragma once

#include <functional>
#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

// FusionOptions::is_cut for a placement per value: by the rule of the op, a factor is sharded along other axes in the
// operand than in the results, or the operand is a sum of sharded terms, which a collective completes. `placements` is
// indexed by value, stays as it is, and must outlive the function. For one module and one thread.
std::function<bool(const OpView&, size_t)> cuts_between(const std::vector<PlacementId>& placements);

}  // namespace shardwise
