// SPDX-License-Identifier: Apache-2.0
//
// chlo.ragged_dot: a dot per group of rows; the sizes of the groups are an operand.
//
//   %3 = "chlo.ragged_dot"(%0, %1, %sizes) <{ragged_dot_dimension_numbers = …}>
//          : (tensor<8x4xf32>, tensor<2x4x3xf32>, tensor<2xi64>) -> tensor<8x3xf32>
#include "shardwise/ops/build/compare.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/reduce_window.h"
#include "shardwise/ops/contraction/contraction_checks.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
namespace {

struct RaggedDims : DotDims {
  Dims lhs_ragged, rhs_group;

  static RaggedDims of(const Attrs& attrs) {
    constexpr std::string_view kName = "ragged_dot_dimension_numbers";
    const auto& numbers = attrs.get<StructAttr>(kName);
    return {dot_dims(attrs, kName), list_field(numbers, "lhs_ragged_dimensions"),
            list_field(numbers, "rhs_group_dimensions")};
  }
  bool contracts_ragged() const { return contains_dim(lhs_contracting, lhs_ragged[0]); }
  bool batches_ragged() const { return contains_dim(lhs_batching, lhs_ragged[0]); }
  // A group dim of the right side is none of the result: it counts as contracted, though the left side has none.
  DotDims with_groups() const {
    return {lhs_batching, rhs_batching, lhs_contracting, joined(rhs_contracting, rhs_group)};
  }
};

void infer_ragged_dot(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(3);
  op.attr<StructAttr>("ragged_dot_dimension_numbers");
  const RaggedDims dims = RaggedDims::of(op.attrs());
  const TensorType& lhs = op.operand(0);
  const TensorType& rhs = op.operand(1);
  expect_dims(op, "lhs_batching_dimensions", dims.lhs_batching, lhs.ndim());
  expect_dims(op, "rhs_batching_dimensions", dims.rhs_batching, rhs.ndim());
  expect_dims(op, "lhs_contracting_dimensions", dims.lhs_contracting, lhs.ndim());
  expect_dims(op, "rhs_contracting_dimensions", dims.rhs_contracting, rhs.ndim());
  expect_length(op, "lhs_ragged_dimensions", dims.lhs_ragged, 1);
  expect_dims(op, "lhs_ragged_dimensions", dims.lhs_ragged, lhs.ndim());
  expect_dims(op, "rhs_group_dimensions", dims.rhs_group, rhs.ndim());
  const TensorType& groups = op.operand(2);
  bool fits = dims.lhs_batching.size() == dims.rhs_batching.size() && groups.ndim() >= 1 &&
              dims.lhs_contracting.size() == dims.rhs_contracting.size();
  fits = fits && sizes_at(lhs.shape, dims.lhs_batching) == sizes_at(rhs.shape, dims.rhs_batching) &&
         sizes_at(lhs.shape, dims.lhs_contracting) == sizes_at(rhs.shape, dims.rhs_contracting);
  if (!fits) op.fail_shape("batching and contracting dims must have the same sizes", op.operand_types_text());
  // Only the rows of a free ragged dim choose among right sides (CHLO).
  expect_length(op, "rhs_group_dimensions", dims.rhs_group, dims.contracts_ragged() || dims.batches_ragged() ? 0 : 1);
  expect_shape(op, dims.rhs_group.empty() || rhs.shape[static_cast<size_t>(dims.rhs_group[0])] == groups.shape.back(),
               "the group dim of the right side must have one element per group");
  const Dims shape = dot_shape(lhs, rhs, dims.with_groups());
  // A ragged contracting dim gives one product per group (CHLO): the groups are the first dim of the result.
  results.push_back(contracted(op, dims.contracts_ragged() ? with_leading(groups.shape.back(), shape) : shape));
}

// As dot_general; rows of the ragged dim belong to groups by their place, so that it and the groups are whole.
ShardingRule rule_ragged_dot(const OpView& op) {
  RuleBuilder rule(op);
  const RaggedDims dims = RaggedDims::of(op.attrs());
  map_dot(rule, op, dims.with_groups(), dims.contracts_ragged() ? 1 : 0, dims.lhs_ragged[0]);
  // The groups: whole, and apart in each tensor.
  for (int64_t dim : dims.rhs_group) {
    const auto group = static_cast<size_t>(dim);
    rule.map(1, group, rule.need_replication(op.operand_type(1).shape[group]));
  }
  const Dims& groups = op.operand_type(2).shape;
  for (size_t dim = 0; dim < groups.size(); ++dim) rule.map(2, dim, rule.need_replication(groups[dim]));
  if (dims.contracts_ragged()) rule.map(rule.result_tensor(0), 0, rule.need_replication(op.result_type().shape[0]));
  return rule.build();
}

// The lhs once for each group, with zeros in place of the rows of the others.
ValueId build_masked_groups(DecomposeContext& context, const RaggedDims& dims) {
  Builder& builder = context.builder();
  const TensorType lhs = context.op().operand_type(0), sizes = context.op().operand_type(2);
  const Dims shape = with_leading(sizes.shape.back(), lhs.shape);
  // Sizes [2, 3] end at [2, 5] and start at [0, 2]: row r is in group g if starts[g] <= r < ends[g].
  // Rows after the last group are in none, and give zeros.
  const ValueId ends = build_prefix(builder, context.operand(2), Reducer::kSum, sizes.ndim() - 1, Prefix::kForward);
  const ValueId starts = builder.create("stablehlo.subtract", {ends, context.operand(2)});
  // Sizes of [batch…, groups] go to the batching dims of the copies, and the groups to dim 0.
  Dims places = sizes.ndim() == 1 ? Dims{} : shifted(dims.lhs_batching);
  places.push_back(0);
  // broadcast_in_dim takes the dims in any order.
  const auto everywhere = [&](ValueId value) { return build_broadcast(builder, value, shape, places); };
  const ValueId row = build_iota(builder, sizes.dtype, shape, dims.lhs_ragged[0] + 1);
  const ValueId inside = builder.create("stablehlo.and", {build_compare(builder, "LE", everywhere(starts), row),
                                                          build_compare(builder, "LT", row, everywhere(ends))});
  const ValueId copies = build_broadcast(builder, context.operand(0), shape, identity_dims(lhs.ndim(), 1));
  return builder.create("stablehlo.select", {inside, copies, build_zeros(builder, {lhs.dtype, shape})});
}

// A dot that also sums over the groups, or has them as a dim of the result.
void decompose_ragged_dot(DecomposeContext& context) {
  const OpView op = context.op();
  Builder& builder = context.builder();
  const RaggedDims dims = RaggedDims::of(op.attrs());
  const auto batches = static_cast<int64_t>(dims.lhs_batching.size());
  const int64_t sizes_ndim = op.operand_type(2).ndim();
  if (sizes_ndim != 1 && sizes_ndim != batches + 1) return;
  DotDims dot = dims.with_groups();
  const DType dtype = op.result_type().dtype;
  // The groups of a ragged batching dim select nothing: each of its indices has a product of its own.
  if (dims.batches_ragged()) {
    return context.set_result(0, build_dot(builder, context.operand(0), context.operand(1), dot, dtype));
  }
  dot.lhs_batching = shifted(dot.lhs_batching);
  dot.lhs_contracting = shifted(dot.lhs_contracting);
  // A row is zero in all copies but one, so the sum over the groups picks the product with its own group's rhs.
  if (!dims.contracts_ragged()) dot.lhs_contracting.push_back(0);
  const ValueId masked = build_masked_groups(context, dims);
  const ValueId found = build_dot(builder, masked, context.operand(1), dot, dtype);
  context.set_result(0, dims.contracts_ragged() ? build_move_to_front(builder, found, batches) : found);
}

constexpr OpDef kRaggedDotOps[] = {
    composed_op("chlo.ragged_dot", infer_ragged_dot, rule_ragged_dot, decompose_ragged_dot, {},
                "A dot per group of rows, as a dot of the groups' copies of them (CHLO ragged_dot)."),
};
static_assert(all_complete(kRaggedDotOps));

}  // namespace

std::span<const OpDef> ragged_dot_ops() { return kRaggedDotOps; }

}  // namespace shardwise
