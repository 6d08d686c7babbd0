// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string_view>
#include <vector>

#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/folding.h"
#include "shardwise/ops/slicing/slicing.h"

namespace shardwise {
namespace {

constexpr std::string_view kPad = "stablehlo.pad", kConcatenate = "stablehlo.concatenate";

struct SlicedRange {
  Dims start, limit, strides;
  static SlicedRange of(const OpView& slice) {
    return {dims_attr(slice, "start_indices"), dims_attr(slice, "limit_indices"), dims_attr(slice, "strides")};
  }
};

// Slices the operand of a concatenate that has all of these rows; returns none if several operands have them.
ValueId slice_of_operand(Builder& builder, const OpView& joined, SlicedRange range) {
  const auto dim = static_cast<size_t>(joined.attrs().get_int("dimension"));
  int64_t begin = 0;
  for (size_t i = 0; i < joined.operand_count(); ++i) {
    const int64_t end = begin + joined.operand_type(i).shape[dim];
    if (range.start[dim] >= begin && range.limit[dim] <= end) {
      range.start[dim] -= begin;
      range.limit[dim] -= begin;
      return build_slice(builder, joined.operand(i), range.start, range.limit, range.strides);
    }
    begin = end;
  }
  return {};
}

// Slices the operand of a pad; returns none if the range reaches into the padding.
ValueId slice_of_padded(Builder& builder, const OpView& pad, SlicedRange range) {
  const Dims &low = dims_attr(pad, "edge_padding_low"), &interior = dims_attr(pad, "interior_padding");
  const Dims shape = pad.operand_type(0).shape;
  for (size_t d = 0; d < shape.size(); ++d) {
    range.start[d] -= low[d];
    range.limit[d] -= low[d];
    if (interior[d] != 0 || range.start[d] < 0 || range.limit[d] > shape[d]) return {};
  }
  return build_slice(builder, pad.operand(0), range.start, range.limit, range.strides);
}

}  // namespace

ValueId fold_slice(Builder& builder, const OpView& op) {
  const Module& module = builder.module();
  if (!may_change(op, 3)) return {};
  const SlicedRange range = SlicedRange::of(op);
  if (const auto joined = skippable(module, op.operand(0), kConcatenate, 1)) {
    return slice_of_operand(builder, *joined, range);
  }
  if (const auto pad = skippable(module, op.operand(0), kPad, 3)) return slice_of_padded(builder, *pad, range);
  return {};
}

ValueId fold_concatenate(Builder& builder, const OpView& op) {
  Module& module = builder.module();
  if (!may_change(op, 1)) return {};
  const int64_t dim = op.attrs().get_int("dimension");
  std::vector<ValueId> operands;
  for (const ValueId operand : op.operands()) {
    const auto inner = skippable(module, operand, kConcatenate, 1);
    const auto is_of_this = [&](const Use& use) { return use.op == op.id(); };
    // A join that other ops read, too, is made anyway.
    const bool goes =
        inner && inner->attrs().get_int("dimension") == dim && std::ranges::all_of(module.uses(operand), is_of_this);
    if (goes) {
      operands.insert(operands.end(), inner->operands().begin(), inner->operands().end());
    } else {
      operands.push_back(operand);
    }
  }
  return operands.size() == op.operand_count() ? ValueId{} : build_concatenate(builder, operands, dim);
}

}  // namespace shardwise
