// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/linalg/linalg.h"

#include <algorithm>
#include <array>

#include "shardwise/ops/shared/propagation_only.h"

namespace shardwise {
namespace {

void expect_matrices(const InferContext& op) {
  if (!is_inexact(op.operand(0).dtype)) {
    op.fail_dtype("operands must be floats", op.operand_types_text(), "convert them first");
  }
  const Dims& shape = op.operand(0).shape;
  if (shape.size() >= 2 && shape[shape.size() - 1] == shape[shape.size() - 2]) return;
  op.fail_shape("the last two dims of the matrix must be equal", op.operand_types_text());
}

// ---- cholesky ------------------------------------------------------------------------------------------------------

void infer_cholesky(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  expect_matrices(op);
  if (op.attrs().find("lower") != nullptr) op.attr<bool>("lower");
  results.push_back(op.operand_type(0));
}

ShardingRule rule_cholesky(const OpView& op) {
  RuleBuilder rule(op);
  const Dims& shape = op.result_type().shape;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    // Each element of a factor depends on the whole matrix, so only the batch can be split.
    const bool batch = dim + 2 < shape.size();
    const FactorId factor = batch ? rule.factor(shape[dim]) : rule.need_replication(shape[dim]);
    rule.map(0, dim, factor).map(rule.result_tensor(0), dim, factor);
  }
  return rule.build();
}

// ---- triangular_solve ----------------------------------------------------------------------------------------------

void infer_triangular_solve(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  expect_matrices(op);
  const bool left = op.attr<bool>("left_side");
  for (std::string_view name : {"lower", "unit_diagonal"}) op.attr<bool>(name);
  const std::string& transpose = op.attr<EnumAttr>("transpose_a").value;
  if (transpose != "NO_TRANSPOSE" && transpose != "TRANSPOSE" && transpose != "ADJOINT") {
    op.fail_shape("transpose_a must be NO_TRANSPOSE, TRANSPOSE or ADJOINT", transpose);
  }
  if (op.operand(0).dtype != op.operand(1).dtype) {
    op.fail_dtype("operands must have the same dtype", op.operand_types_text(), "convert one of them first");
  }
  const Dims& a = op.operand(0).shape;
  const Dims& b = op.operand(1).shape;
  const size_t batch = a.size() - 2;
  const bool fits = a.size() == b.size() && std::equal(a.begin(), a.begin() + static_cast<int64_t>(batch), b.begin()) &&
                    b[left ? batch : batch + 1] == a[batch];
  if (!fits) {
    op.fail_shape("the matrix must have the rows (left_side) or columns of the right-hand side, and its batch",
                  op.operand_types_text());
  }
  results.push_back(op.operand_type(1));
}

ShardingRule rule_triangular_solve(const OpView& op) {
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

constexpr OpDef kLinalgOps[] = {
    propagation_only_op("stablehlo.cholesky", infer_cholesky, rule_cholesky,
                        "operands ( `,` `lower` `=` $lower^ )? attr-dict `:` same-or-functional-type",
                        "The triangular factor of positive definite matrices (StableHLO cholesky)."),
    propagation_only_op("stablehlo.triangular_solve", infer_triangular_solve, rule_triangular_solve, {},
                        "Solves a x = b or x a = b for triangular matrices a (StableHLO triangular_solve)."),
};
static_assert(all_complete(kLinalgOps));

}  // namespace

std::span<const OpDef> linalg_ops() { return kLinalgOps; }

}  // namespace shardwise
