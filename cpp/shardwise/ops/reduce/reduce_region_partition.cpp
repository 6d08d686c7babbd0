// SPDX-License-Identifier: Apache-2.0
//
// Partitions reduce with a region that no collective supports, over a sharded dim: argmax of 8 x 64 rows, dim 1 on x =
// 8
//
//   %v, %i = stablehlo.reduce(%x, %iota) across dimensions = [1]           8 rows, each device has one winner per row
//   %3 = "shardwise.all_to_all"(pad %v) {"x" from dim 0 to dim 1}          1 x 8 -> 8 x 1: all winners of one row
//   %5, %6 = stablehlo.reduce(%3, %4) across dimensions = [0]              in the order of the shards
//   %7 = "shardwise.all_gather"(%6) {"x" on dim 0}                         8 rows
//
// When splitting the rows saves nothing (a scalar result), an all_gather of the partial results replaces the first
// step: that is a method of its own.
//
// Elements are combined in the order of their indices: dims from the last to the first, shards major to minor. Padding
// of uneven dims must not count. For argmax, padding is a neutral pair; other regions are counted (build/regions.h).
// With the flag, init values count once (for pairs, counting them more often changes nothing).
#include <algorithm>
#include <optional>

#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/regions.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/reduce/reduce.h"
#include "shardwise/ops/shared/combiner_regions.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/reducers.h"

namespace shardwise {
namespace {

using Values = std::vector<ValueId>;

// How the partial results are split, so that each device combines a part of them. The dim is padded to a multiple of
// the shards. Without `stays`, all dims are flattened to one, and the results are gathered.
struct Split {
  size_t dim = 0;
  bool stays = false;  // the results keep this sharding
  int64_t padding = 0;
};

class PartialResults {
 public:
  PartialResults(PartitionContext& context, bool splits)
      : context_(context),
        splits_(splits),
        builder_(context.builder()),
        op_(context.op()),
        pairs_(region_argument_reducer(op_.module(), op_.regions()[0])),
        dims_(ascending(dims_attr(op_, "dimensions"))) {}

  void run() {
    for (size_t i = 0; i < op_.result_count(); ++i) values_.push_back(operand(i));
    if (reduces_nothing()) {
      const Dims shape = context_.result_layout(0).local_shape();
      for (size_t i = 0; i < values_.size(); ++i) values_[i] = build_broadcast(builder_, init(i), shape, {});
    } else {
      // The last dim first, to keep the order of elements. Unsharded dims are reduced together with the dim before
      // them.
      Dims together;
      for (size_t k = dims_.size(); k-- > 0;) {
        together.insert(together.begin(), dims_[k]);
        const DimLayout layout = context_.operand_layout(0).dim(static_cast<size_t>(dims_[k]));
        const bool is_last = k == 0, is_sharded = layout.shards > 1;
        if (!is_sharded && !is_last) continue;
        values_ = reduce(values_, together, rows_inside(together), is_last && !is_sharded);
        if (is_sharded) combine_shards(layout, dims_[k], is_last);
        together.clear();
      }
    }
    for (size_t i = 0; i < values_.size(); ++i) {
      context_.set_result(i, values_[i], result_padding(context_.result_layout(i)));
    }
  }

 private:
  const TensorType& type(ValueId value) const { return builder_.module().type(value); }
  Dims shape() const { return type(values_[0]).shape; }
  ValueId init(size_t i) { return context_.operand(op_.result_count() + i); }

  bool reduces_nothing() const {
    return std::any_of(dims_.begin(), dims_.end(),
                       [&](int64_t dim) { return op_.operand_type(0).shape[static_cast<size_t>(dim)] == 0; });
  }

  Scalar neutral(size_t i) const {
    const Reducer reducer = i == 0 ? *pairs_ : Reducer::kMin;
    return neutral_element(reducer, op_.operand_type(i).dtype);
  }

  ValueId operand(size_t i) {
    ValueId value = context_.operand(i);
    for (const int64_t dim : dims_) {
      if (pairs_) value = context_.masked_operand(i, context_.rule().dim(i, static_cast<size_t>(dim))[0], neutral(i));
    }
    return value;
  }

  // ---- what counts ----

  // Which of `count` blocks or rows are inside the dim: first + i * step < size. Shape {count}.
  ValueId before_end(ValueId first, int64_t count, int64_t step, int64_t size) {
    const DType dtype = first ? type(first).dtype : DType::kI64;
    const auto number = [&](int64_t value) { return build_splat(builder_, Dims{count}, Scalar::of_int(dtype, value)); };
    ValueId index = build_iota(builder_, dtype, Dims{count}, 0);
    index = builder_.create("stablehlo.multiply", {index, number(step)});
    if (first) index = builder_.create("stablehlo.add", {index, build_broadcast(builder_, first, Dims{count}, {})});
    return build_compare(builder_, "LT", index, number(size));
  }

  // Which of this device's elements along the dims are not padding; none when all are data.
  ValueId rows_inside(const Dims& dims) {
    ValueId inside;
    for (const int64_t dim : dims) {
      const DimLayout layout = context_.operand_layout(0).dim(static_cast<size_t>(dim));
      if (pairs_ || !layout.uneven()) continue;
      const ValueId rows = before_end(context_.shard_offset(layout), layout.block, 1, layout.size);
      const ValueId all = build_broadcast(builder_, rows, shape(), Dims{dim});
      inside = inside ? builder_.create("stablehlo.and", {inside, all}) : all;
    }
    return inside;
  }

  ValueId flag(const Dims& shape, bool value) {
    return build_splat(builder_, shape, Scalar::of_int(DType::kBool, value ? 1 : 0));
  }

  // `inside` marks the elements that count; without it, all do. The init values count in the last reduction only.
  Values reduce(const Values& values, const Dims& dims, ValueId inside, bool is_last) {
    Values operands = values;
    // The init values count only in the last reduction; in those before it, a false flag keeps them out.
    const bool counted = !pairs_ && (inside || !is_last);
    if (counted) operands.push_back(inside ? inside : flag(type(values[0]).shape, true));
    for (size_t i = 0; i < values.size(); ++i) operands.push_back(init(i));
    if (counted) operands.push_back(flag({}, is_last));
    Values results = build_region_reduce(builder_, op_.module(), op_.regions()[0], operands, dims, counted);
    results.resize(values.size());  // without the flag
    return results;
  }

  // ---- the devices' partial results ----

  // Returns none if all partial results are gathered. The reduced dims from `first` on are already dropped.
  std::optional<Split> split_for(int64_t shards, int64_t first) const {
    const Dims shape = this->shape();
    const Dims kept = other_dims(op_.operand_type(0).ndim(), dims_);
    for (size_t r = 0; r < kept.size(); ++r) {
      const DimLayout layout = context_.result_layout(0).dim(r);
      // A kept dim that has more axes in the result than in the operand takes the reduced axes, too.
      if (layout.axes == context_.operand_layout(0).axes(static_cast<size_t>(kept[r]))) continue;
      const auto is_gone = [&](int64_t dim) { return dim >= first && dim < kept[r]; };
      const auto dim = static_cast<size_t>(kept[r] - std::count_if(dims_.begin(), dims_.end(), is_gone));
      return Split{.dim = dim, .stays = true, .padding = layout.block * shards - shape[dim]};
    }
    const int64_t size = element_count(shape);
    if (!splits_ || size == 0) return std::nullopt;
    return Split{.padding = ceil_div(size, shards) * shards - size};
  }

  void combine_shards(const DimLayout& layout, int64_t dim, bool is_last) {
    const Dims whole = shape();
    const std::optional<Split> split = split_for(layout.shards, dim);
    if (split && !split->stays) flatten();
    if (split) pad(split->dim, split->padding);
    for (ValueId& value : values_) {
      // One row per shard: the collective makes them the rows of a leading dim, in the order of the shards.
      value = build_reshape(builder_, value, with_leading(1, shape_of(value)));
      if (split) {
        const AllToAllMove move{layout.axes, 0, static_cast<int64_t>(split->dim) + 1};
        value = context_.explain(create_all_to_all(builder_, context_.mesh(), value, {&move, 1}), dim);
      } else {
        value = context_.explain(create_all_gather(builder_, context_.mesh(), value, 0, layout.axes), dim);
      }
    }
    ValueId inside;
    if (!pairs_ && layout.uneven()) {  // the last shards may be empty
      const ValueId shards = before_end({}, layout.shards, layout.block, layout.size);
      inside = build_broadcast(builder_, shards, shape(), Dims{0});
    }
    values_ = reduce(values_, Dims{0}, inside, is_last);
    if (!split || split->stays) return;
    for (ValueId& value : values_) {
      value = context_.explain(create_all_gather(builder_, context_.mesh(), value, split->dim, layout.axes), dim);
      value = build_reshape(builder_, create_slice(builder_, value, Dims{0}, Dims{element_count(whole)}), whole);
    }
  }

  Dims shape_of(ValueId value) const { return type(value).shape; }

  void flatten() {
    const Dims size{element_count(shape())};
    for (ValueId& value : values_) value = build_reshape(builder_, value, size);
  }

  void pad(size_t dim, int64_t count) {
    const Dims low(shape().size(), 0);
    Dims high = low;
    high[dim] = count;
    for (size_t i = 0; i < values_.size(); ++i) values_[i] = create_pad(builder_, values_[i], init(i), low, high);
  }

  PartitionContext& context_;
  bool splits_;
  Builder& builder_;
  OpView op_;
  std::optional<Reducer> pairs_;
  Dims dims_;
  Values values_;
};

}  // namespace

void combine_partial_results(PartitionContext& context) { PartialResults(context, true).run(); }

void combine_gathered_results(PartitionContext& context) { PartialResults(context, false).run(); }

}  // namespace shardwise
