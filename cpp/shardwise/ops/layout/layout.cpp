// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/layout/layout.h"

#include <algorithm>
#include <numeric>

#include "shardwise/base/text.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce.h"
#include "shardwise/ops/partitioning/exchange_partition.h"
#include "shardwise/ops/partitioning/padding.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// Runs the same op on the local operand, with the local result type declared.
void partition_movement(PartitionContext& context) {
  const OpView op = context.op();
  const ValueId operand = context.operand(0);
  const TypeId type = context.local_result_type(0);
  // No attribute of these ops contains a size, so the global attributes also suit a shard.
  const ValueId local = context.builder().create(op.def(), {operand}, op.attrs(), {type});
  context.set_result(0, local, moved_padding(context));
}

// ---- transpose -----------------------------------------------------------------------------------------------------

void infer_transpose(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const TensorType& operand = op.operand(0);
  const Dims& permutation = expect_list(op, "permutation", operand.ndim());
  expect_dims(op, "permutation", permutation, operand.ndim());
  // Dim d of the result is dim permutation[d] of the operand: 2x3x5 by [2, 0, 1] is 5x2x3.
  results.push_back(result_or_declared(op, {operand.dtype, sizes_at(operand.shape, permutation)}));
}

ShardingRule rule_transpose(const OpView& op) {
  RuleBuilder rule(op);
  const Dims& permutation = dims_attr(op, "permutation");
  for (size_t dim = 0; dim < permutation.size(); ++dim) {
    const FactorId factor = rule.factor(op.result_type().shape[dim]);
    rule.map(0, static_cast<size_t>(permutation[dim]), factor).map(rule.result_tensor(0), dim, factor);
  }
  return rule.build();
}

void vjp_transpose(VjpContext& context) {
  const Dims inverse = inverse_permutation(dims_attr(context.op(), "permutation"));
  context.set(0, build_transpose(context.builder(), context.cotangent(), inverse));
}

void batch_transpose(BatchContext& context) {
  const Dims permutation = with_leading(0, shifted(dims_attr(context.op(), "permutation")));
  context.set_result(0, build_transpose(context.builder(), context.operand(0), permutation));
}

// ---- reshape -------------------------------------------------------------------------------------------------------

// No attribute has the shape of a reshape or a broadcast: the declared type is the only place.
void expect_dtype_of_operand(const InferContext& op, const TensorType& declared) {
  const TensorType& operand = op.operand(0);
  if (operand.dtype == declared.dtype) return;
  op.fail_dtype("operand and result must have the same dtype", str(operand.text(), " and ", declared.text()),
                "convert first");
}

void infer_reshape(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const TensorType& operand = op.operand(0);
  const TensorType& result = op.declared_result();
  expect_dtype_of_operand(op, result);
  if (operand.size() != result.size()) {
    op.fail_shape("operand and result must have the same number of elements",
                  str(operand.text(), " (", operand.size(), ") and ", result.text(), " (", result.size(), ")"),
                  "choose sizes with the same product");
  }
  results.push_back(op.declared()[0]);
}

// One side of the walk over the factors of a reshape: the rest of its current dim, and the product of its factors so
// far.
struct ReshapeSide {
  RuleBuilder& rule;
  size_t tensor;
  const Dims& shape;
  size_t dim = 0;
  int64_t left = 1;
  int64_t product = 1;
  size_t next = 0;

  bool done() const { return left == 1 && next == shape.size(); }
  void advance() {  // dims of size 1 get their own factor immediately
    while (left == 1 && next < shape.size()) {
      dim = next++;
      left = shape[dim];
      if (left == 1) rule.map(tensor, dim, rule.factor(1));
    }
  }
  void take(int64_t size, FactorId factor) {
    rule.map(tensor, dim, factor);
    left /= size;
    product *= size;
  }
  void take_private(int64_t size) { take(size, rule.factor(size)); }
};

// The side that is behind takes the factor that makes both products equal. If that does not divide, it takes what the
// two dims cannot share.
void catch_up(ReshapeSide& behind, const ReshapeSide& ahead) {
  const int64_t ratio = ahead.product / behind.product;
  if (ahead.product % behind.product == 0 && behind.left % ratio == 0) return behind.take_private(ratio);
  const int64_t shared = std::gcd(behind.left, ahead.left);
  behind.take_private(behind.left > shared ? behind.left / shared : behind.left);
}

// Equal products mean equal strides on both sides, so only then may the sides share a factor.
//
//   (4, 6) -> (6, 4)     shared 2, then the private rests 2 and 3; products 4 and 6
//                        the operand catches up by a private 3, the result by a private 2; products 12 and 12
//                        shared 2; the shared factors have the strides 12 and 1 on both sides
ShardingRule rule_reshape(const OpView& op) {
  // The products of the two sides need not match if there are no elements.
  if (op.operand_type(0).size() == 0) return {};
  RuleBuilder rule(op);
  ReshapeSide in{rule, 0, op.operand_type(0).shape};
  ReshapeSide out{rule, rule.result_tensor(0), op.result_type().shape};
  for (;;) {
    in.advance();
    out.advance();
    if (in.done() && out.done()) return rule.build();
    if (in.product < out.product) {
      catch_up(in, out);
    } else if (out.product < in.product) {
      catch_up(out, in);
    } else if (const int64_t shared = std::gcd(in.left, out.left); shared > 1) {
      const FactorId factor = rule.factor(shared);
      in.take(shared, factor);
      out.take(shared, factor);
    } else {
      in.take_private(in.left);
      out.take_private(out.left);
    }
  }
}

void vjp_reshape(VjpContext& context) {
  const Dims shape = context.op().operand_type(0).shape;
  context.set(0, build_reshape(context.builder(), context.cotangent(), shape));
}

void batch_reshape(BatchContext& context) {
  const Dims shape = with_leading(context.size(), context.op().result_type().shape);
  context.set_result(0, build_reshape(context.builder(), context.operand(0), shape));
}

// ---- broadcast_in_dim ----------------------------------------------------------------------------------------------

void infer_broadcast_in_dim(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const TensorType& operand = op.operand(0);
  const TensorType& result = op.declared_result();
  const Dims& dims = expect_list(op, "broadcast_dimensions", operand.ndim());
  expect_dims(op, "broadcast_dimensions", dims, result.ndim());
  expect_dtype_of_operand(op, result);
  for (size_t i = 0; i < dims.size(); ++i) {
    const int64_t size = operand.shape[i];
    if (size == 1 || size == result.shape[static_cast<size_t>(dims[i])]) continue;
    op.fail_shape(str("dim ", i, " of the operand must have size 1 or that of dim ", dims[i], " of the result"),
                  str(operand.text(), " to ", result.text(), " with broadcast_dimensions = ", dims),
                  "only dims of size 1 are repeated");
  }
  results.push_back(op.declared()[0]);
}

ShardingRule rule_broadcast_in_dim(const OpView& op) {
  RuleBuilder rule(op);
  const Dims& dims = dims_attr(op, "broadcast_dimensions");
  const Dims& operand = op.operand_type(0).shape;
  const Dims& result = op.result_type().shape;
  for (size_t dim = 0; dim < result.size(); ++dim) {
    const auto source = std::find(dims.begin(), dims.end(), static_cast<int64_t>(dim));
    const auto from = static_cast<size_t>(source - dims.begin());
    const bool mapped = source != dims.end();
    const bool repeated = mapped && operand[from] != result[dim];
    // A repeated dim of size 1 is not tied to the result's dim: every device needs its one element.
    if (repeated) rule.map(0, from, rule.factor(1));
    const FactorId factor = rule.factor(result[dim]);
    if (mapped && !repeated) rule.map(0, from, factor);
    rule.map(rule.result_tensor(0), dim, factor);
  }
  return rule.build();
}

// The padding of an uneven repeated dim repeats the operand too. It is garbage only because the operand's own padding
// may be repeated there.
void partition_broadcast_in_dim(PartitionContext& context) {
  const OpView op = context.op();
  const ValueId local =
      context.builder().create(op.def(), {context.operand(0)}, op.attrs(), {context.local_result_type(0)});
  Padding padding = result_padding(context.result_layout(0));
  // A repeated constant is this constant everywhere, so the padding of the result has a known fill.
  const std::optional<Scalar> fill = splat_value(op.module(), op.operand(0));
  const Padding& given = context.operand_padding(0);
  const bool same = given.kind == Padding::Kind::kNone || (given.kind == Padding::Kind::kFill && given.fill == fill);
  if (padding.kind != Padding::Kind::kNone && fill && same) padding = {Padding::Kind::kFill, *fill};
  context.set_result(0, local, padding);
}

void vjp_broadcast_in_dim(VjpContext& context) {
  const Dims dims = dims_attr(context.op(), "broadcast_dimensions");
  const Dims operand = context.op().operand_type(0).shape;
  const Dims result = context.op().result_type().shape;
  Dims kept;  // result dims that were not repeated, in the operand's order
  for (size_t i = 0; i < dims.size(); ++i) {
    if (operand[i] == result[static_cast<size_t>(dims[i])]) kept.push_back(dims[i]);
  }
  // Each operand element was used once per repetition, so the cotangents of all repetitions add up.
  const Dims summed = other_dims(static_cast<int64_t>(result.size()), kept);
  Builder& builder = context.builder();
  const ValueId sum = build_reduce(builder, context.cotangent(), {}, Reducer::kSum, summed);
  // The sum has the kept dims in the result's order, which is not the operand's if broadcast_dimensions is not sorted:
  // [2, 0] keeps result dims 0 and 2, which go back by the permutation [1, 0]. The reshape restores dims of size 1.
  const Dims in_order = ascending(kept);
  Dims permutation;
  for (int64_t dim : kept) permutation.push_back(std::ranges::find(in_order, dim) - in_order.begin());
  context.set(0, build_reshape(builder, build_transpose(builder, sum, permutation), operand));
}

void batch_broadcast_in_dim(BatchContext& context) {
  const Dims dims = with_leading(0, shifted(dims_attr(context.op(), "broadcast_dimensions")));
  const Dims shape = with_leading(context.size(), context.op().result_type().shape);
  context.set_result(0, build_broadcast(context.builder(), context.operand(0), shape, dims));
}

// ---- reverse -------------------------------------------------------------------------------------------------------

void infer_reverse(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  expect_dims(op, "dimensions", op.attr<IntArray>("dimensions"), op.operand(0).ndim());
  results.push_back(result_or_declared(op, op.operand(0)));
}

ShardingRule rule_reverse(const OpView& op) {
  const Dims &reversed = dims_attr(op, "dimensions"), &shape = op.operand_type(0).shape;
  return rule_by_dim(op, [&](RuleBuilder& rule, size_t dim) {
    if (!contains_dim(reversed, static_cast<int64_t>(dim))) return rule.factor(shape[dim]);
    // Row i of the result is row size - 1 - i of the operand.
    rule.range(0, dim, {.scale = -1, .offset = shape[dim] - 1});
    return rule.permutation(shape[dim]);
  });
}

void vjp_reverse(VjpContext& context) {
  const Dims dims = dims_attr(context.op(), "dimensions");
  // A reverse is its own inverse.
  context.set(0, build_reverse(context.builder(), context.cotangent(), dims));
}

void batch_reverse(BatchContext& context) {
  const Dims dims = shifted(dims_attr(context.op(), "dimensions"));
  context.set_result(0, build_reverse(context.builder(), context.operand(0), dims));
}

// ---- the family ----------------------------------------------------------------------------------------------------

constexpr Method kReshapeMethods[] = {
    {kExchange, uneven_factors_of_reshape, nullptr, partition_by_rows, false, result_of_rows}};

constexpr OpDef kLayoutOps[] = {
    moving({.name = "stablehlo.transpose",
            .infer = infer_transpose,
            .rule = rule_transpose,
            .fold = fold_transpose,
            .partition = partition_movement,
            .prepare = prepare_transpose,
            .vjp = vjp_transpose,
            .batch = batch_transpose,
            .format = "operands `,` `dims` `=` $permutation attr-dict `:` functional-type",
            .doc = "Permutes the dims (StableHLO transpose).",
            .traits = {.shares_memory = true}}),
    moving({.name = "stablehlo.reshape",
            .infer = infer_reshape,
            .rule = rule_reshape,
            .fold = fold_reshape,
            .partition = partition_movement,
            .methods = kReshapeMethods,
            .prepare = prepare_reshape,
            .vjp = vjp_reshape,
            .batch = batch_reshape,
            .format = "operands attr-dict `:` functional-type",
            .doc = "The same elements in row-major order under another shape (StableHLO reshape).",
            .traits = {.shares_memory = true}}),
    moving({.name = "stablehlo.broadcast_in_dim",
            .infer = infer_broadcast_in_dim,
            .rule = rule_broadcast_in_dim,
            .fold = fold_broadcast_in_dim,
            .partition = partition_broadcast_in_dim,
            .prepare = prepare_broadcast_in_dim,
            .vjp = vjp_broadcast_in_dim,
            .batch = batch_broadcast_in_dim,
            .format = "operands `,` `dims` `=` $broadcast_dimensions attr-dict `:` functional-type",
            .doc = "Repeats a tensor along new dims and dims of size 1 (StableHLO broadcast_in_dim).",
            .traits = {.shares_memory = true}}),
    moving({.name = "stablehlo.reverse",
            .infer = infer_reverse,
            .rule = rule_reverse,
            .fold = fold_reverse,
            .partition = partition_movement,
            .methods = kByExchange,
            .prepare = prepare_reverse,
            .vjp = vjp_reverse,
            .batch = batch_reverse,
            .format = "operands `,` `dims` `=` $dimensions attr-dict `:` same-type",
            .doc = "Reverses the order along dims (StableHLO reverse).",
            .traits = {.shares_memory = true}}),
};
static_assert(all_complete(kLayoutOps));

}  // namespace

std::span<const OpDef> layout_ops() { return kLayoutOps; }

}  // namespace shardwise
