// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/slicing/dynamic_slicing.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/padding.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// The start indices follow the tensors.
void expect_starts(const InferContext& op, size_t first, int64_t ndim) {
  if (op.operand_count() != first + static_cast<size_t>(ndim)) {
    op.fail_shape(str("takes ", first, first == 1 ? " tensor" : " tensors", " and one start index per dim"),
                  op.operand_types_text(), str("give ", ndim, " scalars"));
  }
  for (size_t i = first; i < op.operand_count(); ++i) {
    expect_scalar(op, i, op.operand(first).dtype);
    if (!is_integer(op.operand(i).dtype)) {
      op.fail_dtype("start indices must be integers", op.operand_types_text(), "convert them first");
    }
  }
}

void expect_size(const InferContext& op, size_t dim, int64_t part, int64_t whole) {
  if (part >= 0 && part <= whole) return;
  op.fail_shape("the slice must not be larger than the operand",
                str("size ", part, " on dim ", dim, " of ", op.operand(0).text()), "make the slice smaller");
}

std::vector<ValueId> start_values(auto& context, size_t first) {
  std::vector<ValueId> starts;
  for (size_t i = first; i < context.op().operand_count(); ++i) starts.push_back(context.operand(i));
  return starts;
}

// ---- dynamic_slice -------------------------------------------------------------------------------------------------

void infer_dynamic_slice(const InferContext& op, std::vector<TypeId>& results) {
  if (op.operand_count() == 0) op.fail_shape("takes a tensor and one start index per dim", "none");
  const TensorType& operand = op.operand(0);
  expect_starts(op, 1, operand.ndim());
  const Dims& sizes = op.attr<IntArray>("slice_sizes");
  expect_length(op, "slice_sizes", sizes, operand.ndim());
  for (size_t dim = 0; dim < sizes.size(); ++dim) expect_size(op, dim, sizes[dim], operand.shape[dim]);
  results.push_back(result_or_declared(op, {operand.dtype, sizes}));
}

ShardingRule rule_dynamic_slice(const OpView& op) {
  RuleBuilder rule(op);
  const Dims& from = op.operand_type(0).shape;
  const Dims& to = op.result_type().shape;
  for (size_t dim = 0; dim < from.size(); ++dim) {
    const FactorId factor = from[dim] == to[dim] ? rule.factor(from[dim]) : rule.need_replication(from[dim], true);
    rule.map(0, dim, factor).map(rule.result_tensor(0), dim, factor);
  }
  return rule.build();
}

void partition_dynamic_slice(PartitionContext& context) {
  const Dims sizes = context.builder().context().type(context.local_result_type(0)).shape;
  const ValueId slice = build_dynamic_slice(context.builder(), context.operand(0), start_values(context, 1), sizes);
  context.set_result(0, slice, moved_padding(context));
}

void vjp_dynamic_slice(VjpContext& context) {
  Builder& builder = context.builder();
  const TensorType operand = context.op().operand_type(0);
  const ValueId zeros = build_zeros(builder, operand);
  context.set(0, build_dynamic_update_slice(builder, zeros, context.cotangent(), start_values(context, 1)));
}

// One example of a batched op.
ValueId example(BatchContext& context, size_t operand, int64_t index) {
  const ValueId value = context.operand(operand);
  return context.is_batched(operand) ? build_row(context.builder(), value, index) : value;
}

bool batched_from(const BatchContext& context, size_t first) {
  for (size_t i = first; i < context.op().operand_count(); ++i) {
    if (context.is_batched(i)) return true;
  }
  return false;
}

// Examples with different start indices are computed one by one and concatenated.
template <class BuildExample>
void batch_by_example(BatchContext& context, BuildExample&& build_example) {
  Builder& builder = context.builder();
  const TensorType type = context.op().result_type();
  if (context.size() == 0) {
    return context.set_result(0, build_zeros(builder, {type.dtype, with_leading(0, type.shape)}));
  }
  std::vector<ValueId> rows;
  for (int64_t index = 0; index < context.size(); ++index) {
    rows.push_back(build_reshape(builder, build_example(index), with_leading(1, type.shape)));
  }
  context.set_result(0, build_concatenate(builder, rows, 0));
}

std::vector<ValueId> example_starts(BatchContext& context, size_t first, int64_t index) {
  std::vector<ValueId> starts;
  for (size_t i = first; i < context.op().operand_count(); ++i) starts.push_back(example(context, i, index));
  return starts;
}

std::vector<ValueId> starts_after_zero(BatchContext& context, size_t first) {
  std::vector<ValueId> starts = start_values(context, first);
  Builder& builder = context.builder();
  const DType dtype = starts.empty() ? DType::kI32 : builder.module().type(starts[0]).dtype;
  starts.insert(starts.begin(), build_scalar(builder, scalar_of(dtype, 0)));
  return starts;
}

void batch_dynamic_slice(BatchContext& context) {
  Builder& builder = context.builder();
  const Dims sizes = context.op().result_type().shape;
  if (!batched_from(context, 1)) {
    const std::vector<ValueId> starts = starts_after_zero(context, 1);
    return context.set_result(
        0, build_dynamic_slice(builder, context.operand(0), starts, with_leading(context.size(), sizes)));
  }
  batch_by_example(context, [&](int64_t index) {
    return build_dynamic_slice(builder, example(context, 0, index), example_starts(context, 1, index), sizes);
  });
}

// ---- dynamic_update_slice ------------------------------------------------------------------------------------------

void infer_dynamic_update_slice(const InferContext& op, std::vector<TypeId>& results) {
  if (op.operand_count() < 2) {
    op.fail_shape("takes a tensor, its update and one start index per dim", op.operand_types_text());
  }
  const TensorType& operand = op.operand(0);
  const TensorType& update = op.operand(1);
  if (operand.dtype != update.dtype) {
    op.fail_dtype("operand and update must have the same dtype", op.operand_types_text(), "convert one of them");
  }
  if (operand.ndim() != update.ndim()) {
    op.fail_shape("operand and update must have the same number of dims", op.operand_types_text(),
                  "reshape the update");
  }
  expect_starts(op, 2, operand.ndim());
  for (size_t dim = 0; dim < update.shape.size(); ++dim) expect_size(op, dim, update.shape[dim], operand.shape[dim]);
  results.push_back(result_or_declared(op, operand));
}

ShardingRule rule_dynamic_update_slice(const OpView& op) {
  RuleBuilder rule(op);
  const Dims& whole = op.operand_type(0).shape;
  const Dims& part = op.operand_type(1).shape;
  for (size_t dim = 0; dim < whole.size(); ++dim) {
    const FactorId factor = rule.factor(whole[dim]);
    const bool is_whole = whole[dim] == part[dim];
    const FactorId update = is_whole ? factor : rule.need_replication(part[dim]);
    if (!is_whole) rule.positional(factor);
    rule.map(0, dim, factor).map(1, dim, update).map(rule.result_tensor(0), dim, factor);
  }
  return rule.build();
}

// The clamped global start index as i64. If its own dtype cannot hold the bound, the bound never applies.
ValueId clamped_start(Builder& builder, ValueId start, int64_t bound) {
  const DType dtype = builder.module().type(start).dtype;
  const Scalar highest = neutral_element(Reducer::kMin, dtype);
  const bool binds =
      is_unsigned_integer(dtype) ? static_cast<uint64_t>(bound) < highest.natural : bound < highest.integer;
  const ValueId high = build_scalar(builder, binds ? scalar_of(dtype, bound) : highest);
  const ValueId low = build_scalar(builder, scalar_of(dtype, 0));
  return build_convert(builder, builder.create("stablehlo.clamp", {low, start, high}), DType::kI64);
}

Padding updated_padding(const PartitionContext& context) {
  const Padding padding = moved_padding(context);
  if (padding.kind != Padding::Kind::kFill || context.operand_padding(1) == padding) return padding;
  return {Padding::Kind::kGarbage, {}};
}

void partition_dynamic_update_slice(PartitionContext& context) {
  Builder& builder = context.builder();
  const OpView op = context.op();
  const Dims whole = op.operand_type(0).shape, part = op.operand_type(1).shape;
  const LocalLayout& layout = context.operand_layout(0);
  // A margin as wide as the update takes up the rows of other devices: the local op would clamp the start instead.
  Dims margin(whole.size(), 0), limit = layout.local_shape();
  bool moves = false;
  for (size_t dim = 0; dim < whole.size(); ++dim) {
    if (whole[dim] == part[dim] || layout.dims[dim].axes.empty()) continue;
    margin[dim] = part[dim];
    limit[dim] += part[dim];
    moves = true;
  }
  std::vector<ValueId> starts = start_values(context, 2);
  for (size_t dim = 0; moves && dim < starts.size(); ++dim) {
    starts[dim] = clamped_start(builder, starts[dim], whole[dim] - part[dim]);
    if (whole[dim] == part[dim] || layout.dims[dim].axes.empty()) continue;
    const ValueId offset = build_convert(builder, context.shard_offset(layout.dims[dim]), DType::kI64);
    const ValueId local = builder.create("stablehlo.subtract", {starts[dim], offset});
    const ValueId shift = build_scalar(builder, scalar_of(DType::kI64, margin[dim]));
    starts[dim] = builder.create("stablehlo.add", {local, shift});
  }
  const ValueId zero = build_scalar(builder, scalar_of(op.operand_type(0).dtype, 0));
  const Dims nothing(whole.size(), 0), one(whole.size(), 1);
  const ValueId wide = build_pad(builder, context.operand(0), zero, margin, margin, nothing);
  const ValueId updated = build_dynamic_update_slice(builder, wide, context.operand(1), starts);
  context.set_result(0, build_slice(builder, updated, margin, limit, one), updated_padding(context));
}

void vjp_dynamic_update_slice(VjpContext& context) {
  Builder& builder = context.builder();
  const TensorType update = context.op().operand_type(1);
  const std::vector<ValueId> starts = start_values(context, 2);
  if (context.needs(0)) {
    // The update overwrote these elements, so they do not depend on the operand.
    const ValueId zeros = build_zeros(builder, update);
    context.set(0, build_dynamic_update_slice(builder, context.cotangent(), zeros, starts));
  }
  if (context.needs(1)) context.set(1, build_dynamic_slice(builder, context.cotangent(), starts, update.shape));
}

void batch_dynamic_update_slice(BatchContext& context) {
  Builder& builder = context.builder();
  if (!batched_from(context, 2)) {
    const std::vector<ValueId> starts = starts_after_zero(context, 2);
    return context.set_result(0, build_dynamic_update_slice(builder, context.batched(0), context.batched(1), starts));
  }
  batch_by_example(context, [&](int64_t index) {
    return build_dynamic_update_slice(builder, example(context, 0, index), example(context, 1, index),
                                      example_starts(context, 2, index));
  });
}

// ---- the family ----------------------------------------------------------------------------------------------------

constexpr OpDef kDynamicSlice{
    .name = "stablehlo.dynamic_slice",
    .infer = infer_dynamic_slice,
    .rule = rule_dynamic_slice,
    .partition = partition_dynamic_slice,
    .prepare = prepare_dynamic_slice,
    .vjp = vjp_dynamic_slice,
    .batch = batch_dynamic_slice,
    .linear = {Linear::kFirst, kAllReducers},
    .format = "operands `,` `sizes` `=` $slice_sizes attr-dict `:` functional-type",
    .doc = "A slice at computed start indices, which are clamped (StableHLO dynamic_slice).",
    .traits = {.movement = true},
};
static_assert(kDynamicSlice.complete());

constexpr OpDef kDynamicUpdateSlice{
    .name = "stablehlo.dynamic_update_slice",
    .infer = infer_dynamic_update_slice,
    .rule = rule_dynamic_update_slice,
    .partition = partition_dynamic_update_slice,
    .prepare = prepare_dynamic_update_slice,
    .vjp = vjp_dynamic_update_slice,
    .batch = batch_dynamic_update_slice,
    .format = "operands attr-dict `:` functional-type",
    .doc = "Replaces a slice at computed start indices, which are clamped (StableHLO dynamic_update_slice).",
    .traits = {.movement = true},
};
static_assert(kDynamicUpdateSlice.complete());

constexpr OpDef kDynamicSlicingOps[] = {kDynamicSlice, kDynamicUpdateSlice};

}  // namespace

std::span<const OpDef> dynamic_slicing_ops() { return kDynamicSlicingOps; }

}  // namespace shardwise
