// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/create/create.h"

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
// ---- constant ------------------------------------------------------------------------------------------------------

void infer_constant(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(0);
  const NdArray& data = op.attr<DenseAttr>("value").data;
  results.push_back(result_or_declared(op, {data.dtype(), data.shape()}));
}

namespace {

const NdArray& constant_data(const OpView& op) { return op.attrs().get<DenseAttr>("value").data; }

// All devices run the same program, which cannot contain different elements for each: such a constant is created whole.
ShardingRule rule_constant(const OpView& op) {
  RuleBuilder rule(op);
  const FactorKind kind = constant_data(op).is_splat() ? FactorKind::kPassThrough : FactorKind::kNeedReplication;
  const Dims& shape = op.result_type().shape;
  for (size_t dim = 0; dim < shape.size(); ++dim) rule.map(rule.result_tensor(0), dim, rule.factor(shape[dim], kind));
  return rule.build();
}

void partition_constant(PartitionContext& context) {
  const NdArray& data = constant_data(context.op());
  const TensorType& local = context.builder().context().type(context.local_result_type(0));
  if (equal(local.shape, data.shape())) return context.set_result(0, build_constant(context.builder(), data), {});
  // No element, hence no splat, but any shape of a shard.
  if (data.size() == 0) {
    return context.set_result(0, build_constant(context.builder(), NdArray::empty(local.dtype, local.shape)), {});
  }
  check_internal(data.is_splat(), "only a splat constant can be sharded");
  const Scalar value = data.scalar_at(0);
  Padding padding = result_padding(context.result_layout(0));
  // The padding holds the same element, which saves the mask of an op that needs just that, such as a sum of zeros.
  if (padding.kind != Padding::Kind::kNone) padding = {Padding::Kind::kFill, value};
  context.set_result(0, build_splat(context.builder(), local.shape, value), padding);
}

void batch_constant(BatchContext& context) {
  context.set_result(0, build_constant(context.builder(), constant_data(context.op())));
}

// ---- iota ----------------------------------------------------------------------------------------------------------

void infer_iota(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(0);
  const TensorType& type = op.declared_result();
  const int64_t dim = op.attr<IntAttr>("iota_dimension").value;
  if (dim < 0 || dim >= type.ndim()) {
    op.fail_shape("iota_dimension must be a dim of the result", str("iota_dimension = ", dim, " for ", type.text()),
                  "use a dim of the result; a scalar has none");
  }
  // As in StableHLO: booleans cannot count.
  if (type.dtype == DType::kBool) {
    op.fail_dtype("the result must have a number dtype", type.text(), "make integers and compare them");
  }
  results.push_back(op.declared()[0]);
}

// Indices are computed in the integer dtype of the offset and converted once, so that narrow floats round as in the
// whole iota.
void partition_iota(PartitionContext& context) {
  Builder& builder = context.builder();
  const auto dim = context.op().attrs().get_int("iota_dimension");
  const TensorType local = builder.context().type(context.local_result_type(0));
  // Only the dim that is counted needs an offset: along all others every shard has the same rows.
  const DimLayout layout = context.result_layout(0).dim(static_cast<size_t>(dim));
  const Padding padding = result_padding(context.result_layout(0));
  if (layout.axes.empty()) {
    return context.set_result(0, build_iota(builder, local.dtype, local.shape, dim), padding);
  }
  const ValueId offset = context.shard_offset(layout);
  const DType index_dtype = builder.module().type(offset).dtype;
  const ValueId row = build_iota(builder, index_dtype, local.shape, dim);
  const ValueId offsets = build_broadcast(builder, offset, local.shape, {});
  const ValueId index = builder.create("stablehlo.add", {row, offsets});
  context.set_result(0, build_convert(builder, index, local.dtype), padding);
}

void batch_iota(BatchContext& context) {
  const TensorType type = context.op().result_type();
  const int64_t dim = context.op().attrs().get_int("iota_dimension");
  context.set_result(0, build_iota(context.builder(), type.dtype, type.shape, dim));
}

// Its bytes: no element is computed.
OpCost cost_constant(const OpView&, const LocalTypes& types) { return {.touched = {types.result().byte_quantity()}}; }

constexpr OpDef kCreateOps[] = {
    {.name = "stablehlo.constant",
     .infer = infer_constant,
     .rule = rule_constant,
     .partition = partition_constant,
     .prepare = prepare_constant,
     .cost = cost_constant,
     .vjp = not_differentiable,
     .batch = batch_constant,
     .no_vjp_reason = "it has no operands",
     .format = "attr-dict $value",
     .doc = "A tensor of given elements (StableHLO constant).",
     .traits = {.constant_like = true, .shares_memory = true}},
    {.name = "stablehlo.iota",
     .infer = infer_iota,
     .rule = rule_like_first_result,
     .partition = partition_iota,
     .prepare = prepare_iota,
     .vjp = not_differentiable,
     .batch = batch_iota,
     .no_vjp_reason = "it has no operands",
     .format = "`dim` `=` $iota_dimension attr-dict `:` result-type",
     .doc = "The index along one dim (StableHLO iota).",
     .traits = {.constant_like = true, .shares_memory = true}},
};
static_assert(all_complete(kCreateOps));

}  // namespace

std::span<const OpDef> create_ops() { return kCreateOps; }

}  // namespace shardwise
