// SPDX-License-Identifier: Apache-2.0
//
// Slices and joins at static positions: slice, pad, concatenate. (dynamic_slicing.h has the dynamic ones.)
//
//   %0 = stablehlo.slice %x [0:4, 1:8:2] : (tensor<4x8xf32>) -> tensor<4x4xf32>
//          ([i, j])->([i, j]) permutation={j}
//   %1 = stablehlo.pad %x, %v, low = [1, 0], high = [-1, 0], interior = [0, 1] : …       negative: rows are cut off
//   %2 = stablehlo.concatenate %x, %y, dim = 0 : …
//          ([i, j], [i, j])->([i, j]) need_replication={i}
//
// A slice is a view. A dim that changes stays sharded if each shard reads its own rows alone (x[::2] of 64 rows on 8
// devices). Otherwise each device receives the rows that it reads (partitioning/exchange_partition.h), or the dim is
// whole on every device, whatever costs less.
#pragma once

#include <span>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> slicing_ops();

// OpDef::fold: elements are read where they come from. Annotated values stay, and so do joins that others read.
//
//   slice [0:64] of concatenate %u, %v        %u, of 64 rows
//   slice [1:65] of pad %u, low 1             %u
//   concatenate (concatenate %u, %v), %w      concatenate %u, %v, %w
ValueId fold_slice(Builder& builder, const OpView& op);
ValueId fold_concatenate(Builder& builder, const OpView& op);

KnownIntegers integers_of_slice(IntegersContext& context);
KnownIntegers integers_of_concatenate(IntegersContext& context);
std::optional<Kernel> prepare_slice(const OpView& op, const KernelTypes& types);
std::optional<Kernel> prepare_pad(const OpView& op, const KernelTypes& types);
std::optional<Kernel> prepare_concatenate(const OpView& op, const KernelTypes& types);
// How many of the indices start, start + stride, … of a dim of `size` are below `limit`.
int64_t slice_size(int64_t start, int64_t limit, int64_t stride, int64_t size);
// `result` = pad of `operand` by the one-element array `value`; what lies past the end is cut off.
void pad_into(KernelContext& context, const NdArray& result, const NdArray& operand, const NdArray& value, DimSpan low,
              DimSpan interior);

}  // namespace shardwise
