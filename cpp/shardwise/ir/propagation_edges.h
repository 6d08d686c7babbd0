// SPDX-License-Identifier: Apache-2.0
//
// Shardy's notes on how axes came to the values of an op: step by step, axis by axis, from which to which of them.
//
//   %2 = stablehlo.add %0, %1 {sdy.propagation_edges =
//          #sdy.propagation_edges<[{step-0 = [{"a" = operand-0 -> [operand-1, result-0]}]}]>}
//
// They are read to be checked, and kept as text: our own answer is provenance.h.
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

// ShardingError, naming the op, unless steps differ and are not negative, an axis goes to other values than its source
// and to each once, all of them values of the op, and the op's shardings are of one mesh that has the axis.
void verify_propagation_edges(const OpView& op, const Attribute& value);

}  // namespace shardwise
