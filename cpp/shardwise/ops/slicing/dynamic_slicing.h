// SPDX-License-Identifier: Apache-2.0
//
// Slices at positions that are operands: dynamic_slice reads one, dynamic_update_slice replaces one. Each start index
// is clamped so that the slice fits: reading 3 of 8 rows at 7 reads rows 5, 6, 7.
//
//   %0 = stablehlo.dynamic_slice %x, %i, %j, sizes = [2, 8]
//          : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x8xf32>
//   %1 = stablehlo.dynamic_update_slice %x, %0, %i, %j : …
//
// A dim that is read or updated in part may stay sharded: each device reads or writes the rows that it owns, relative
// to its first one. What it reads of other devices' rows is zero, and the results add up; what it would write there is
// cut off. Batched starts become a gather or a scatter (dynamic_slicing_batch.cpp).
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> dynamic_slicing_ops();

std::optional<Kernel> prepare_dynamic_slice(const OpView& op, const KernelTypes& types);
std::optional<Kernel> prepare_dynamic_update_slice(const OpView& op, const KernelTypes& types);
void batch_dynamic_slice(BatchContext& context);
void batch_dynamic_update_slice(BatchContext& context);

}  // namespace shardwise
