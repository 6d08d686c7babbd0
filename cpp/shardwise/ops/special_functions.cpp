// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/special_functions.h"

#include <algorithm>
#include <array>

#include "shardwise/base/narrow_float.h"
#include "shardwise/base/text.h"
#include "shardwise/ops/dim_checks.h"
#include "shardwise/ops/propagation_only.h"

namespace shardwise {
namespace {

// ---- infer ---------------------------------------------------------------------------------------------------------

void expect_same_types(const InferContext& op) {
  for (size_t i = 1; i < op.operand_count(); ++i) {
    if (op.operand(i).dtype != op.operand(0).dtype) {
      op.fail_dtype("operands must have the same dtype", op.operand_types_text(), "convert one of them first");
    }
    if (op.operand(i).shape != op.operand(0).shape) {
      op.fail_shape("operands must have the same shape", op.operand_types_text(), "broadcast one of them first");
    }
  }
}

void expect_float(const InferContext& op) {
  const DType dtype = op.operand(0).dtype;
  if (!is_float(dtype)) op.fail_dtype("operands must be floats", op.operand_types_text(), "convert them first");
}

// All operands and the result have one type.
template <int Count, bool Complex>
void infer_float(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(Count);
  if (!Complex || !is_complex(op.operand(0).dtype)) expect_float(op);
  expect_same_types(op);
  results.push_back(op.operand_type(0));
}

void infer_complex_only(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  if (!is_complex(op.operand(0).dtype)) op.fail_dtype("operands must be complex numbers", op.operand_types_text());
  results.push_back(op.operand_type(0));
}

void infer_mulhi(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  if (!is_integer(op.operand(0).dtype)) {
    op.fail_dtype("operands must be integers", op.operand_types_text(), "convert them first");
  }
  expect_same_types(op);
  results.push_back(op.operand_type(0));
}

void infer_predicate(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  expect_float(op);
  results.push_back(result_or_declared(op, {DType::kBool, op.operand(0).shape}));
}

DType complex_of(const InferContext& op) {
  const DType dtype = op.operand(0).dtype;
  if (dtype != DType::kF32 && dtype != DType::kF64) {
    op.fail_dtype("operands must be f32 or f64", op.operand_types_text(), "convert them first");
  }
  return dtype == DType::kF32 ? DType::kC64 : DType::kC128;
}

void infer_complex(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(2);
  expect_same_types(op);
  results.push_back(result_or_declared(op, {complex_of(op), op.operand(0).shape}));
}

void infer_part(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  const DType dtype = op.operand(0).dtype;
  if (!is_complex(dtype)) expect_float(op);
  const DType part = is_complex(dtype) ? part_of_complex(dtype) : dtype;
  results.push_back(result_or_declared(op, {part, op.operand(0).shape}));
}

void infer_constant_like(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(1);
  if (op.attrs().find("value") == nullptr) op.fail_shape("must have the attribute 'value'");
  const TensorType& result = op.declared_result();
  if (result.shape != op.operand(0).shape) {
    op.fail_shape("the result must have the operand's shape", str(op.operand(0).text(), " -> ", result.text()));
  }
  results.push_back(op.declared()[0]);
}

void infer_constant(const InferContext& op, std::vector<TypeId>& results) {
  op.expect_operands(0);
  const NdArray& data = op.attr<DenseAttr>("value").data;
  results.push_back(result_or_declared(op, {data.dtype(), data.shape()}));
}

// ---- ops that broadcast --------------------------------------------------------------------------------------------

// The result dim of each dim of an operand: the last dims (NumPy's rule), unless the op lists dims for an operand with
// fewer dims.
Dims broadcast_dims(const Attrs& attrs, int64_t ndim, int64_t result_ndim) {
  const auto* given = attrs.find<IntArray>("broadcast_dimensions");
  if (given != nullptr && ndim < result_ndim && static_cast<int64_t>(given->size()) == ndim) return *given;
  return identity_dims(ndim, result_ndim - ndim);
}

Dims broadcast_shape(const InferContext& op) {
  int64_t ndim = 0;
  for (size_t i = 0; i < op.operand_count(); ++i) ndim = std::max(ndim, op.operand(i).ndim());
  if (op.attrs().find("broadcast_dimensions") != nullptr) {
    expect_dims(op, "broadcast_dimensions", op.attr<IntArray>("broadcast_dimensions"), ndim);
  }
  Dims shape(static_cast<size_t>(ndim), 1);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const TensorType& operand = op.operand(i);
    const Dims dims = broadcast_dims(op.attrs(), operand.ndim(), ndim);
    for (size_t dim = 0; dim < dims.size(); ++dim) {
      int64_t& size = shape[static_cast<size_t>(dims[dim])];
      if (operand.shape[dim] != 1 && size != 1 && operand.shape[dim] != size) {
        op.fail_shape("sizes of operands must be equal, or 1", op.operand_types_text(), "reshape one of them first");
      }
      if (operand.shape[dim] != 1) size = operand.shape[dim];
    }
  }
  return shape;
}

enum class BroadcastKind : uint8_t { kSame, kFloats, kIntegers, kComplex, kTruth, kSelect };

template <BroadcastKind Kind>
void infer_broadcast(const InferContext& op, std::vector<TypeId>& results) {
  constexpr bool kSelects = Kind == BroadcastKind::kSelect;
  op.expect_operands(kSelects ? 3 : 2);
  const DType dtype = op.operand(kSelects ? 1 : 0).dtype;
  if (kSelects && op.operand(0).dtype != DType::kBool) op.fail_dtype("the predicate must be i1", op.operand(0).text());
  if (op.operand(op.operand_count() - 1).dtype != dtype) {
    op.fail_dtype("operands must have the same dtype", op.operand_types_text(), "convert one of them first");
  }
  if (Kind == BroadcastKind::kFloats) expect_float(op);
  if (Kind == BroadcastKind::kIntegers && !is_integer(dtype) && dtype != DType::kBool) {
    op.fail_dtype("operands must be booleans or integers", op.operand_types_text(), "convert them first");
  }
  if (Kind == BroadcastKind::kTruth) op.attr<EnumAttr>("comparison_direction");
  const DType result = Kind == BroadcastKind::kComplex ? complex_of(op)
                       : Kind == BroadcastKind::kTruth ? DType::kBool
                                                       : dtype;
  results.push_back(result_or_declared(op, {result, broadcast_shape(op)}));
}

ShardingRule rule_broadcast(const OpView& op) {
  RuleBuilder rule(op);
  const Dims& shape = op.result_type().shape;
  std::vector<FactorId> factors;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    factors.push_back(rule.factor(shape[dim]));
    rule.map(rule.result_tensor(0), dim, factors.back());
  }
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Dims& operand = op.operand_type(i).shape;
    const Dims dims = broadcast_dims(op.attrs(), op.operand_type(i).ndim(), op.result_type().ndim());
    for (size_t dim = 0; dim < dims.size(); ++dim) {
      const auto to = static_cast<size_t>(dims[dim]);
      // A broadcast dim of size 1 gets its own factor from the builder: it is whole on every device.
      if (operand[dim] == shape[to]) rule.map(i, dim, factors[to]);
    }
  }
  return rule.build();
}

// ---- rows ----------------------------------------------------------------------------------------------------------

constexpr Traits kElementwise{.elementwise = true};
constexpr std::string_view kUnaryFormat = "operands attr-dict `:` same-type `->` result-type";
constexpr std::string_view kBinaryFormat = "operands attr-dict `:` operand-type `->` result-type";
constexpr std::string_view kFunctionalFormat = "operands attr-dict `:` functional-type";
constexpr std::string_view kPartFormat = "operands attr-dict `:` same-or-functional-type";

constexpr OpDef unary(std::string_view name, InferFn infer, std::string_view doc) {
  return propagation_only_op(name, infer, rule_like_first_result, kUnaryFormat, doc, kElementwise);
}
constexpr OpDef predicate(std::string_view name, std::string_view doc) {
  return propagation_only_op(name, infer_predicate, rule_like_first_result, kBinaryFormat, doc, kElementwise);
}
constexpr OpDef binary(std::string_view name, InferFn infer, std::string_view doc) {
  return propagation_only_op(name, infer, rule_like_first_result, kBinaryFormat, doc, kElementwise);
}
template <BroadcastKind Kind = BroadcastKind::kSame>
constexpr OpDef broadcast(std::string_view name, std::string_view doc) {
  const std::string_view format = kFunctionalFormat;
  return propagation_only_op(name, infer_broadcast<Kind>, rule_broadcast, format, doc, kElementwise);
}

constexpr OpDef kSpecialFunctionOps[] = {
    propagation_only_op("stablehlo.complex", infer_complex, rule_like_first_result,
                        "operands attr-dict `:` complex-type", "Complex numbers from their parts (StableHLO complex).",
                        kElementwise),
    propagation_only_op("stablehlo.real", infer_part, rule_like_first_result, kPartFormat,
                        "The real parts (StableHLO real).", kElementwise),
    propagation_only_op("stablehlo.imag", infer_part, rule_like_first_result, kPartFormat,
                        "The imaginary parts (StableHLO imag).", kElementwise),
    unary("chlo.bessel_i1e", infer_float<1, true>, "Modified Bessel function of order 1, scaled (CHLO bessel_i1e)."),
    unary("chlo.conj", infer_float<1, true>, "Complex conjugate (CHLO conj)."),
    unary("chlo.digamma", infer_float<1, false>, "Derivative of lgamma (CHLO digamma)."),
    unary("chlo.erf_inv", infer_float<1, false>, "Inverse error function (CHLO erf_inv)."),
    unary("chlo.lgamma", infer_float<1, false>, "log|gamma(x)| (CHLO lgamma)."),
    unary("chlo.tan", infer_float<1, true>, "Tangent (CHLO tan)."),
    unary("chlo._asin_acos_kernel", infer_complex_only,
          "What complex arc sine and arc cosine share (CHLO _asin_acos_kernel)."),
    predicate("chlo.is_inf", "Whether infinite (CHLO is_inf)."),
    predicate("chlo.is_neg_inf", "Whether -infinity (CHLO is_neg_inf)."),
    predicate("chlo.is_pos_inf", "Whether +infinity (CHLO is_pos_inf)."),
    binary("chlo.next_after", infer_float<2, false>, "The next float towards another one (CHLO next_after)."),
    binary("chlo.polygamma", infer_float<2, false>, "Derivatives of digamma (CHLO polygamma)."),
    binary("chlo.zeta", infer_float<2, false>, "Hurwitz zeta function (CHLO zeta)."),
    binary("chlo.mulhi", infer_mulhi, "The high half of a product (CHLO mulhi)."),
    propagation_only_op("chlo.constant", infer_constant, no_rule, "attr-dict $value",
                        "A tensor of given elements (CHLO constant).", {.constant_like = true}),
    propagation_only_op("chlo.constant_like", infer_constant_like, rule_like_first_result, {},
                        "A constant of the operand's shape (CHLO constant_like).", kElementwise),
    broadcast("chlo.broadcast_add", "Sum (CHLO broadcast_add)."),
    broadcast<BroadcastKind::kIntegers>("chlo.broadcast_and", "Logical or bitwise and (CHLO broadcast_and)."),
    broadcast("chlo.broadcast_atan2", "Angle of the point (y, x) (CHLO broadcast_atan2)."),
    broadcast<BroadcastKind::kTruth>("chlo.broadcast_compare", "Comparison (CHLO broadcast_compare)."),
    broadcast<BroadcastKind::kComplex>("chlo.broadcast_complex", "Complex numbers (CHLO broadcast_complex)."),
    broadcast("chlo.broadcast_divide", "Quotient (CHLO broadcast_divide)."),
    broadcast("chlo.broadcast_maximum", "Larger one (CHLO broadcast_maximum)."),
    broadcast("chlo.broadcast_minimum", "Smaller one (CHLO broadcast_minimum)."),
    broadcast("chlo.broadcast_multiply", "Product (CHLO broadcast_multiply)."),
    broadcast("chlo.broadcast_next_after", "The next float (CHLO broadcast_next_after)."),
    broadcast<BroadcastKind::kIntegers>("chlo.broadcast_or", "Logical or bitwise or (CHLO broadcast_or)."),
    broadcast<BroadcastKind::kFloats>("chlo.broadcast_polygamma", "Derivatives of digamma (CHLO broadcast_polygamma)."),
    broadcast("chlo.broadcast_power", "x^y (CHLO broadcast_power)."),
    broadcast("chlo.broadcast_remainder", "Remainder (CHLO broadcast_remainder)."),
    broadcast<BroadcastKind::kSelect>("chlo.broadcast_select", "pred ? on_true : on_false (CHLO broadcast_select)."),
    broadcast("chlo.broadcast_shift_left", "Shift left (CHLO broadcast_shift_left)."),
    broadcast("chlo.broadcast_shift_right_arithmetic", "Shift right (CHLO broadcast_shift_right_arithmetic)."),
    broadcast("chlo.broadcast_shift_right_logical", "Shift right (CHLO broadcast_shift_right_logical)."),
    broadcast("chlo.broadcast_subtract", "Difference (CHLO broadcast_subtract)."),
    broadcast<BroadcastKind::kIntegers>("chlo.broadcast_xor", "Exclusive or (CHLO broadcast_xor)."),
    broadcast<BroadcastKind::kFloats>("chlo.broadcast_zeta", "Hurwitz zeta function (CHLO broadcast_zeta)."),
};
static_assert(all_complete(kSpecialFunctionOps));

}  // namespace

std::span<const OpDef> special_function_ops() { return kSpecialFunctionOps; }

}  // namespace shardwise
