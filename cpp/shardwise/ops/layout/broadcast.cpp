// SPDX-License-Identifier: Apache-2.0
//
// stablehlo.broadcast: repeats a tensor along new leading dims.
//
//   %1 = stablehlo.broadcast %0, sizes = [4] : (tensor<8xf32>) -> tensor<4x8xf32>            ([j])->([i, j]) {i=4, j=8}
#include <algorithm>

#include "shardwise/base/text.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
namespace {

void infer_broadcast(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  Dims shape = op.attr<IntArray>("broadcast_sizes");
  if (std::any_of(shape.begin(), shape.end(), [](int64_t size) { return size < 0; })) {
    op.fail_shape("broadcast_sizes must not be negative", str(shape));
  }
  // The new dims come first: sizes = [4] of tensor<8x2> gives tensor<4x8x2>.
  shape.insert(shape.end(), op.operand(0).shape.begin(), op.operand(0).shape.end());
  results.push_back(result_or_declared(op, {op.operand(0).dtype, shape}));
}

ShardingRule rule_broadcast(const OpView& op) {
  RuleBuilder rule(op);
  const Dims& shape = op.result_type().shape;
  const size_t added = shape.size() - op.operand_type(0).shape.size();
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    // A new dim is in the result alone: a device repeats what it has, whatever the sharding of this dim is.
    const FactorId factor = rule.factor(shape[dim]);
    if (dim >= added) rule.map(0, dim - added, factor);
    rule.map(rule.result_tensor(0), dim, factor);
  }
  return rule.build();
}

void decompose_broadcast(DecomposeContext& context) {
  const OpView op = context.op();
  const int64_t ndim = op.operand_type(0).ndim();
  // Dims of the operand keep their order after the new ones: {1, 2} for tensor<8x2> -> tensor<4x8x2>.
  const Dims dims = identity_dims(ndim, op.result_type().ndim() - ndim);
  context.set_result(0, build_broadcast(context.builder(), context.operand(0), op.result_type().shape, dims));
}

constexpr OpDef kBroadcastOps[] = {
    composed_op("stablehlo.broadcast", infer_broadcast, rule_broadcast, decompose_broadcast,
                "operands `,` `sizes` `=` $broadcast_sizes attr-dict `:` functional-type",
                "Repeats a tensor along new leading dims (StableHLO broadcast)."),
};
static_assert(all_complete(kBroadcastOps));

}  // namespace

std::span<const OpDef> broadcast_ops() { return kBroadcastOps; }

}  // namespace shardwise
