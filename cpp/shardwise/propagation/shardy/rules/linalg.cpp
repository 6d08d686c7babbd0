// SPDX-License-Identifier: Apache-2.0
//
// Shardy lets no dim of a triangular_solve but the batch keep its sharding, and gives each pair of matrix dims one
// factor. Here the free dim of the right-hand side passes through.
//
//   triangular_solve, left_side    ([i, k, j], [i, j, l])->([i, k, l]) … need_replication={j, k, l}
#include "shardwise/ir/rule/rule_builder.h"
#include "shardwise/propagation/shardy/rules.h"

namespace shardwise {
namespace {

ShardingRule rule_triangular_solve(const OpView& op, RuleMode) {
  RuleBuilder rule(op);
  const Dims& b = op.operand_type(1).shape;
  const size_t batch = b.size() - 2, rows = batch, columns = batch + 1, result = rule.result_tensor(0);
  const bool left = op.attrs().get<bool>("left_side");
  const bool transposed = op.attrs().get<EnumAttr>("transpose_a").value != "NO_TRANSPOSE";
  for (size_t dim = 0; dim < batch; ++dim) {
    const FactorId factor = rule.factor(b[dim]);
    rule.map(0, dim, factor).map(1, dim, factor).map(result, dim, factor);
  }
  const size_t solved = left ? rows : columns, other = left ? columns : rows;
  // The two dims of the matrix: one pairs with the right-hand side, the other with the solution.
  const size_t known = left != transposed ? rows : columns;
  const size_t unknown = known == rows ? columns : rows;
  const auto map_known = [&] {
    const FactorId factor = rule.need_replication(b[solved]);
    rule.map(0, known, factor).map(1, solved, factor);
  };
  const auto map_other = [&] {
    const FactorId factor = rule.need_replication(b[other]);
    rule.map(1, other, factor).map(result, other, factor);
  };
  // The names of factors are part of the printed rule, so their order matters.
  if (left) map_known();
  map_other();
  if (!left) map_known();
  const FactorId factor = rule.need_replication(b[solved]);
  rule.map(0, unknown, factor).map(result, solved, factor);
  return rule.build();
}

constexpr ShardyOp kLinalgOps[] = {
    {.op = "stablehlo.cholesky", .rule = rule_replicated_matrices},
    {.op = "stablehlo.triangular_solve", .rule = rule_triangular_solve},
};

}  // namespace

std::span<const ShardyOp> shardy_linalg_ops() { return kLinalgOps; }

}  // namespace shardwise
