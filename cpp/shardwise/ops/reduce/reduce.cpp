// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/reduce/reduce.h"

#include <algorithm>

#include "shardwise/base/text.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/shared/combiner_regions.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/region_tiles.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

const Dims& reduced_dims(const OpView& op) { return op.attrs().get<IntArray>("dimensions"); }

Dims kept_dims(const OpView& op) { return other_dims(op.operand_type(0).ndim(), reduced_dims(op)); }

// ---- infer ---------------------------------------------------------------------------------------------------------

void infer_reduce(const InferContext& op, std::vector<TypeId>& results) {
  const size_t inputs = expect_reduction(op);
  expect_elementwise_region(op);
  const Dims& dims = op.attr<IntArray>("dimensions");
  const Dims& shape = op.operand(0).shape;
  expect_dims(op, "dimensions", dims, op.operand(0).ndim());
  const Dims kept = sizes_at(shape, other_dims(op.operand(0).ndim(), dims));
  for (size_t i = 0; i < inputs; ++i) results.push_back(result_or_declared(op, {op.operand(i).dtype, kept}, i));
}

// ---- rule and partition --------------------------------------------------------------------------------------------

ShardingRule rule_reduce(const OpView& op) {
  RuleBuilder rule(op);
  const size_t inputs = op.result_count();
  const Dims& dims = reduced_dims(op);
  const Dims& shape = op.operand_type(0).shape;
  // A region that is no reducer gets kNone: no collective combines its partial results, so the op has methods.
  const std::optional<Reducer> reducer = op_reducer(op);
  size_t result_dim = 0;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const bool reduced = contains_dim(dims, static_cast<int64_t>(dim));
    const FactorId factor =
        reduced ? rule.reduction(shape[dim], reducer.value_or(Reducer::kNone)) : rule.factor(shape[dim]);
    for (size_t i = 0; i < inputs; ++i) {
      rule.map(i, dim, factor);
      if (!reduced) rule.map(rule.result_tensor(i), result_dim, factor);
    }
    result_dim += reduced ? 0 : 1;
  }
  return rule.build();
}

// A sum of one element is the element: on a device that holds one row, the rows' sum is a view of it.
OpCost cost_reduce(const OpView& op, const LocalTypes& types) {
  const Dims& shape = types.operand(0).shape;
  const auto has_one = [&](int64_t dim) { return shape[static_cast<size_t>(dim)] == 1; };
  return std::ranges::all_of(reduced_dims(op), has_one) ? costs_nothing(op, types) : cost_by_rule(op, types);
}

void partition_reduce(PartitionContext& context) {
  const OpView op = context.op();
  const Dims dims = reduced_dims(op);
  const std::optional<Reducer> reducer = op_reducer(op);
  if (!reducer) return combine_partial_results(context);
  const Scalar neutral = neutral_element(*reducer, op.operand_type(0).dtype);
  ValueId operand = context.operand(0);
  for (int64_t dim : dims)
    operand = context.masked_operand(0, context.rule().dim(0, static_cast<size_t>(dim))[0], neutral);
  const ValueId init = counted_once(context, 1, context.result_layout(0).unreduced(), *reducer);
  const ValueId local = build_reduce(context.builder(), operand, init, *reducer, dims);
  context.set_result(0, local, result_padding(context.result_layout(0)));
}

// ---- methods -------------------------------------------------------------------------------------------------------

// No collective combines by an arbitrary region.
std::vector<FactorId> factors_without_collective(const OpView&, const ShardingRule& rule) {
  std::vector<FactorId> factors;
  for (size_t f = 0; f < rule.factors().size(); ++f) {
    const Factor& factor = rule.factors()[f];
    const bool combines = factor.kind == FactorKind::kReduction && factor.reducer == Reducer::kNone;
    if (combines) factors.push_back(static_cast<FactorId>(f));
  }
  return factors;
}

// The results are whole along the reduced axes.
void placements_of_gathered_results(const OpView&, const ShardingRule& rule, std::span<const AxisList> axes,
                                    std::vector<OpPlacement>& found) {
  found.push_back(placement_by_rule(rule, axes));
  found.back().unreduced.clear();
}

// The results are whole along the reduced axes, or split over them after the axes of one kept dim.
void placements_of_partial_results(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                                   std::vector<OpPlacement>& found) {
  placements_of_gathered_results(op, rule, axes, found);
  const OpPlacement whole = found.back();
  AxisList combined;
  size_t reduced = 0;
  for (const FactorId id : factors_without_collective(op, rule)) {
    reduced += axes[id].empty() ? 0 : 1;
    append_merged(combined, axes[id]);
  }
  // No single dim could hold the axes of two reduced factors.
  const size_t result = rule.result_tensor(0);
  for (size_t dim = 0; reduced == 1 && dim < rule.ndim(result); ++dim) {
    OpPlacement split = whole;
    AxisList& own = split.tensors[result][dim];
    const bool is_split = !own.empty();
    append_merged(own, combined);
    // The shards of an uneven dim do not subdivide the shards along its first axes.
    const int64_t size = op.result_type().shape[dim];
    if (size == 1 || (is_split && size % product(own) != 0)) continue;
    for (size_t i = 1; i < op.result_count(); ++i) split.tensors[result + i][dim] = own;
    found.push_back(std::move(split));
  }
}

// ---- vjp -----------------------------------------------------------------------------------------------------------

ValueId repeat_over_reduced(VjpContext& context, ValueId value) {
  const Dims shape = context.op().operand_type(0).shape;
  return build_broadcast(context.builder(), value, shape, kept_dims(context.op()));
}

// The gradient goes to the elements that equal the maximum, and ties share it evenly. The init value counts as an
// element.
void vjp_extremum(VjpContext& context, Reducer reducer) {
  Builder& builder = context.builder();
  const OpView op = context.op();
  const Dims dims = reduced_dims(op);
  const ValueId hit =
      build_equal_as_number(builder, context.operand(0), repeat_over_reduced(context, context.result()));
  ValueId count = build_reduce(builder, hit, {}, Reducer::kSum, dims);
  const std::optional<Scalar> init = splat_value(op.module(), op.operand(1));
  ValueId init_hit;
  // A neutral init value cannot be the maximum, so it needs no share.
  if (!init || !is_neutral(reducer, *init) || context.needs(1)) {
    const ValueId repeated = build_broadcast(builder, context.operand(1), op.result_type().shape, {});
    init_hit = build_equal_as_number(builder, repeated, context.result());
    count = builder.create("stablehlo.add", {count, init_hit});
  }
  const ValueId share = builder.create("stablehlo.divide", {context.cotangent(), count});
  if (context.needs(0)) {
    context.set(0, builder.create("stablehlo.multiply", {hit, repeat_over_reduced(context, share)}));
  }
  if (context.needs(1)) {
    context.set(1, build_sum_of_all(builder, builder.create("stablehlo.multiply", {init_hit, share})));
  }
}

void vjp_sum(VjpContext& context) {
  if (context.needs(0)) context.set(0, repeat_over_reduced(context, context.cotangent()));
  if (context.needs(1)) context.set(1, build_sum_of_all(context.builder(), context.cotangent()));
}

void vjp_reduce(VjpContext& context) {
  const std::optional<Reducer> reducer = op_reducer(context.op());
  if (!reducer) return vjp_reduce_region(context);
  switch (*reducer) {
    case Reducer::kSum: return vjp_sum(context);
    case Reducer::kMax: return vjp_extremum(context, Reducer::kMax);
    case Reducer::kMin: return vjp_extremum(context, Reducer::kMin);
    case Reducer::kProd: return vjp_product(context, reduced_dims(context.op()));
    default: return not_differentiable(context);  // and, or: of integers
  }
}

// A batched init value cannot be the scalar init of the batched op, so it is combined with the results.
void batch_reduce(BatchContext& context) {
  const OpView op = context.op();
  const std::optional<Reducer> known = op_reducer(op);
  if (!known) return batch_reduce_region(context);
  const Reducer reducer = *known;
  Builder& builder = context.builder();
  const Dims dims = shifted(reduced_dims(op));
  if (!context.is_batched(1)) {
    return context.set_result(0, build_reduce(builder, context.operand(0), context.operand(1), reducer, dims));
  }
  const Dims shape = with_leading(context.size(), op.result_type().shape);
  const ValueId reduced = build_reduce(builder, context.batched(0), {}, reducer, dims);
  const ValueId init = build_broadcast(builder, context.operand(1), shape, Dims{0});
  context.set_result(0, builder.create(reducer_op_name(reducer), {init, reduced}));
}

// A sum distributes over a pending sum, a maximum over a pending maximum. The caller compares the reducer of the
// pending operand with that of the rule.
constexpr Method kReduceMethods[] = {
    {"partial results", factors_without_collective, placements_of_partial_results, combine_partial_results},
    {"gathered partial results", factors_without_collective, placements_of_gathered_results, combine_gathered_results}};

constexpr OpDef kReduceOps[] = {
    {.name = "stablehlo.reduce",
     .infer = infer_reduce,
     .rule = rule_reduce,
     .partition = partition_reduce,
     .methods = kReduceMethods,
     .prepare = prepare_reduce,
     .cost = cost_reduce,
     .vjp = vjp_reduce,
     .batch = batch_reduce,
     .linear = {Linear::kFirst, kAllReducers},
     .regions = Regions::kCombiner,
     .addends = Addends::kWideOperands,
     .verify_runnable = verify_region_tiles,
     .format = "custom<reduce>",
     .doc = "Combines the elements along dims (StableHLO reduce)."},
};
static_assert(all_complete(kReduceOps));

}  // namespace

std::span<const OpDef> reduce_ops() { return kReduceOps; }

}  // namespace shardwise
