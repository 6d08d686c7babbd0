// SPDX-License-Identifier: Apache-2.0
//
// Cumulative ops along sharded dims: each device combines its own rows, then adds the totals of the shards before it.
//
//   cumsum of [1 2 | 3 4 | 5 6] over three devices
//     own rows          [1 3]  [3 7]  [5 11]
//     totals             3      7      11
//     before the shard   0      3      10
//     result            [1 3]  [6 10] [15 21]
//
// The scan of the totals takes one of three forms, which are three methods. The length of none depends on the number of
// devices:
//
//   rows of w elements, n shards       all_gather, mask, reduce                 (n - 1) * w
//                                      all_to_all, prefix, all_to_all       2 * (n - 1) * ceil(w / n)
//                                      a chain: n - 1 messages in a row     w
//
// In the second form, each device gets the totals of all shards, but only for its own part of the columns.
#include "shardwise/base/error.h"
#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/build/reduce_window.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/partitioning/addends.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"
#include "shardwise/ops/shared/windows.h"
#include "shardwise/ops/window/cumulative_rows.h"
#include "shardwise/ops/window/reduce_window.h"

namespace shardwise {
namespace {

// The program must be the same text for every number of devices. So these ops are emitted even if they change nothing,
// as where a shard has one row.

enum class Totals : uint8_t { kGathered, kByColumns, kPassedOn };

// The exclusive scan of the totals of one dim's shards.
class TotalsScan {
 public:
  TotalsScan(PartitionContext& context, Totals form, Reducer reducer, size_t dim, Prefix prefix)
      : context_(context),
        builder_(context.builder()),
        form_(form),
        reducer_(reducer),
        dim_(dim),
        layout_(context.result_layout(0).dim(dim)),
        prefix_(prefix) {}

  // `totals` and the result have one row along the dim.
  ValueId run(ValueId totals) {
    const TensorType type = builder_.module().type(totals);
    neutral_ = neutral_element(reducer_, type.dtype);
    if (form_ == Totals::kGathered) return by_gathering(totals);
    if (form_ == Totals::kPassedOn) return by_chain(totals);
    return by_columns(totals, ceil_div(type.size(), layout_.shards));
  }

 private:
  ValueId explained(ValueId collective) { return context_.explain(collective, static_cast<int64_t>(dim_)); }

  ValueId by_gathering(ValueId totals) {
    const ValueId all = explained(create_all_gather(builder_, context_.mesh(), totals, dim_, layout_.axes));
    const Dims shape = builder_.module().type(all).shape;
    const auto dim = static_cast<int64_t>(dim_);
    // Not the own total: the rows of this shard have it already.
    const ValueId before =
        build_other_shards(builder_, context_.axis_index(layout_.axes), layout_.shards, prefix_ == Prefix::kForward);
    const ValueId mask = build_broadcast(builder_, before, shape, Dims{dim});
    const ValueId masked = builder_.create("stablehlo.select", {mask, all, build_splat(builder_, shape, neutral_)});
    const ValueId reduced = build_reduce(builder_, masked, {}, reducer_, Dims{dim});
    return build_reshape(builder_, reduced, builder_.module().type(totals).shape);
  }

  // Each device of a chain would round sums of narrow floats. So they travel as float32, and are rounded once, as the
  // other forms round them.
  ValueId passed_on(ValueId totals, int64_t step) {
    const DType dtype = builder_.module().type(totals).dtype;
    const bool is_rounded = is_float(dtype) && bit_width(dtype) < 32 && !is_idempotent(reducer_);
    const ValueId wide = is_rounded ? build_convert(builder_, totals, DType::kF32) : totals;
    const ValueId before = explained(create_chain(builder_, context_.mesh(), wide, layout_.axes, step, reducer_));
    return is_rounded ? build_convert(builder_, before, dtype) : before;
  }

  ValueId by_chain(ValueId totals) {
    const bool forward = prefix_ == Prefix::kForward;
    const ValueId before = passed_on(totals, forward ? 1 : -1);
    const ValueId own = context_.axis_index(layout_.axes);
    const DType dtype = builder_.module().type(own).dtype;
    const ValueId end = build_scalar(builder_, scalar_of(dtype, forward ? 0 : layout_.shards - 1));
    const Dims shape = builder_.module().type(totals).shape;
    // The chain gives zeros to the device where it begins; they are not neutral for every reducer.
    const ValueId is_end = build_broadcast(builder_, build_compare(builder_, "EQ", own, end), shape, {});
    return builder_.create("stablehlo.select", {is_end, build_splat(builder_, shape, neutral_), before});
  }

  ValueId by_columns(ValueId totals, int64_t columns) {
    const TensorType type = builder_.module().type(totals);
    // 5 columns on 4 shards are 2 columns each, 3 of which are padding. [1, 8] on each device becomes [4, 2]: the
    // totals of all shards, for 2 columns.
    const int64_t count = type.size(), whole = columns * layout_.shards;
    const ValueId zero = build_scalar(builder_, scalar_of(type.dtype, 0));
    const ValueId row = build_reshape(builder_, totals, Dims{1, count});
    const ValueId padded = create_pad(builder_, row, zero, Dims{0, 0}, Dims{0, whole - count});
    const ValueId all = exchanged(padded, 0, 1);
    const ValueId scanned = build_prefix(builder_, without_own(all), reducer_, 0, prefix_);
    const ValueId back = exchanged(scanned, 1, 0);
    return build_reshape(builder_, create_slice(builder_, back, Dims{0, 0}, Dims{1, count}), type.shape);
  }

  ValueId exchanged(ValueId value, int64_t from_dim, int64_t to_dim) {
    const AllToAllMove move{layout_.axes, from_dim, to_dim};
    return explained(create_all_to_all(builder_, context_.mesh(), value, {&move, 1}));
  }

  // Replaces each row by the one before it, which makes the scan exclusive.
  ValueId without_own(ValueId rows) {
    const TensorType type = builder_.module().type(rows);
    const ValueId first = build_splat(builder_, Dims{1, type.shape[1]}, neutral_);
    if (prefix_ == Prefix::kForward) {
      return build_concatenate(builder_, {first, rows_between(builder_, rows, 0, 0, type.shape[0] - 1)}, 0);
    }
    return build_concatenate(builder_, {rows_between(builder_, rows, 0, 1, type.shape[0]), first}, 0);
  }

  PartitionContext& context_;
  Builder& builder_;
  Totals form_;
  Reducer reducer_;
  size_t dim_;
  DimLayout layout_;
  Prefix prefix_;
  Scalar neutral_;
};

// Sums and products count the init value once for each padding element, so it can be combined with the rows only if it
// is neutral. Otherwise its contribution is computed separately. It depends on the position in the windowed dims alone,
// and each device takes its slice.
ValueId own_init_share(PartitionContext& context, Reducer reducer, const Window& window, DType wide) {
  Builder& builder = context.builder();
  const LayoutView layout = context.result_layout(0);
  const auto ndim = layout.ndim();
  Dims from = context.op().operand_type(0).shape, local = layout.local_shape(), high(ndim, 0);
  std::vector<ValueId> starts(ndim);
  for (size_t dim = 0; dim < ndim; ++dim) {
    const DimLayout side = layout.dim(dim);
    if (window.is_trivial(dim)) from[dim] = local[dim] = 1;
    const bool own = !window.is_trivial(dim) && !side.axes.empty();
    // Past the end, so that the slice of the last shard is not clamped to begin earlier.
    if (own) high[dim] = side.block * side.shards - side.size;
    starts[dim] = own ? build_convert(builder, context.shard_offset(side), DType::kI64)
                      : build_scalar(builder, scalar_of(DType::kI64, 0));
  }
  const ValueId init = build_convert(builder, counted_once(context, 1, layout.unreduced(), reducer), wide);
  const ValueId share = build_init_share(builder, init, reducer, window, from);
  const ValueId slice =
      build_dynamic_slice(builder, build_pad(builder, share, init, Dims(ndim, 0), high), starts, local);
  return repeated_row(builder, slice, layout.local_shape());
}

void partition_cumulative(PartitionContext& context, Totals form) {
  Builder& builder = context.builder();
  const OpView op = context.op();
  const Window window = Window::of(op);
  const Reducer reducer = required_reducer(op);
  const DType dtype = op.operand_type(0).dtype;
  const DType wide = reducer == Reducer::kSum ? wide_addend(dtype) : dtype;  // of the totals
  const LayoutView layout = context.result_layout(0);
  Window local = window;
  Dims sharded;
  ValueId operand = context.operand(0);
  for (size_t dim = 0; dim < layout.ndim(); ++dim) {
    if (window.is_trivial(dim) || layout.axes(dim).empty()) continue;
    const Prefix prefix = window.prefix(dim, layout.dim(dim).size);
    check_internal(prefix != Prefix::kNone, "a sharded window must have the prefix form");
    operand = context.masked_operand(0, context.rule().dim(0, dim)[0], neutral_element(reducer, dtype));
    local.set_prefix(dim, layout.block(dim), prefix);
    sharded.push_back(static_cast<int64_t>(dim));
  }
  const std::optional<Scalar> known = splat_value(op.module(), op.operand(1));
  const bool apart = !is_idempotent(reducer) && !(known && is_neutral(reducer, *known));
  const ValueId init =
      apart ? build_scalar(builder, neutral_element(reducer, wide)) : build_convert(builder, context.operand(1), wide);
  ValueId value = build_reduce_window(builder, build_convert(builder, operand, wide), init, reducer, local);
  for (int64_t entry : sharded) {
    const auto dim = static_cast<size_t>(entry);
    const Prefix prefix = window.prefix(dim, layout.dim(dim).size);
    const int64_t block = layout.block(dim);
    // Padding was neutral, so the last row of a block has its total even where the block is not full. One dim after the
    // other: the prefixes along several dims commute.
    const int64_t last = prefix == Prefix::kForward ? block - 1 : 0;
    const Dims shape = builder.module().type(value).shape;
    if (element_count(shape) == 0) break;
    const ValueId totals = rows_between(builder, value, dim, last, last + 1);
    const ValueId before = TotalsScan(context, form, reducer, dim, prefix).run(totals);
    value = builder.create(reducer_op_name(reducer), {repeated_row(builder, before, shape), value});
  }
  if (apart) value = builder.create(reducer_op_name(reducer), {own_init_share(context, reducer, window, wide), value});
  context.set_result(0, build_convert(builder, value, dtype), result_padding(layout));
}

}  // namespace

ValueId rows_between(Builder& builder, ValueId value, size_t dim, int64_t start, int64_t limit) {
  Dims limits = builder.module().type(value).shape, starts(limits.size(), 0);
  starts[dim] = start;
  limits[dim] = limit;
  return create_slice(builder, value, starts, limits);
}

ValueId repeated_row(Builder& builder, ValueId row, const Dims& shape) {
  return builder.create("stablehlo.broadcast_in_dim", {row},
                        Attrs{{"broadcast_dimensions", identity_dims(static_cast<int64_t>(shape.size()))}},
                        {builder.context().tensor(builder.module().type(row).dtype, shape)});
}

ValueId build_other_shards(Builder& builder, ValueId own, int64_t shards, bool before) {
  const Dims row{shards};
  const ValueId place = build_broadcast(builder, own, row, {});
  const ValueId index = build_iota(builder, builder.module().type(place).dtype, row, 0);
  return build_compare(builder, before ? "LT" : "GT", index, place);
}

void partition_by_gathered_totals(PartitionContext& context) {
  if (!op_reducer(context.op())) return partition_region_by_gathered_totals(context);
  partition_cumulative(context, Totals::kGathered);
}

void partition_by_totals(PartitionContext& context) {
  if (!op_reducer(context.op())) return partition_region_by_totals(context);
  partition_cumulative(context, Totals::kByColumns);
}

void partition_by_chain(PartitionContext& context) { partition_cumulative(context, Totals::kPassedOn); }

}  // namespace shardwise
