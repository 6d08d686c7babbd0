// SPDX-License-Identifier: Apache-2.0
//
// Rehearses a kernel: it allocates, views or takes memory, and computes nothing.
//
//   %y = dot_general %a, %b            allocates %y
//   %y = transpose %a                  sets a view of %a
//   %y = dynamic_update_slice %a, …    takes %a's memory if nothing else needs it; else allocates %y
#pragma once

#include <cstddef>

#include "shardwise/ir/op_def.h"

namespace shardwise {

// Gives `context` the results of `kernel`, a kernel of `def`, as a run would: that of an op with shares_memory runs until
// it has asked for all its results, which is before it computes them. It may read small operands, such as the starts
// of slices.
void rehearse_kernel(const OpDef& def, const Kernel& kernel, size_t results, KernelContext& context);

}  // namespace shardwise
