// SPDX-License-Identifier: Apache-2.0
//
// Creates ops that cut and join, at fixed and at computed places.
#pragma once

#include <vector>

#include "shardwise/ir/builder.h"

namespace shardwise {

// Slices and paddings that exist even if they change nothing, so that a program is the same text for every number of
// devices. Without strides they are 1, and without interior padding it is 0.
ValueId create_slice(Builder& builder, ValueId operand, DimSpan start, DimSpan limit, DimSpan strides = {});
ValueId create_pad(Builder& builder, ValueId operand, ValueId value, DimSpan low, DimSpan high, DimSpan interior = {});

// A whole slice and a padding of nothing return their operand, as does a concatenation of one.
ValueId build_slice(Builder& builder, ValueId operand, DimSpan start, DimSpan limit, DimSpan strides = {});
ValueId build_slice_along(Builder& builder, ValueId operand, size_t dim, int64_t start, int64_t limit,
                          int64_t stride = 1);
ValueId build_pad(Builder& builder, ValueId operand, ValueId value, DimSpan low, DimSpan high, DimSpan interior = {});
// Pads with a small integer.
ValueId build_pad_along(Builder& builder, ValueId operand, int64_t fill, size_t dim, int64_t low, int64_t high,
                        int64_t interior = 0);
// The elements of `padded` at the places where pad put those of its operand; 0 for elements that it cut off.
ValueId build_unpad(Builder& builder, ValueId padded, DimSpan low, DimSpan high, DimSpan interior);
ValueId build_concatenate(Builder& builder, const std::vector<ValueId>& operands, int64_t dim);
// Row `index` of the leading dim, without that dim.
ValueId build_row(Builder& builder, ValueId operand, int64_t index);

// `starts` has one scalar per dim.
ValueId build_dynamic_slice(Builder& builder, ValueId operand, const std::vector<ValueId>& starts, DimSpan sizes);
ValueId build_dynamic_update_slice(Builder& builder, ValueId operand, ValueId update,
                                   const std::vector<ValueId>& starts);
// The starts of row `index` along a dim of the stack, and this row with the dim or without it, as `shape` has it.
std::vector<ValueId> starts_of_row(Builder& builder, ValueId stack, size_t dim, ValueId index);
ValueId build_dynamic_row(Builder& builder, ValueId stack, size_t dim, ValueId index, const Dims& shape);

}  // namespace shardwise
