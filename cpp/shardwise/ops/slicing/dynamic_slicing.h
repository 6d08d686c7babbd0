// SPDX-License-Identifier: Apache-2.0
//
// Slices at positions that are operands: dynamic_slice reads one, dynamic_update_slice replaces one. Each start index
// is clamped so that the slice fits: reading 3 of 8 rows at 7 reads rows 5, 6, 7.
//
//   %0 = stablehlo.dynamic_slice %x, %i, %j, sizes = [2, 8]
//          : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x8xf32>
//   %1 = stablehlo.dynamic_update_slice %x, %0, %i, %j : …
//
// A dim that is read in part is whole on every device. A dim that is updated in part may stay sharded: each device
// writes the update at its position relative to the device's own rows. Rows of the update that belong to other devices
// land in a margin, which is cut off afterwards.
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> dynamic_slicing_ops();
bool is_dynamic_slice(const OpDef& def);

std::optional<Kernel> prepare_dynamic_slice(const OpView& op, const KernelTypes& types);
std::optional<Kernel> prepare_dynamic_update_slice(const OpView& op, const KernelTypes& types);

}  // namespace shardwise
