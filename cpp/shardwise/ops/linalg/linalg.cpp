// SPDX-License-Identifier: Apache-2.0
//
// Linear algebra over the last two dims; the dims before are a batch: cholesky and triangular_solve.
//
//   %1 = stablehlo.cholesky %0, lower = true : tensor<2x4x4xf32>
//   ([i, j, k])->([i, j, k]) {i=2, j=4, k=4} need_replication={j, k}
#include <algorithm>
#include <array>

#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/same_op.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/linalg/lapack_calls.h"
#include "shardwise/ops/linalg/linalg_vjp.h"
#include "shardwise/ops/shared/custom_call_def.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
namespace {

void expect_matrices(const InferContext& op) {
  expect_dtype(op, is_inexact(op.operand(0).dtype), "operands must be floats", "convert them first");
  const Dims& shape = op.operand(0).shape;
  expect_shape(op, shape.size() >= 2 && shape[shape.size() - 1] == shape[shape.size() - 2],
               "the last two dims of the matrix must be equal");
}

// ---- cholesky ------------------------------------------------------------------------------------------------------

void infer_cholesky(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  expect_matrices(op);
  if (op.attrs().find("lower") != nullptr) op.attr<bool>("lower");
  results.push_back(op.operand_type(0));
}

// ---- triangular_solve ----------------------------------------------------------------------------------------------

void infer_triangular_solve(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  expect_matrices(op);
  const bool left = op.attr<bool>("left_side");
  for (std::string_view name : {"lower", "unit_diagonal"}) op.attr<bool>(name);
  expect_word(op, "transpose_a", std::array{"NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"});
  op.expect_same_dtype(0, 1);
  const Dims& a = op.operand(0).shape;
  const Dims& b = op.operand(1).shape;
  const size_t batch = a.size() - 2;
  const bool fits = a.size() == b.size() && std::equal(a.begin(), a.begin() + static_cast<int64_t>(batch), b.begin()) &&
                    b[left ? batch : batch + 1] == a[batch];
  expect_shape(op, fits, "the matrix must have the rows (left_side) or columns of the right-hand side, and its batch");
  results.push_back(op.operand_type(1));
}

// LAPACK has no narrow floats: they are computed in f32, and rounded once. Other dtypes have a kernel.
void decompose_narrow(DecomposeContext& context) {
  const OpView op = context.op();
  const DType dtype = op.result_type().dtype;
  if (!is_float(dtype) || computed_in(dtype) == dtype) return;
  Builder& builder = context.builder();
  std::vector<ValueId> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    operands.push_back(build_convert(builder, context.operand(i), DType::kF32));
  }
  const std::array types{builder.context().tensor(DType::kF32, op.result_type().shape)};
  context.set_result(0, build_convert(builder, builder.create(op.name(), operands, op.attrs(), types), dtype));
}

// The rule, kernel and cost of a batched call as those of an op.
// `call` is a template argument, not a capture: the fields of OpDef are plain function pointers.
template <const BatchedCall& call>
constexpr OpDef batched_op(std::string_view name, InferFn infer, VjpFn vjp, std::string_view format,
                           std::string_view doc) {
  return OpDef{.name = name,
               .infer = infer,
               .rule = [](const OpView& op) { return rule(call, op); },
               .decompose = decompose_narrow,
               .prepare = [](const OpView& op, const KernelTypes& types) { return prepare(call, op, types); },
               .cost = [](const OpView& op, const LocalTypes& types) { return cost(call, op, types); },
               .vjp = vjp,
               .batch = batch_by_leading_dim,
               // infer accepts what StableHLO allows; the kernel takes fewer dtypes.
               .verify_runnable = [](const OpView& op) { check(call, op); },
               .format = format,
               .doc = doc};
}

constexpr OpDef kLinalgOps[] = {
    batched_op<kCholeskyCall>("stablehlo.cholesky", infer_cholesky, vjp_cholesky,
                              "operands ( `,` `lower` `=` $lower^ )? attr-dict `:` same-or-functional-type",
                              "The triangular factor of positive definite matrices (StableHLO cholesky)."),
    batched_op<kTriangularSolveCall>(
        "stablehlo.triangular_solve", infer_triangular_solve, vjp_triangular_solve, {},
        "Solves a x = b or x a = b for triangular matrices a (StableHLO triangular_solve)."),
};
static_assert(all_complete(kLinalgOps));

void add_calls(std::span<const BatchedCall> rows, bool propagates, std::string_view no_vjp_reason) {
  for (const BatchedCall& row : rows) {
    const BatchedCall* call = &row;  // rows are never destroyed
    register_custom_call(
        {.name = row.name,
         .check = [call](const OpView& op) { check(*call, op); },
         .rule = [call](const OpView& op) { return rule(*call, op); },
         .prepare = [call](const OpView& op, const KernelTypes& types) { return prepare(*call, op, types); },
         .cost = [call](const OpView& op, const LocalTypes& types) { return cost(*call, op, types); },
         .no_vjp_reason = std::string(no_vjp_reason),
         .batch = batch_by_leading_dim,
         .propagates = propagates});
  }
}

}  // namespace

std::span<const OpDef> linalg_ops() { return kLinalgOps; }

void register_linalg_calls() {
  // Text of JAX has the forward calls only; their gradients are rules of JAX, not of the calls.
  constexpr std::string_view kOfText = "use sw.from_jax, which differentiates the JAX function";
  add_calls(lapack_calls(), false, kOfText);
  add_calls(tpu_linalg_calls(), true, kOfText);
  add_calls(decomposition_calls(), true, "it has no gradient");
}

}  // namespace shardwise
