// SPDX-License-Identifier: Apache-2.0
//
// Slices at computed places: dynamic_slice reads one, dynamic_update_slice replaces one. Each start index is clamped so
// that the slice lies inside: reading 3 of 8 rows at 7 reads rows 5, 6, 7.
//
//   %0 = stablehlo.dynamic_slice %x, %i, %j, sizes = [2, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) ->
//   tensor<2x8xf32> %1 = stablehlo.dynamic_update_slice %x, %0, %i, %j : …
//
// A dim that is read in part is whole on every device. A dim that is updated in part may be sharded: each device puts
// the update where it would begin in its own rows, and what lies outside of them falls into a margin that is cut off
// again.
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> dynamic_slicing_ops();

void kernel_dynamic_slice(KernelContext& context);
void kernel_dynamic_update_slice(KernelContext& context);

}  // namespace shardwise
