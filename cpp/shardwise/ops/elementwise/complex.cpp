// SPDX-License-Identifier: Apache-2.0
//
// Complex numbers from their parts, their parts, and what exists for complex numbers only; no kernels.
//
//   %2 = stablehlo.complex %0, %1 : tensor<4xcomplex<f32>>                                    ([i], [i])->([i]) {i=4}
#include "shardwise/ops/build/term.h"
#include "shardwise/ops/elementwise/elementwise.h"
#include "shardwise/ops/elementwise/elementwise_rows.h"
#include "shardwise/ops/elementwise/operand_checks.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"
#include "shardwise/tile/program.h"

namespace shardwise {
namespace {

void infer_complex_only(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  if (!is_complex(op.operand(0).dtype)) op.fail_dtype("operands must be complex numbers", op.operand_types_text());
  results.push_back(op.operand_type(0));
}

void infer_complex(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  expect_same_types(op);
  results.push_back(result_or_declared(op, {complex_of(op), op.operand(0).shape}));
}

void infer_part(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const DType dtype = op.operand(0).dtype;
  // StableHLO lets both take real numbers: real is the identity then, and imag is 0.
  if (!is_complex(dtype)) expect_float(op);
  const DType part = is_complex(dtype) ? part_of_complex(dtype) : dtype;
  results.push_back(result_or_declared(op, {part, op.operand(0).shape}));
}

// ---- decompositions ------------------------------------------------------------------------------------------------

Term real(Term x) { return x.op("stablehlo.real"); }
Term imag(Term x) { return x.op("stablehlo.imag"); }
Term complex(Term x, Term y) { return x.op("stablehlo.complex", y); }

void decompose_conj(DecomposeContext& context) {
  const Term x{&context.builder(), context.operand(0)};
  context.set_result(0, is_complex(x.type().dtype) ? complex(real(x), -imag(x)).id : x.id);
}

// asin(z) is atan2(real(z), real(w)) and, up to its sign, imag(w); from Kahan, "Branch Cuts for Complex Elementary
// Functions", 1987.
void decompose_asin_acos_kernel(DecomposeContext& context) {
  const Term z{&context.builder(), context.operand(0)};
  // Two roots instead of that of 1 - z^2, which would cancel near 1 and -1, and be on another branch for some z.
  const Term roots = (1.0 - z).op("stablehlo.sqrt") * (z + 1.0).op("stablehlo.sqrt");
  context.set_result(0, complex(real(roots), real(z.op("chlo.acosh")).op("stablehlo.abs")).id);
}

// ---- gradients: those of JAX, in which the cotangent of z stands for the linear function real(cotangent · z) --------

// g · real(z) = real((g + 0i) · z)
void vjp_real(VjpContext& context) {
  if (!context.needs(0)) return;
  const Term g{&context.builder(), context.cotangent()};
  const bool from_complex = is_complex(context.op().operand_type(0).dtype);
  context.set(0, from_complex ? complex(g, g.splat(0.0)).id : g.id);
}

// g · imag(z) = real((0 - gi) · z); of a real number, imag is constant.
void vjp_imag(VjpContext& context) {
  if (!context.needs(0) || !is_complex(context.op().operand_type(0).dtype)) return;
  const Term g{&context.builder(), context.cotangent()};
  context.set(0, complex(g.splat(0.0), -g).id);
}

// real(c · (x + iy)) = real(c) · x - imag(c) · y
void vjp_complex(VjpContext& context) {
  if (context.needs(0)) context.set(0, real({&context.builder(), context.cotangent()}).id);
  if (context.needs(1)) context.set(1, (-imag({&context.builder(), context.cotangent()})).id);
}

// ---- rows -----------------------------------------------------------------------------------------------------------

constexpr OpDef kComplexOps[] = {
    elementwise_row("stablehlo.complex", infer_complex, tile_code<TileCode::kComplex>, vjp_complex, {},
                    "operands attr-dict `:` complex-type", "Complex numbers from their parts (StableHLO complex)."),
    elementwise_row("stablehlo.real", infer_part, tile_code<TileCode::kRealPart>, vjp_real, {}, kSameFormat,
                    "The real parts (StableHLO real)."),
    elementwise_row("stablehlo.imag", infer_part, tile_code<TileCode::kImagPart>, vjp_imag, {}, kSameFormat,
                    "The imaginary parts (StableHLO imag)."),
    composed_op("chlo.conj", infer_float<1, true>, rule_like_first_result, decompose_conj, kUnaryFormat,
                "Complex conjugate (CHLO conj).", kElementwise),
    composed_op("chlo._asin_acos_kernel", infer_complex_only, rule_like_first_result, decompose_asin_acos_kernel,
                kUnaryFormat, "The common part of complex arc sine and arc cosine (CHLO _asin_acos_kernel).",
                kElementwise),
};
static_assert(all_complete(kComplexOps));

}  // namespace

std::span<const OpDef> complex_ops() { return kComplexOps; }

}  // namespace shardwise
