// SPDX-License-Identifier: Apache-2.0
//
// stablehlo.dot: the product of vectors and matrices.
//
//   %2 = stablehlo.dot %0, %1 : (tensor<4x8xf32>, tensor<8x3xf32>) -> tensor<4x3xf32>
//   ([i, k], [k, j])->([i, j]) {i=4, j=3, k=8} reduction={k}
#include "shardwise/ops/contraction/contraction_checks.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
namespace {

// A vector is a row on the left and a column on the right, and its one dim is the summed one.
DotDims dims_of_dot(const Dims& lhs) { return {{}, {}, {static_cast<int64_t>(lhs.size()) - 1}, {0}}; }

void infer_dot(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  expect_same_dtype(op, 2);
  const Dims& lhs = op.operand(0).shape;
  const Dims& rhs = op.operand(1).shape;
  const bool fits = !lhs.empty() && lhs.size() <= 2 && !rhs.empty() && rhs.size() <= 2 && lhs.back() == rhs.front();
  expect_shape(op, fits,
               "operands must be vectors or matrices, and the last dim of the first as large as the first of the last");
  results.push_back(contracted(op, dot_shape(op.operand(0), op.operand(1), dims_of_dot(lhs))));
}

ShardingRule rule_dot(const OpView& op) {
  RuleBuilder rule(op);
  map_dot(rule, op, dims_of_dot(op.operand_type(0).shape));
  return rule.build();
}

void decompose_dot(DecomposeContext& context) {
  const OpView op = context.op();
  const DotDims dims = dims_of_dot(op.operand_type(0).shape);
  Attrs attrs;
  // A hint for other compilers: no kernel of ours reads it, but printed programs keep it.
  if (const Attribute* precision = op.attrs().find("precision_config")) attrs.set("precision_config", *precision);
  context.set_result(
      0, build_dot(context.builder(), context.operand(0), context.operand(1), dims, op.result_type().dtype, attrs));
}

constexpr OpDef kDotOps[] = {
    composed_op("stablehlo.dot", infer_dot, rule_dot, decompose_dot,
                "operands ( `,` `precision` `=` custom<precisions>($precision_config)^ )? attr-dict `:` "
                "functional-type",
                "The product of vectors and matrices (StableHLO dot)."),
};
static_assert(all_complete(kDotOps));

}  // namespace

std::span<const OpDef> dot_ops() { return kDotOps; }

}  // namespace shardwise
