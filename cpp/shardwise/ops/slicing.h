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
// A slice is a view. Dims that change are whole on every device when these ops run; the others stay sharded.
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> slicing_ops();

std::optional<Kernel> prepare_slice(const OpView& op, const KernelTypes& types);
std::optional<Kernel> prepare_pad(const OpView& op, const KernelTypes& types);
std::optional<Kernel> prepare_concatenate(const OpView& op, const KernelTypes& types);
// How many of the indices start, start + stride, … of a dim of `size` are below `limit`.
int64_t slice_size(int64_t start, int64_t limit, int64_t stride, int64_t size);
// `result` = pad of `operand` by the one-element array `value`; what lies behind the end is cut off.
void pad_into(KernelContext& context, const NdArray& result, const NdArray& operand, const NdArray& value, DimSpan low,
              DimSpan interior);

// Each returns its operand when the op would be an identity: a full slice, no padding, or a single operand.
ValueId build_slice(Builder& builder, ValueId operand, DimSpan start, DimSpan limit, DimSpan strides);
ValueId build_pad(Builder& builder, ValueId operand, ValueId value, DimSpan low, DimSpan high, DimSpan interior);
// The elements of `padded` at which pad put its operand; 0 for elements that pad cut off.
ValueId build_unpad(Builder& builder, ValueId padded, DimSpan low, DimSpan high, DimSpan interior);
ValueId build_concatenate(Builder& builder, const std::vector<ValueId>& operands, int64_t dim);
// Row `index` of the leading dim, dropping that dim.
ValueId build_row(Builder& builder, ValueId operand, int64_t index);

}  // namespace shardwise
