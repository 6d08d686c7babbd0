// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/sort/top_k.h"

#include <bit>

#include "shardwise/base/text.h"
#include "shardwise/ops/build/along_last_dim.h"
#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/operation_counts.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/sort/sort.h"

namespace shardwise {
namespace {

void infer_top_k(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const TensorType& operand = op.operand(0);
  const int64_t k = op.attr<IntAttr>("k").value;
  if (operand.shape.empty() || k < 0 || k > operand.shape.back()) {
    op.fail_shape("k must lie in [0, the size of the last dim]", str("k = ", k, " for ", operand.text()));
  }
  if (is_complex(operand.dtype)) op.fail_dtype("operands must be numbers that have an order", operand.text());
  Dims shape = operand.shape;
  shape.back() = k;
  results.push_back(result_or_declared(op, {operand.dtype, shape}, 0));
  results.push_back(result_or_declared(op, {DType::kI32, shape}, 1));
}

ShardingRule rule_top_k(const OpView& op) {
  const Dims& shape = op.operand_type(0).shape;
  return rule_by_dim(op, [&](RuleBuilder& rule, size_t dim) {
    // Blocked: the sharding of the whole row says nothing of its k winners.
    const bool taken = dim + 1 == shape.size();
    return taken ? rule.need_replication(shape[dim], true) : rule.factor(shape[dim]);
  });
}

std::optional<Kernel> prepare_top_k(const OpView& op, const KernelTypes&) {
  return select_first({.descending = true}, op.attrs().get_int("k"));
}

std::vector<FactorId> taken_factors(const OpView& op, const ShardingRule& rule) {
  return {rule.dim(0, op.operand_type(0).shape.size() - 1)[0]};
}

// The results are whole along the last dim.
void placements_of_winners(const OpView& op, const ShardingRule& rule, std::span<const AxisList> axes,
                           std::vector<OpPlacement>& found) {
  // Nothing to exchange.
  if (op.result_type().size() == 0) return;
  found.push_back(placement_by_rule(rule, axes));
  for (size_t result = 0; result < 2; ++result) found.back().tensors[rule.result_tensor(result)].back().clear();
}

// Each shard finds its own winners; those of all shards are gathered, and the winners among them found. Padding is
// smaller than any number, and of equal elements it is the last.
void partition_by_winners(PartitionContext& context) {
  Builder& builder = context.builder();
  const DType dtype = context.op().operand_type(0).dtype;
  const DimLayout layout = context.operand_layout(0).dims().back();
  const int64_t k = context.op().attrs().get_int("k");
  // The NaN with all bits set, the smallest one in the total order by which top_k compares.
  const Scalar least = is_float(dtype) ? Scalar::of_float(dtype, std::bit_cast<double>(~uint64_t{0}))
                                       : neutral_element(Reducer::kMax, dtype);
  const ValueId operand = context.masked_operand(0, taken_factors(context.op(), context.rule())[0], least);
  // A shard cannot have more winners than rows, and all k may be in one.
  Winners own = build_top_k(builder, operand, std::min(k, layout.block));
  const Dims shape = builder.module().type(own.places).shape;
  const ValueId offset = build_convert(builder, context.shard_offset(layout), DType::kI32);
  own.places = builder.create("stablehlo.add", {own.places, build_broadcast(builder, offset, shape, {})});
  for (ValueId* value : {&own.values, &own.places}) {
    *value = create_all_gather(builder, context.mesh(), *value, shape.size() - 1, layout.axes);
    context.explain(*value, std::ssize(shape) - 1);
  }
  const Winners all = build_top_k(builder, own.values, k);
  // The second top_k gives places among the gathered winners; these hold the places in the whole row.
  const ValueId places = build_take_along_last(builder, own.places, all.places);
  context.set_result(0, all.values, result_padding(context.result_layout(0)));
  context.set_result(1, places, result_padding(context.result_layout(1)));
}

void vjp_top_k(VjpContext& context) {
  const ValueId zeros = build_zeros(context.builder(), context.op().operand_type(0));
  context.set(0, build_add_along_last(context.builder(), zeros, context.result(1), context.cotangent(0)));
}

void batch_top_k(BatchContext& context) {
  const Winners found = build_top_k(context.builder(), context.operand(0), context.op().attrs().get_int("k"));
  context.set_result(0, found.values);
  context.set_result(1, found.places);
}

// Each element goes through a heap of the k largest ones.
OpCost cost_top_k(const OpView& op, const LocalTypes& types) {
  OpCost cost = cost_by_rule(op, types);
  cost.vector = saturated_product(types.operand(0).element_quantity(), ceil_log2(types.result().shape.back()));
  return cost;
}

constexpr Method kTopKMethods[] = {{"winners", taken_factors, placements_of_winners, partition_by_winners}};

constexpr OpDef kTopKOps[] = {{
    .name = "chlo.top_k",
    .infer = infer_top_k,
    .rule = rule_top_k,
    .methods = kTopKMethods,
    .prepare = prepare_top_k,
    .cost = cost_top_k,
    .vjp = vjp_top_k,
    .batch = batch_top_k,
    .format = "`(` operands `,` `k` `=` $k `)` attr-dict `:` operand-type `->` `(` result-type `)`",
    .doc = "The k largest elements of each row, and where they stand (CHLO top_k).",
}};
static_assert(kTopKOps[0].complete());

}  // namespace

std::span<const OpDef> top_k_ops() { return kTopKOps; }

Winners build_top_k(Builder& builder, ValueId operand, int64_t k) {
  const OpId made = builder.create_op("chlo.top_k", {&operand, 1}, Attrs{{"k", IntAttr{k}}});
  return {builder.module().result(made, 0), builder.module().result(made, 1)};
}

}  // namespace shardwise
