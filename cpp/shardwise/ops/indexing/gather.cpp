// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/slicing.h"
#include "shardwise/ops/indexing/index_checks.h"
#include "shardwise/ops/indexing/index_values.h"
#include "shardwise/ops/indexing/indexing.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// ---- infer ---------------------------------------------------------------------------------------------------------

void expect_slices(const InferContext& op, const Indexing& indexing) {
  const Dims& slice = indexing.slice;
  expect_length(op, "slice_sizes", slice, static_cast<int64_t>(indexing.operand.size()));
  for (size_t dim = 0; dim < slice.size(); ++dim) {
    const auto d = static_cast<int64_t>(dim);
    const bool single = contains_dim(indexing.dims.collapsed, d) || contains_dim(indexing.dims.operand_batching, d);
    if (slice[dim] >= 0 && slice[dim] <= (single ? std::min<int64_t>(indexing.operand[dim], 1) : indexing.operand[dim]))
      continue;
    op.fail_shape("a slice must not be larger than the operand, and of size 1 in collapsed and batching dims",
                  str("slice_sizes = ", slice, " for ", op.operand_types_text()), "make the slice smaller");
  }
}

// Clamping needs at least one valid index.
void expect_something_to_read(const InferContext& op, const Indexing& indexing) {
  if (element_count(indexing.out) == 0) return;
  expect_shape(op, element_count(indexing.slice) > 0, "a dim that is indexed must have elements",
               "gather nothing from it");
}

}  // namespace

void infer_gather(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  op.attr<StructAttr>("dimension_numbers");
  Indexing indexing{
      gather_dims(op.attrs()), op.operand(0).shape, op.operand(1).shape, {}, op.attr<IntArray>("slice_sizes")};
  expect_dtype(op, is_integer(op.operand(1).dtype), "indices must be integers", "convert them first");
  expect_indexing(op, indexing, kGatherNames);
  expect_slices(op, indexing);
  const Dims window = indexing.window_dims(), batch = batch_sizes(indexing);
  indexing.out.assign(window.size() + batch.size(), 0);
  const auto ndim = static_cast<int64_t>(indexing.out.size());
  expect_dims(op, "offset_dims", indexing.dims.offset, ndim);
  for (size_t i = 0; i < window.size(); ++i) {
    indexing.out[static_cast<size_t>(indexing.dims.offset[i])] = indexing.slice[static_cast<size_t>(window[i])];
  }
  const Dims batch_dims = indexing.batch_dims();
  for (size_t i = 0; i < batch.size(); ++i) indexing.out[static_cast<size_t>(batch_dims[i])] = batch[i];
  expect_something_to_read(op, indexing);
  results.push_back(result_or_declared(op, {op.operand(0).dtype, indexing.out}));
}

// ---- rule ----------------------------------------------------------------------------------------------------------

void map_index_vector(RuleBuilder& rule, size_t indices, const Indexing& indexing) {
  const auto dim = static_cast<size_t>(indexing.dims.index_vector_dim);
  if (dim < indexing.indices.size()) rule.map(indices, dim, rule.need_replication(indexing.indices[dim]));
}

namespace {

void map_slice_dim(RuleBuilder& rule, const Indexing& indexing, size_t dim, size_t out_dim, Reducer reducer) {
  const int64_t size = indexing.operand[dim], slice = indexing.slice[dim];
  const size_t result = rule.result_tensor(0);
  if (slice == size) {
    // The only start at which a whole slice fits is 0, whatever the index is.
    const FactorId factor = rule.factor(size);
    rule.map(0, dim, factor).map(result, out_dim, factor);
  } else if (slice == 1) {
    // A device reads the row only if it has it, and contributes zero otherwise: a pending sum over the devices.
    rule.map(0, dim, rule.reduction(size, reducer));
    rule.map(result, out_dim, rule.need_replication(1));
  } else {
    // A slice may begin anywhere, so no shard has all rows of it. Blocked, because equal shards of the dim and of the
    // slice would hold different rows.
    const FactorId factor = rule.need_replication(size, true);
    rule.map(0, dim, factor).map(result, out_dim, factor);
  }
}

}  // namespace

std::vector<FactorId> gathered_factors(const OpView&, const ShardingRule& rule) {
  std::vector<FactorId> factors;
  for (size_t dim = 0; dim < rule.ndim(0); ++dim) {
    const FactorId factor = rule.dim(0, dim)[0];
    if (rule.factors()[factor].kind == FactorKind::kReduction) factors.push_back(factor);
  }
  return factors;
}

std::vector<FactorId> factors_of_read_windows(const OpView& op, const ShardingRule& rule) {
  const Indexing indexing = gather_indexing(op);
  std::vector<FactorId> factors;
  for (const int64_t dim : indexing.window_dims()) {
    const FactorId factor = rule.dim(0, static_cast<size_t>(dim))[0];
    const bool is_at_index = rule.factors()[factor].kind == FactorKind::kNeedReplication && indexing.component(dim);
    if (is_at_index) factors.push_back(factor);
  }
  return factors;
}

ShardingRule rule_gather(const OpView& op) {
  RuleBuilder rule(op);
  const Indexing indexing = gather_indexing(op);
  const IndexingDims& dims = indexing.dims;
  const Reducer reducer = reducer_of_parts(op.result_type().dtype);
  const Dims window = indexing.window_dims(), indices_dims = indexing.indices_dims();
  size_t slice_dim = 0, batch_dim = 0;
  for (size_t out_dim = 0; out_dim < indexing.out.size(); ++out_dim) {
    if (contains_dim(dims.offset, static_cast<int64_t>(out_dim))) {
      map_slice_dim(rule, indexing, static_cast<size_t>(window[slice_dim++]), out_dim, reducer);
      continue;
    }
    const int64_t indices_dim = indices_dims[batch_dim++];
    const FactorId factor = rule.factor(indexing.out[out_dim]);
    rule.map(1, static_cast<size_t>(indices_dim), factor).map(rule.result_tensor(0), out_dim, factor);
    // A batching dim has the same index in operand, indices and result.
    if (const std::optional<size_t> paired = indexing.paired(indices_dim)) rule.map(0, *paired, factor);
  }
  for (const int64_t dim : dims.collapsed) {
    const int64_t size = indexing.operand[static_cast<size_t>(dim)];
    rule.map(0, static_cast<size_t>(dim), size == 1 ? rule.need_replication(size) : rule.reduction(size, reducer));
  }
  map_index_vector(rule, 1, indexing);
  return rule.build();
}

// ---- partition -----------------------------------------------------------------------------------------------------

namespace {

// A gather whose operand is sharded along dims of which it reads one row per index, or a window.
class SplitGather {
 public:
  SplitGather(PartitionContext& context, Indexing indexing)
      : context_(context), builder_(context.builder()), indexing_(std::move(indexing)) {
    const LayoutView layout = context.operand_layout(0);
    for (size_t dim = 0; dim < layout.ndim(); ++dim) {
      const FactorKind kind = context.rule().factors()[context.rule().dim(0, dim)[0]].kind;
      const bool is_shared = kind == FactorKind::kReduction || kind == FactorKind::kNeedReplication;
      if (is_shared && !layout.axes(dim).empty()) split_.push_back(dim);
    }
  }

  bool is_split() const { return !split_.empty(); }

  // The rows of this device between margins of neutral elements, as large as the window, which other devices have.
  ValueId with_margins(ValueId operand, Scalar neutral) const {
    Dims margins(indexing_.operand.size(), 0);
    for (const size_t dim : split_) margins[dim] = margin(dim);
    return build_pad(builder_, operand, build_scalar(builder_, neutral), margins, margins);
  }

  // Computes indices relative to this device's rows, and for each index whether these rows contain it.
  void localize(ValueId& indices, ValueId& inside) {
    const IndexingDims& dims = indexing_.dims;
    Dims limits = start_limits(indexing_);
    std::vector<ValueId> offsets(limits.size());
    bool has_component = false;
    // Signed, because an index before the first row of the shard becomes negative.
    DType dtype = DType::kI32;
    for (const size_t dim : split_) {
      const DimLayout layout = context_.operand_layout(0).dim(dim);
      const ValueId offset = context_.shard_offset(layout);
      if (builder_.module().type(offset).dtype == DType::kI64) dtype = DType::kI64;
      const std::optional<size_t> component = indexing_.component(static_cast<int64_t>(dim));
      if (component) {
        offsets[*component] = build_less(offset, margin(dim));
        // Relative to the shard: rows of other devices are below 0 or above this.
        limits[*component] = margin(dim) == 0 ? layout.block - 1 : layout.block + margin(dim);
        has_component = true;
      } else {
        combine(inside, is_zero(offset));  // without an index component, row 0 is read
      }
    }
    if (!has_component) return;
    for (const int64_t limit : start_limits(indexing_)) {
      // The indices are clamped to global limits before they are shifted, so the dtype must hold these limits.
      if (limit > std::numeric_limits<int32_t>::max()) dtype = DType::kI64;
    }
    indices = build_convert(builder_, build_clamped_indices(builder_, indices, indexing_), dtype);
    for (ValueId& offset : offsets) {
      offset = offset ? build_convert(builder_, offset, dtype) : build_scalar(builder_, scalar_of(dtype, 0));
    }
    indices = build_shifted(builder_, indices, dims, offsets);
    const ValueId mine = build_inside(builder_, indices, dims, limits);
    inside = inside ? build_broadcast(builder_, inside, builder_.module().type(mine).shape, {}) : inside;
    combine(inside, mine);
  }

 private:
  bool reads_window(size_t dim) const {
    return context_.rule().factors()[context_.rule().dim(0, dim)[0]].kind == FactorKind::kNeedReplication;
  }
  int64_t margin(size_t dim) const { return reads_window(dim) ? indexing_.slice[dim] : 0; }
  ValueId build_less(ValueId scalar, int64_t number) {
    if (number == 0) return scalar;
    const DType dtype = builder_.module().type(scalar).dtype;
    return builder_.create("stablehlo.subtract", {scalar, build_scalar(builder_, scalar_of(dtype, number))});
  }
  ValueId is_zero(ValueId scalar) {
    return build_compare(builder_, "EQ", scalar, build_zeros(builder_, builder_.module().type(scalar)));
  }
  void combine(ValueId& all, ValueId one) { all = all ? builder_.create("stablehlo.and", {all, one}) : one; }

  PartitionContext& context_;
  Builder& builder_;
  Indexing indexing_;
  std::vector<size_t> split_;
};

Dims local_slice(const Indexing& global, DimSpan local_operand) {
  Dims slice = global.slice;
  for (const int64_t dim : global.window_dims()) {
    const auto d = static_cast<size_t>(dim);
    // A whole dim of the slice is whole for the shard as well.
    if (slice[d] == global.operand[d]) slice[d] = local_operand[d];
  }
  return slice;
}

GatherOptions options_of(const OpView& op) { return {.indices_are_sorted = is_set(op.attrs(), "indices_are_sorted")}; }

}  // namespace

void partition_gather(PartitionContext& context) {
  const OpView op = context.op();
  Builder& builder = context.builder();
  const Indexing global = gather_indexing(op);
  SplitGather split(context, global);
  // -0, so that adding the other devices' values preserves a zero's sign.
  const DType dtype = op.result_type().dtype;
  const Scalar nothing = exact_neutral(reducer_of_parts(dtype), dtype);
  const ValueId operand = split.with_margins(context.operand(0), nothing);
  ValueId indices = context.operand(1), inside;
  if (split.is_split()) split.localize(indices, inside);
  const Dims slice = local_slice(global, context.operand_layout(0).local_shape());
  // Indices relative to a shard are clamped separately, which may change their order.
  const GatherOptions options = split.is_split() ? GatherOptions{} : options_of(op);
  ValueId result = build_gather(builder, operand, indices, global.dims, slice, options);
  if (split.is_split()) {
    const TensorType type = builder.module().type(result);
    const bool one_for_all = builder.module().type(inside).ndim() == 0;
    const ValueId mask = one_for_all ? build_broadcast(builder, inside, type.shape, {})
                                     : build_out_mask(builder, inside, global, type.shape);
    result = builder.create("stablehlo.select", {mask, result, build_splat(builder, type.shape, nothing)});
  }
  context.set_result(0, result, result_padding(context.result_layout(0)));
}

// What the devices have of each window adds up to it.
void placements_of_read_windows(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                                std::vector<OpPlacement>& found) {
  OpPlacement placement = placement_by_rule(rule, axes);
  const std::vector<FactorId> windows = factors_of_read_windows(op, rule);
  const size_t result = rule.result_tensor(0);
  for (size_t dim = 0; dim < rule.ndim(result); ++dim) {
    const auto factors = rule.dim(result, dim);
    if (factors.size() != 1 || std::ranges::find(windows, factors[0]) == windows.end()) continue;
    AxisList& own = placement.tensors[result][dim];
    placement.unreduced.insert(placement.unreduced.end(), own.begin(), own.end());
    own.clear();
  }
  placement.unreduced = sort_and_merge(placement.unreduced);
  placement.reducer = reducer_of_parts(op.result_type().dtype);
  found.push_back(std::move(placement));
}

// ---- vjp and batch -------------------------------------------------------------------------------------------------

void vjp_gather(VjpContext& context) {
  if (!context.needs(0)) return;
  Builder& builder = context.builder();
  const Indexing indexing = gather_indexing(context.op());
  const ValueId zeros = build_zeros(builder, context.op().operand_type(0));
  // gather clamps its indices, but scatter drops updates that are out of bounds.
  const ValueId indices = build_clamped_indices(builder, context.operand(1), indexing);
  context.set(0, build_scatter(builder, zeros, indices, context.cotangent(), indexing.dims, {Reducer::kSum}));
}

void batch_gather(BatchContext& context) {
  const Indexing indexing = gather_indexing(context.op());
  const bool operand = context.is_batched(0), indices = context.is_batched(1);
  Dims slice = indexing.slice;
  // Both batched: the new dim is a batching dim, with slices of 1. The operand alone: each index reads all examples.
  if (operand) slice.insert(slice.begin(), indices ? std::min<int64_t>(context.size(), 1) : context.size());
  const GatherOptions options{.indices_are_sorted = !indices && options_of(context.op()).indices_are_sorted};
  context.set_result(0, build_gather(context.builder(), context.operand(0), context.operand(1),
                                     with_leading_batch(indexing.dims, operand, indices), slice, options));
}

}  // namespace shardwise
