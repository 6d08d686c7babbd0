// SPDX-License-Identifier: Apache-2.0
//
// Ops that cut and join at fixed places: slice, pad, concatenate. (dynamic_slicing.h has those at computed places.)
//
//   %0 = stablehlo.slice %x [0:4, 1:8:2] : (tensor<4x8xf32>) -> tensor<4x4xf32>         ([i, j])->([i, j])
//   permutation={j} %1 = stablehlo.pad %x, %v, low = [1, 0], high = [-1, 0], interior = [0, 1] : …      negative: rows
//   are cut off %2 = stablehlo.concatenate %x, %y, dim = 0 : …                                      ([i, j], [i,
//   j])->([i, j]) need_replication={i}
//
// A slice is a view. Dims that change are whole on every device when these run; the others keep their shards.
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> slicing_ops();

void kernel_slice(KernelContext& context);
void kernel_pad(KernelContext& context);
void kernel_concatenate(KernelContext& context);
// `result` = pad of `operand` by the one-element array `value`; what lies behind the end is cut off.
void pad_into(KernelContext& context, const NdArray& result, const NdArray& operand, const NdArray& value, DimSpan low,
              DimSpan interior);

}  // namespace shardwise
