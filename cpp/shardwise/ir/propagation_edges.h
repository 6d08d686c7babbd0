// SPDX-License-Identifier: Apache-2.0
//
// Shardy's record of how axes reached the values of an op: for each step and axis, the source and the targets.
//
//   %2 = stablehlo.add %0, %1 {sdy.propagation_edges =
//          #sdy.propagation_edges<[{step-0 = [{"a" = operand-0 -> [operand-1, result-0]}]}]>}
//
// They are parsed to be checked, and kept as text. Shardwise's own record is provenance.h.
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

// Throws ShardingError, naming the op, unless: steps differ and are not negative; the targets of an axis are values of
// the op, differ from its source and from each other; and the shardings of the op are on one mesh that has the axis.
void verify_propagation_edges(const OpView& op, const Attribute& value);

}  // namespace shardwise
