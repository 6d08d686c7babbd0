// SPDX-License-Identifier: Apache-2.0
//
// CHLO's binary ops that broadcast their operands as NumPy does; no kernels.
//
//   %2 = chlo.broadcast_add %0, %1 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
//   ([i, j], [j])->([i, j]) {i=8, j=4}
#include <algorithm>
#include <limits>

#include "shardwise/base/text.h"
#include "shardwise/ops/build/layout.h"
#include "shardwise/ops/elementwise/elementwise_rows.h"
#include "shardwise/ops/elementwise/operand_checks.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/shared/dim_checks.h"
#include "shardwise/ops/shared/op_kinds.h"

namespace shardwise {
namespace {

// The result dim of each dim of an operand: the last ones, unless an operand with fewer dims says which.
Dims broadcast_dims(const Attrs& attrs, int64_t ndim, int64_t result_ndim) {
  const auto* given = attrs.find<IntArray>("broadcast_dimensions");
  if (given != nullptr && ndim < result_ndim && static_cast<int64_t>(given->size()) == ndim) return *given;
  return identity_dims(ndim, result_ndim - ndim);
}

Dims broadcast_shape(const InferContext& op) {
  int64_t ndim = 0;
  int64_t least_ndim = std::numeric_limits<int64_t>::max();
  for (size_t i = 0; i < op.operand_count(); ++i) {
    ndim = std::max(ndim, op.operand(i).ndim());
    least_ndim = std::min(least_ndim, op.operand(i).ndim());
  }
  if (op.attrs().find("broadcast_dimensions") != nullptr) {
    const Dims& dims = expect_list(op, "broadcast_dimensions", least_ndim);
    expect_dims(op, "broadcast_dimensions", dims, ndim);
    // Between operands of one ndim the attribute has nothing to place, so another order would be ignored.
    if (least_ndim == ndim && !std::ranges::is_sorted(dims)) {
      op.fail_shape("broadcast_dimensions of operands with the same ndim must be in order", str(dims),
                    "transpose first");
    }
  }
  Dims shape(static_cast<size_t>(ndim), 1);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const TensorType& operand = op.operand(i);
    const Dims dims = broadcast_dims(op.attrs(), operand.ndim(), ndim);
    for (size_t dim = 0; dim < dims.size(); ++dim) {
      int64_t& size = shape[static_cast<size_t>(dims[dim])];
      expect_shape(op, operand.shape[dim] == 1 || size == 1 || operand.shape[dim] == size,
                   "sizes of operands must be equal, or 1", "reshape one of them first");
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
  // Data of a select are the operands 1 and 2; the predicate before them has a dtype of its own.
  const DType dtype = op.operand(kSelects ? 1 : 0).dtype;
  if (kSelects && op.operand(0).dtype != DType::kBool) op.fail_dtype("the predicate must be i1", op.operand(0).text());
  op.expect_same_dtype(kSelects ? 1 : 0, op.operand_count() - 1);
  if (Kind == BroadcastKind::kFloats) expect_float(op);
  expect_dtype(op, Kind != BroadcastKind::kIntegers || is_integer(dtype) || dtype == DType::kBool,
               "operands must be booleans or integers", "convert them first");
  if (Kind == BroadcastKind::kTruth) op.attr<EnumAttr>("comparison_direction");
  const DType result = Kind == BroadcastKind::kComplex ? complex_of(op)
                       : Kind == BroadcastKind::kTruth ? DType::kBool
                                                       : dtype;
  results.push_back(result_or_declared(op, {result, broadcast_shape(op)}));
}

ShardingRule rule_chlo_broadcast(const OpView& op) {
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
      // A repeated dim of size 1 is not tied to the result's dim: every device needs its one element.
      if (operand[dim] == shape[to]) rule.map(i, dim, factors[to]);
    }
  }
  return rule.build();
}

constexpr std::string_view kPrefix = "chlo.broadcast_";

// The name without `broadcast_`; what CHLO and StableHLO both have is StableHLO's.
const OpDef& op_without_broadcast(std::string_view name) {
  const std::string_view stem = name.substr(kPrefix.size());
  const OpDef* def = find_op(str("stablehlo.", stem));
  return def != nullptr ? *def : get_op(str("chlo.", stem));
}

// broadcast_dimensions has done its work, and CHLO's enums become StableHLO's, which have the same words.
Attrs attrs_without_broadcast(const Attrs& attrs) {
  Attrs kept;
  if (const auto* direction = attrs.find<EnumAttr>("comparison_direction")) {
    kept.set("comparison_direction", EnumAttr{"stablehlo", "comparison_direction", direction->value});
  }
  if (const auto* type = attrs.find<EnumAttr>("compare_type")) {
    kept.set("compare_type", EnumAttr{"stablehlo", "comparison_type", type->value});
  }
  return kept;
}

void decompose_chlo_broadcast(DecomposeContext& context) {
  const OpView op = context.op();
  Builder& builder = context.builder();
  const TensorType& result = op.result_type();
  std::vector<ValueId> operands;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    const Dims dims = broadcast_dims(op.attrs(), op.operand_type(i).ndim(), result.ndim());
    operands.push_back(build_broadcast(builder, context.operand(i), result.shape, dims));
  }
  const AttrsId attrs = builder.context().intern(attrs_without_broadcast(op.attrs()));
  context.set_result(0, builder.create(op_without_broadcast(op.name()), operands, attrs));
}

template <BroadcastKind Kind = BroadcastKind::kSame>
constexpr OpDef broadcast(std::string_view name, std::string_view doc) {
  return composed_op(name, infer_broadcast<Kind>, rule_chlo_broadcast, decompose_chlo_broadcast, kFunctionalFormat, doc,
                     kElementwise);
}
template <BroadcastKind Kind>
constexpr OpDef broadcast_stepped(std::string_view name, std::string_view reason, std::string_view doc) {
  return without_gradient(broadcast<Kind>(name, doc), reason);
}

constexpr OpDef kChloBroadcastOps[] = {
    broadcast("chlo.broadcast_add", "Sum (CHLO broadcast_add)."),
    broadcast_stepped<BroadcastKind::kIntegers>("chlo.broadcast_and", kBitwise,
                                                "Logical or bitwise and (CHLO broadcast_and)."),
    broadcast("chlo.broadcast_atan2", "Angle of the point (y, x) (CHLO broadcast_atan2)."),
    broadcast_stepped<BroadcastKind::kTruth>("chlo.broadcast_compare", kTruth, "Comparison (CHLO broadcast_compare)."),
    broadcast<BroadcastKind::kComplex>("chlo.broadcast_complex", "Complex numbers (CHLO broadcast_complex)."),
    broadcast("chlo.broadcast_divide", "Quotient (CHLO broadcast_divide)."),
    broadcast("chlo.broadcast_maximum", "Larger one (CHLO broadcast_maximum)."),
    broadcast("chlo.broadcast_minimum", "Smaller one (CHLO broadcast_minimum)."),
    broadcast("chlo.broadcast_multiply", "Product (CHLO broadcast_multiply)."),
    broadcast_stepped<BroadcastKind::kSame>("chlo.broadcast_next_after", "it steps from one float to the next",
                                            "The next float (CHLO broadcast_next_after)."),
    broadcast_stepped<BroadcastKind::kIntegers>("chlo.broadcast_or", kBitwise,
                                                "Logical or bitwise or (CHLO broadcast_or)."),
    broadcast<BroadcastKind::kFloats>("chlo.broadcast_polygamma", "Derivatives of digamma (CHLO broadcast_polygamma)."),
    broadcast("chlo.broadcast_power", "x^y (CHLO broadcast_power)."),
    broadcast("chlo.broadcast_remainder", "Remainder (CHLO broadcast_remainder)."),
    broadcast<BroadcastKind::kSelect>("chlo.broadcast_select", "pred ? on_true : on_false (CHLO broadcast_select)."),
    broadcast_stepped<BroadcastKind::kSame>("chlo.broadcast_shift_left", kBitwise,
                                            "Shift left (CHLO broadcast_shift_left)."),
    broadcast_stepped<BroadcastKind::kSame>("chlo.broadcast_shift_right_arithmetic", kBitwise,
                                            "Shift right (CHLO broadcast_shift_right_arithmetic)."),
    broadcast_stepped<BroadcastKind::kSame>("chlo.broadcast_shift_right_logical", kBitwise,
                                            "Shift right (CHLO broadcast_shift_right_logical)."),
    broadcast("chlo.broadcast_subtract", "Difference (CHLO broadcast_subtract)."),
    broadcast_stepped<BroadcastKind::kIntegers>("chlo.broadcast_xor", kBitwise, "Exclusive or (CHLO broadcast_xor)."),
    broadcast<BroadcastKind::kFloats>("chlo.broadcast_zeta", "Hurwitz zeta function (CHLO broadcast_zeta)."),
};
static_assert(all_complete(kChloBroadcastOps));

}  // namespace

std::span<const OpDef> chlo_broadcast_ops() { return kChloBroadcastOps; }

}  // namespace shardwise
