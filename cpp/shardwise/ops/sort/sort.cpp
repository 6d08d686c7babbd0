// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/sort/sort.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/partitioning/moved_axes.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/operation_counts.h"
#include "shardwise/ops/shared/region_tiles.h"
#include "shardwise/ops/sort/comparators.h"

namespace shardwise {
namespace {

void expect_comparator(const InferContext& op) {
  op.expect_regions(1);
  const Module& module = op.module();
  const Region& region = module.region(op.regions()[0]);
  const bool fits = region.arguments.size() == 2 * op.operand_count() &&
                    compares_scalars(module, region, [&](size_t i) { return op.operand(i).dtype; });
  expect_dtype(op, fits, "the region must compare two scalars of each operand", "return an i1");
}

void infer_sort(const InferContext& op, std::vector<TypeId>& results) {
  if (op.operand_count() == 0) op.fail_shape("must have operands");
  const int64_t ndim = op.operand(0).ndim();
  if (op.attrs().find("dimension") != nullptr) op.attr<IntAttr>("dimension");
  const int64_t dim = sorted_dim(op.attrs(), ndim);
  if (dim < 0 || dim >= ndim) {
    op.fail_shape("dimension must be a dim of the operands, or count from the end",
                  str("dimension = ", dim, " for ", op.operand_types_text()));
  }
  expect_same_shapes(op);
  expect_comparator(op);
  for (size_t i = 0; i < op.operand_count(); ++i) results.push_back(result_or_declared(op, op.operand(i), i));
}

// When there is no other dim to shard, the sorted dim does not propagate its sharding.
ShardingRule rule_sort(const OpView& op) {
  const Dims& shape = op.operand_type(0).shape;
  const auto sorted = static_cast<size_t>(sorted_dim(op.attrs(), op.operand_type(0).ndim()));
  bool alone = true;
  for (size_t dim = 0; dim < shape.size(); ++dim) alone = alone && (dim == sorted || shape[dim] == 1);
  return rule_by_dim(op, [&](RuleBuilder& rule, size_t dim) {
    return dim == sorted ? rule.need_replication(shape[dim], alone) : rule.factor(shape[dim]);
  });
}

// ---- methods -------------------------------------------------------------------------------------------------------

std::vector<FactorId> sorted_factors(const OpView& op, const ShardingRule& rule) {
  return {rule.dim(0, static_cast<size_t>(sorted_dim(op.attrs(), op.operand_type(0).ndim())))[0]};
}

void placements_of_sort(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                        std::vector<OpPlacement>& found) {
  placements_along_other_dims(rule, sorted_factors(op, rule), axes, found);
}

OpCost cost_sort(const OpView& op, const LocalTypes& types) {
  OpCost cost = cost_by_rule(op, types);
  const TensorType& keys = types.operand(0);
  const int64_t row = keys.shape[static_cast<size_t>(sorted_dim(op.attrs(), keys.ndim()))];
  // n log n comparisons for each row.
  cost.vector = saturated_product(keys.element_quantity(), ceil_log2(row));
  return cost;
}

void verify_comparator(const OpView& op) {
  const Module& module = op.module();
  const RegionId region = op.regions()[0];
  // Sorts by keys never evaluate the region, so it may hold anything.
  if (lexicographic_keys(module, region)) return;
  verify_region_tiles(op);
  for (const OpId inner : module.region(region).ops) {
    for (const ValueId operand : OpView(module, inner).operands()) {
      const Value& value = module.value(operand);
      if ((value.op ? module.op(value.op).parent : value.region) == region) continue;
      fail<UnsupportedError>(op.name(), "its region must use its own arguments and constants alone to run it",
                             "a value from around it", "pass the value as one more operand");
    }
  }
}

// ---- vjp and batch -------------------------------------------------------------------------------------------------

// The operands, and the place of each element before the sort: an iota that is sorted with them.
ValueId build_order(Builder& builder, const OpView& op, std::span<const ValueId> operands, int64_t dim) {
  const Dims shape = op.operand_type(0).shape;
  const bool is_short = shape[static_cast<size_t>(dim)] <= std::numeric_limits<int32_t>::max();
  const DType dtype = is_short ? DType::kI32 : DType::kI64;
  std::vector<ValueId> with_places(operands.begin(), operands.end());
  with_places.push_back(build_iota(builder, dtype, shape, dim));
  const RegionId region = GraphCopy(op.module(), builder.module()).region(op.regions()[0]);
  // The comparator gets the two places as arguments that it ignores.
  for (int side = 0; side < 2; ++side) builder.module().add_argument(region, builder.context().tensor(dtype, {}));
  const OpId sorted = builder.create_op(op.def(), with_places, attrs_of(op), {}, {&region, 1});
  return builder.module().result(sorted, static_cast<uint32_t>(operands.size()));
}

// Cotangents go back to the places that the elements came from.
void vjp_sort(VjpContext& context) {
  const OpView op = context.op();
  const int64_t dim = sorted_dim(op.attrs(), op.operand_type(0).ndim());
  std::vector<ValueId> cotangents;
  std::vector<size_t> wanted;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    // Keys that need no gradient are sorted, but have no cotangent.
    if (!context.needs(i)) continue;
    wanted.push_back(i);
    cotangents.push_back(context.cotangent(i));
  }
  // Sorting the cotangents by these places is the inverse permutation, without a scatter.
  const ValueId order = build_order(context.builder(), op, operands_of(context), dim);
  const std::vector<ValueId> found = build_sort_by(context.builder(), order, cotangents, dim);
  for (size_t k = 0; k < wanted.size(); ++k) context.set(wanted[k], found[k]);
}

void batch_sort(BatchContext& context) {
  const OpView op = context.op();
  Builder& builder = context.builder();
  Attrs attrs = op.attrs();
  // A dim that counts from the end stays right, but one from the front moves by the new leading dim.
  attrs.set("dimension", IntAttr{sorted_dim(attrs, op.operand_type(0).ndim()) + 1});
  set_results(context, create_again(builder, op, batched_operands(context), builder.context().intern(attrs)));
}

// ---- the family ----------------------------------------------------------------------------------------------------

constexpr Method kSortMethods[] = {{"another dim", sorted_factors, placements_of_sort, nullptr}};

constexpr OpDef kSortOps[] = {
    {.name = "stablehlo.sort",
     .infer = infer_sort,
     .rule = rule_sort,
     .methods = kSortMethods,
     .prepare = prepare_sort,
     .cost = cost_sort,
     .vjp = vjp_sort,
     .batch = batch_sort,
     .regions = Regions::kCombiner,
     .verify_runnable = verify_comparator,
     .doc = "Sorts several tensors alike along one dim by a comparison; stable (StableHLO sort)."},
};
static_assert(all_complete(kSortOps));

}  // namespace

std::span<const OpDef> sort_ops() { return kSortOps; }

// The default is -1, the last dim.
int64_t sorted_dim(const Attrs& attrs, int64_t ndim) {
  const auto* dimension = attrs.find<IntAttr>("dimension");
  const int64_t dim = dimension == nullptr ? -1 : dimension->value;
  return dim < 0 ? dim + ndim : dim;
}

std::vector<ValueId> build_sort_by(Builder& builder, ValueId keys, std::span<const ValueId> values, int64_t dim) {
  Module& module = builder.module();
  const RegionId region = module.add_region();
  std::vector<ValueId> operands{keys};
  operands.insert(operands.end(), values.begin(), values.end());
  for (const ValueId operand : operands) {
    const TypeId scalar = builder.context().tensor(module.type(operand).dtype, {});
    for (int side = 0; side < 2; ++side) module.add_argument(region, scalar);
  }
  const std::vector<ValueId> arguments = module.region(region).arguments;
  Builder inner(module, region, builder.loc());
  const bool is_signed = is_signed_integer(module.type(keys).dtype);
  const ValueId less = build_compare(inner, "LT", arguments[0], arguments[1], is_signed ? "SIGNED" : "UNSIGNED");
  module.region(region).results = {less};
  const AttrsId attrs = builder.context().intern(Attrs{{"dimension", IntAttr{dim}}, {"is_stable", true}});
  const OpId sorted = builder.create_op(kSortOps[0], operands, attrs, {}, {&region, 1});
  std::vector<ValueId> results = list_of_results(module, sorted);
  results.erase(results.begin());  // the keys
  return results;
}

}  // namespace shardwise
