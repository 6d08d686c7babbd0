// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/slicing/dynamic_slicing.h"

#include <algorithm>
#include <array>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/partitioning/exchange_partition.h"
#include "shardwise/ops/partitioning/owned_rows.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
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
    expect_dtype(op, is_integer(op.operand(i).dtype), "start indices must be integers", "convert them first");
  }
}

void expect_size(const InferContext& op, size_t dim, int64_t part, int64_t whole) {
  if (part >= 0 && part <= whole) return;
  op.fail_shape("the slice must not be larger than the operand",
                str("size ", part, " on dim ", dim, " of ", op.operand(0).text()), "make the slice smaller");
}

// ---- shards that own some of the rows ------------------------------------------------------------------------------

// Whether the slice is smaller than dim `dim` of the operand.
bool is_part(const OpView& op, size_t dim) {
  const Dims& whole = op.operand_type(0).shape;
  const bool reads = op.operand_count() == whole.size() + 1;  // an update is one more operand
  return (reads ? op.result_type() : op.operand_type(1)).shape[dim] != whole[dim];
}

std::vector<FactorId> factors_in_part(const OpView& op, const ShardingRule& rule) {
  std::vector<FactorId> factors;
  for (size_t dim = 0; dim < rule.ndim(0); ++dim) {
    if (is_part(op, dim)) factors.push_back(rule.dim(0, dim)[0]);
  }
  return factors;
}

// The clamped global start index as i64. If its own dtype cannot hold the bound, the bound never applies.
ValueId clamped_start(Builder& builder, ValueId start, int64_t bound) {
  const DType dtype = builder.module().type(start).dtype;
  const ValueId high = build_scalar(builder, capped(dtype, bound));
  const ValueId low = build_scalar(builder, scalar_of(dtype, 0));
  return build_convert(builder, builder.create("stablehlo.clamp", {low, start, high}), DType::kI64);
}

// The rows of this shard that are nearest to the slice, as many as the slice has. The slice is relative to them, with a
// margin of its own size on each side:
//
//   rows 4 to 7 of 16 on x = 4, slice [6, 9)      the window is [5, 8), the slice starts at 1 after the margin of 3
class OwnedWindow {
 public:
  // `first_start` is the first of the start operands; `slice` the local shape of the slice.
  OwnedWindow(PartitionContext& context, size_t first_start, Dims slice)
      : builder_(context.builder()), operand_(context.operand(0)), slice_(std::move(slice)) {
    const OpView op = context.op();
    for (size_t dim = 0; dim < slice_.size(); ++dim) {
      const DimLayout layout = context.operand_layout(0).dim(dim);
      const bool is_owned = is_part(op, dim) && !layout.axes.empty();
      const ValueId start = is_part(op, dim)
                                ? clamped_start(builder_, context.operand(first_start + dim), layout.size - slice_[dim])
                                : number(0);
      sizes_.push_back(is_owned ? std::min(slice_[dim], layout.block) : slice_[dim]);
      margin_.push_back(is_owned ? slice_[dim] : 0);
      one_row_ = one_row_ && (!is_owned || slice_[dim] == 1);
      wanted_.push_back(start);
      starts_.push_back(start);
      if (!is_owned) continue;
      const ValueId offset = build_convert(builder_, context.shard_offset(layout), DType::kI64);
      wanted_.back() = builder_.create("stablehlo.subtract", {start, offset});
      starts_.back() =
          builder_.create("stablehlo.clamp", {number(0), wanted_.back(), number(layout.block - sizes_.back())});
    }
  }

  // The slice, `fill` where other devices have it.
  ValueId read(Scalar fill) {
    const ValueId rows = window();
    if (one_row_) return build_select(is_inside(), rows, build_splat(builder_, slice_, fill));
    return build_dynamic_slice(builder_, with_margin(rows, fill), inner_starts(), slice_);
  }

  // The operand with the window updated.
  ValueId updated(ValueId update) {
    const ValueId rows = window();
    if (one_row_) return with_window(build_select(is_inside(), update, rows));
    const ValueId wide = with_margin(rows, scalar_of(builder_.module().type(rows).dtype, 0));
    const ValueId changed = build_dynamic_update_slice(builder_, wide, update, inner_starts());
    Dims limit = margin_;
    for (size_t dim = 0; dim < limit.size(); ++dim) limit[dim] += sizes_[dim];
    return with_window(build_slice(builder_, changed, margin_, limit));
  }

 private:
  ValueId number(int64_t value) { return build_scalar(builder_, scalar_of(DType::kI64, value)); }
  // Also if the window is the whole shard, so that the program is the same text for every number of devices.
  ValueId window() { return build_dynamic_slice(builder_, operand_, starts_, sizes_); }
  ValueId with_window(ValueId rows) { return build_dynamic_update_slice(builder_, operand_, rows, starts_); }
  ValueId with_margin(ValueId rows, Scalar fill) {
    return build_pad(builder_, rows, build_scalar(builder_, fill), margin_, margin_);
  }
  std::vector<ValueId> inner_starts() {
    std::vector<ValueId> starts;
    for (size_t dim = 0; dim < margin_.size(); ++dim) {
      starts.push_back(number(margin_[dim]));
      if (margin_[dim] == 0) continue;
      const ValueId shift = builder_.create("stablehlo.subtract", {wanted_[dim], starts_[dim]});
      starts.back() = builder_.create("stablehlo.add", {shift, starts.back()});
    }
    return starts;
  }
  // Whether the one row of the slice is this device's: tensor<i1>.
  ValueId is_inside() {
    ValueId inside;
    for (size_t dim = 0; dim < margin_.size(); ++dim) {
      if (margin_[dim] == 0) continue;
      const ValueId mine = build_compare(builder_, "EQ", wanted_[dim], starts_[dim]);
      inside = inside ? builder_.create("stablehlo.and", {inside, mine}) : mine;
    }
    return inside;
  }
  ValueId build_select(ValueId inside, ValueId yes, ValueId no) {
    return builder_.create("stablehlo.select", {inside, yes, no});
  }

  Builder& builder_;
  ValueId operand_;
  Dims slice_, sizes_, margin_;
  std::vector<ValueId> wanted_, starts_;  // relative to the shard; clamped so that the window fits
  bool one_row_ = true;                   // along each owned dim
};

// ---- dynamic_slice -------------------------------------------------------------------------------------------------

void infer_dynamic_slice(const InferContext& op, std::vector<TypeId>& results) {
  if (op.operand_count() == 0) op.fail_shape("takes a tensor and one start index per dim", "none");
  const TensorType& operand = op.operand(0);
  expect_starts(op, 1, operand.ndim());
  const Dims& sizes = expect_list(op, "slice_sizes", operand.ndim());
  for (size_t dim = 0; dim < sizes.size(); ++dim) expect_size(op, dim, sizes[dim], operand.shape[dim]);
  results.push_back(result_or_declared(op, {operand.dtype, sizes}));
}

ShardingRule rule_dynamic_slice(const OpView& op) {
  const Dims &from = op.operand_type(0).shape, &to = op.result_type().shape;
  return rule_by_dim(op, [&](RuleBuilder& rule, size_t dim) {
    if (from[dim] == to[dim]) return rule.factor(from[dim]);
    rule.range(0, dim, {.start = static_cast<int32_t>(1 + dim)});
    // Blocked: equal shards of the whole dim and of the slice would hold different rows.
    return rule.need_replication(from[dim], true);
  });
}

void partition_dynamic_slice(PartitionContext& context) {
  const Dims sizes = context.builder().context().type(context.local_result_type(0)).shape;
  const ValueId slice = build_dynamic_slice(context.builder(), context.operand(0), operands_of(context, 1), sizes);
  context.set_result(0, slice, moved_padding(context));
}

// The results of the owners of the rows: others contribute zeros.
void placements_of_owned_rows(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                              std::vector<OpPlacement>& found) {
  OpPlacement placement = placement_by_rule(rule, axes);
  for (size_t dim = 0; dim < rule.ndim(0); ++dim) {
    if (!is_part(op, dim)) continue;
    AxisList& own = placement.tensors[rule.result_tensor(0)][dim];
    placement.unreduced.insert(placement.unreduced.end(), own.begin(), own.end());
    own.clear();
  }
  placement.unreduced = sort_and_merge(placement.unreduced);
  placement.reducer = reducer_of_parts(op.result_type().dtype);
  found.push_back(std::move(placement));
}

// Rows that other devices have are in the margin of what this device reads, which is neutral.
void partition_by_owned_rows(PartitionContext& context) {
  Builder& builder = context.builder();
  const DType dtype = context.op().result_type().dtype;
  OwnedWindow window(context, 1, builder.context().type(context.local_result_type(0)).shape);
  // -0, so that adding the other devices' values preserves a zero's sign.
  const Scalar neutral = exact_neutral(reducer_of_parts(dtype), dtype);
  context.set_result(0, window.read(neutral), result_padding(context.result_layout(0)));
}

// ---- starts that are constants: the range is known ------------------------------------------------------------------

std::optional<int64_t> constant_start(const OpView& op, size_t dim) {
  const std::optional<Scalar> start = splat_value(op.module(), op.operand(1 + dim));
  if (!start) return std::nullopt;
  return clamped(*start, op.operand_type(0).shape[dim] - op.result_type().shape[dim]);
}

std::vector<FactorId> factors_at_constants(const OpView& op, const ShardingRule& rule) {
  for (size_t dim = 0; dim < rule.ndim(0); ++dim) {
    if (is_part(op, dim) && !constant_start(op, dim)) return {};
  }
  return op.module().meshes.empty() ? std::vector<FactorId>{} : factors_in_part(op, rule);
}

void partition_at_constants(PartitionContext& context) {
  const OpView op = context.op();
  ExchangeMap map{.to = {}, .from = {{}}};
  for (size_t dim = 0; dim < op.result_type().shape.size(); ++dim) {
    map.to.push_back(exchange_target(context, dim));
    map.from[0].push_back(exchange_source(context, 0, dim));
    if (is_part(op, dim)) map.from[0].back().offset = *constant_start(op, dim);
  }
  const ValueId rows = emit_exchange(context, std::array{context.operand(0)}, {}, map);
  context.set_result(0, rows, result_padding(context.result_layout(0)));
}

void vjp_dynamic_slice(VjpContext& context) {
  Builder& builder = context.builder();
  const TensorType operand = context.op().operand_type(0);
  const ValueId zeros = build_zeros(builder, operand);
  context.set(0, build_dynamic_update_slice(builder, zeros, context.cotangent(), operands_of(context, 1)));
}

// ---- dynamic_update_slice ------------------------------------------------------------------------------------------

void infer_dynamic_update_slice(const InferContext& op, std::vector<TypeId>& results) {
  expect_shape(op, op.operand_count() >= 2, "takes a tensor, its update and one start index per dim");
  const TensorType& operand = op.operand(0);
  const TensorType& update = op.operand(1);
  expect_dtype(op, operand.dtype == update.dtype, "operand and update must have the same dtype", "convert one of them");
  expect_shape(op, operand.ndim() == update.ndim(), "operand and update must have the same number of dims",
               "reshape the update");
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
    // Each device needs all rows of the update, because any of them may fall into any shard.
    const FactorId update = whole[dim] == part[dim] ? factor : rule.need_replication(part[dim]);
    rule.map(0, dim, factor).map(1, dim, update).map(rule.result_tensor(0), dim, factor);
    if (update == factor) continue;
    rule.range(1, dim, {.start = static_cast<int32_t>(2 + dim), .outside = Outside::kAbsent});
  }
  return rule.build();
}

Padding updated_padding(const PartitionContext& context) {
  const Padding padding = moved_padding(context);
  if (padding.kind != Padding::Kind::kFill || context.operand_padding(1) == padding) return padding;
  return {Padding::Kind::kGarbage, {}};
}

void partition_dynamic_update_slice(PartitionContext& context) {
  const ValueId local =
      build_dynamic_update_slice(context.builder(), context.operand(0), context.operand(1), operands_of(context, 2));
  context.set_result(0, local, updated_padding(context));
}

// Each device updates the rows that the window has in its shard. Rows of the update that other devices have land in the
// margin, which is cut off. Only as many rows as the update has are touched, so a loop updates its carry in place.
void partition_by_owned_update(PartitionContext& context) {
  OwnedWindow window(context, 2, context.operand_layout(1).local_shape());
  context.set_result(0, window.updated(context.operand(1)), updated_padding(context));
}

void vjp_dynamic_update_slice(VjpContext& context) {
  Builder& builder = context.builder();
  const TensorType update = context.op().operand_type(1);
  const std::vector<ValueId> starts = operands_of(context, 2);
  if (context.needs(0)) {
    // The update overwrote these elements, so they do not depend on the operand.
    const ValueId zeros = build_zeros(builder, update);
    context.set(0, build_dynamic_update_slice(builder, context.cotangent(), zeros, starts));
  }
  if (context.needs(1)) context.set(1, build_dynamic_slice(builder, context.cotangent(), starts, update.shape));
}

// The update alone: the op writes it into its first operand, in place.
OpCost cost_dynamic_update_slice(const OpView& op, const LocalTypes& types) {
  OpCost cost = cost_by_rule(op, types);
  cost.touched.front() = 0;
  cost.touched.back() = cost.touched[1];
  return cost;
}

// ---- the family ----------------------------------------------------------------------------------------------------

constexpr Method kDynamicSliceMethods[] = {
    {kOwnedRows, factors_in_part, placements_of_owned_rows, partition_by_owned_rows},
    {kExchange, factors_at_constants, nullptr, partition_at_constants}};

constexpr Method kDynamicUpdateSliceMethods[] = {
    {kOwnedRows, factors_in_part, placements_by_rule, partition_by_owned_update}};

constexpr OpDef kDynamicSlicingOps[] = {
    moving({.name = "stablehlo.dynamic_slice",
            .infer = infer_dynamic_slice,
            .rule = rule_dynamic_slice,
            .partition = partition_dynamic_slice,
            .methods = kDynamicSliceMethods,
            .prepare = prepare_dynamic_slice,
            .vjp = vjp_dynamic_slice,
            .batch = batch_dynamic_slice,
            .format = "operands `,` `sizes` `=` $slice_sizes attr-dict `:` functional-type",
            .doc = "A slice at computed start indices, which are clamped (StableHLO dynamic_slice).",
            .traits = {.shares_memory = true}}),
    moving({.name = "stablehlo.dynamic_update_slice",
            .infer = infer_dynamic_update_slice,
            .rule = rule_dynamic_update_slice,
            .partition = partition_dynamic_update_slice,
            .methods = kDynamicUpdateSliceMethods,
            .prepare = prepare_dynamic_update_slice,
            .cost = cost_dynamic_update_slice,
            .vjp = vjp_dynamic_update_slice,
            .batch = batch_dynamic_update_slice,
            .joint = 0b011,
            .format = "operands attr-dict `:` functional-type",
            .doc = "Replaces a slice at computed start indices, which are clamped (StableHLO dynamic_update_slice).",
            .traits = {.shares_memory = true}},
           Linear::kJoint),
};
static_assert(all_complete(kDynamicSlicingOps));

}  // namespace

std::span<const OpDef> dynamic_slicing_ops() { return kDynamicSlicingOps; }

}  // namespace shardwise
