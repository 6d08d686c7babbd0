// SPDX-License-Identifier: Apache-2.0
//
// stablehlo.custom_call: its target's definition (custom_call_def.h) has its rule, kernel, gradient and batch.
//
//   %1:2 = stablehlo.custom_call @Eigh(%0) : (tensor<2x4x4xf32>) -> (tensor<2x4x4xf32>, tensor<2x4xf32>)
//   ([i, j, k])->([i, l, m], [i, n]) {i=2, j=4, k=4, l=4, m=4, n=4} need_replication={j, k, l, m, n}
//
// A call of an unknown target is read, propagated and printed; it is an error when the program is compiled.
// A call that gives advice to other compilers (@LayoutConstraint) is the identity.
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> custom_call_ops();

void register_identity_calls();

}  // namespace shardwise
