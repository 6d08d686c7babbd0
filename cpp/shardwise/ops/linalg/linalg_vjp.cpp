// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/linalg/linalg_vjp.h"

#include <utility>

#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/build/term.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/ops/shared/dim_checks.h"

namespace shardwise {
namespace {

struct Triangle {
  bool left, lower, unit_diagonal;
  std::string_view transpose;
};

// A stack of matrices with the products and solvers of the formulas below.
struct Matrices {
  Builder& builder;

  size_t batch_rank(ValueId a) const { return builder.module().type(a).shape.size() - 2; }

  ValueId product(ValueId a, ValueId b) const {
    const auto batch = static_cast<int64_t>(batch_rank(a));
    const Dims batching = identity_dims(batch);
    return build_dot(builder, a, b, {batching, batching, {batch + 1}, {batch}}, builder.module().type(a).dtype);
  }

  ValueId transposed(ValueId a) const {
    Dims order = identity_dims(static_cast<int64_t>(batch_rank(a)) + 2);
    std::swap(order.end()[-1], order.end()[-2]);
    return build_transpose(builder, a, order);
  }

  ValueId conjugated(ValueId a) const {
    return is_complex(builder.module().type(a).dtype) ? builder.create("chlo.conj", {a}) : a;
  }

  ValueId solve(ValueId a, ValueId b, const Triangle& triangle) const {
    const EnumAttr transpose{"stablehlo", "transpose", std::string(triangle.transpose)};
    return builder.create("stablehlo.triangular_solve", {a, b},
                          Attrs{{"left_side", triangle.left},
                                {"lower", triangle.lower},
                                {"transpose_a", transpose},
                                {"unit_diagonal", triangle.unit_diagonal}});
  }

  // Rows compared with columns: GE is the lower triangle with the diagonal.
  ValueId mask(const TensorType& type, std::string_view direction) const {
    const auto last = static_cast<int64_t>(type.shape.size()) - 1;
    const ValueId rows = build_iota(builder, DType::kI32, type.shape, last - 1);
    return build_compare(builder, direction, rows, build_iota(builder, DType::kI32, type.shape, last));
  }

  ValueId kept(ValueId a, std::string_view direction) const {
    const TensorType type = builder.module().type(a);
    return builder.create("stablehlo.select", {mask(type, direction), a, build_zeros(builder, type)});
  }

  // The lower triangle with half of the diagonal.
  ValueId halved_triangle(ValueId a) const {
    const ValueId below = kept(a, "GT"), on = kept(a, "EQ");
    return (Term{&builder, below} + scaled(on, 0.5)).id;
  }

  Term scaled(ValueId a, double factor) const {
    const TensorType type = builder.module().type(a);
    if (!is_complex(type.dtype)) return Term{&builder, a} * factor;
    const DType part = type.dtype == DType::kC64 ? DType::kF32 : DType::kF64;
    const ValueId real = build_splat(builder, type.shape, Scalar::of_float(part, factor));
    return Term{&builder, a} * Term{&builder, build_convert(builder, real, type.dtype)};
  }
};

}  // namespace

// L̇ = L·Φ(L⁻¹·Ȧ·L⁻ᴴ), where Φ is halved_triangle, as a map of Ȧ, transposed; the matrix is taken as symmetric.
void vjp_cholesky(VjpContext& context) {
  const OpView op = context.op();
  const Matrices m{context.builder()};
  ValueId factor = context.result(), cotangent = context.cotangent();
  // The upper factor is the adjoint of the lower one, and so is its cotangent: one formula serves both.
  if (!is_set(op.attrs(), "lower")) {
    factor = m.conjugated(m.transposed(factor));
    cotangent = m.conjugated(m.transposed(cotangent));
  }
  const ValueId inner = m.halved_triangle(m.product(m.transposed(factor), cotangent));
  const ValueId half =
      m.solve(factor, inner, {.left = true, .lower = true, .unit_diagonal = false, .transpose = "TRANSPOSE"});
  const ValueId whole = m.solve(m.conjugated(factor), half,
                                {.left = false, .lower = true, .unit_diagonal = false, .transpose = "NO_TRANSPOSE"});
  // The gradient of a function of symmetric matrices: both triangles get one half.
  const Term sum = Term{&m.builder, whole} + Term{&m.builder, m.conjugated(m.transposed(whole))};
  context.set(0, m.scaled(sum.id, 0.5).id);
}

// x = M⁻¹·b with M = op(a): b̄ = M⁻ᵀ·x̄ and M̄ = -b̄·xᵀ. On the right side both products are the other way round.
void vjp_triangular_solve(VjpContext& context) {
  const OpView op = context.op();
  const Matrices m{context.builder()};
  const std::string transpose = op.attrs().get<EnumAttr>("transpose_a").value;
  const Triangle triangle{.left = op.attrs().get<bool>("left_side"),
                          .lower = op.attrs().get<bool>("lower"),
                          .unit_diagonal = op.attrs().get<bool>("unit_diagonal"),
                          // M⁻ᵀ: a transposed once more. The adjoint is undone by conjugating a.
                          .transpose = transpose == "NO_TRANSPOSE" ? "TRANSPOSE" : "NO_TRANSPOSE"};
  const bool is_adjoint = transpose == "ADJOINT";
  const ValueId a = is_adjoint ? m.conjugated(context.operand(0)) : context.operand(0);
  const ValueId b = m.solve(a, context.cotangent(), triangle);
  if (context.needs(1)) context.set(1, b);
  if (!context.needs(0)) return;
  const ValueId x = m.transposed(context.result());
  ValueId matrix = triangle.left ? m.product(b, x) : m.product(x, b);
  // From the cotangent of M = op(a) to that of a.
  if (transpose != "NO_TRANSPOSE") matrix = m.transposed(matrix);
  if (is_adjoint) matrix = m.conjugated(matrix);
  // Elements that the solver does not read have a cotangent of 0; a unit diagonal is not read either.
  const std::string_view strict = triangle.lower ? "GT" : "LT", whole = triangle.lower ? "GE" : "LE";
  context.set(0, (-Term{&m.builder, m.kept(matrix, triangle.unit_diagonal ? strict : whole)}).id);
}

}  // namespace shardwise
