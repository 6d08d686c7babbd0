// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/product_format.h"

#include "shardwise/ir/op_def.h"
#include "shardwise/ops/contraction/dot_algorithm.h"
#include "shardwise/ops/partitioning/linearity.h"

namespace shardwise {
namespace {

// Of two operands, the format that holds both: bf16 with bf16, but f32 where only one of them was narrow.
DType wider(DType a, DType b) { return bit_width(a) < bit_width(b) ? b : a; }

ProductFormat format_of_algorithm(const OpView& product, DType operands) {
  using Precision = DotAlgorithm::Precision;
  const DotAlgorithm algorithm = dot_algorithm(product);
  const auto repeats = static_cast<int64_t>(algorithm.products.size());
  switch (algorithm.precision) {
    case Precision::kBF16: return {.dtype = DType::kBF16, .repeats = repeats};
    case Precision::kF16: return {.dtype = DType::kF16, .repeats = repeats};
    // Hardware that rounds operands of a float32 product by default rounds them no more than to tf32.
    case Precision::kTF32: return {.dtype = DType::kF32, .is_default_precision = true, .repeats = repeats};
    case Precision::kOperand: break;
  }
  return {.dtype = operands};
}

bool is_conversion(const OpView& op) {
  return op.def().traits.elementwise && op.operand_count() == 1 && op.result_count() == 1 &&
         op.operand_type(0).dtype != op.result_type().dtype;
}

bool is_float_widening(const OpView& op) {
  if (!is_conversion(op)) return false;
  // A function of complex numbers or to truth values changes the dtype, too, and so do conversions that round.
  return is_float(op.operand_type(0).dtype) && is_float(op.result_type().dtype) &&
         linear_in(op, sharding_rule(op), Reducer::kSum) == Linear::kFirst;
}

// The floats that hold each integer from -2^n to 2^n, by n.
int exact_integer_bits(DType dtype) {
  switch (dtype) {
    case DType::kBF16: return 8;
    case DType::kF16: return 11;
    case DType::kF32: return 24;
    case DType::kF64: return 53;
    default: return 0;
  }
}

bool is_integer_widening(const OpView& op) {
  if (!is_conversion(op)) return false;
  const DType from = op.operand_type(0).dtype;
  const int magnitude = bit_width(from) - (is_signed_integer(from) ? 1 : 0);
  return is_integer(from) && magnitude <= exact_integer_bits(op.result_type().dtype);
}

// Before the ops for which `is_passed` holds, and before movement.
ValueId before(const Module& module, ValueId value, bool (*is_passed)(const OpView&)) {
  for (OpId id = module.value(value).op; id; id = module.value(value).op) {
    const OpView op(module, id);
    const bool moves = op.def().traits.movement && op.operand_count() == 1 && op.result_count() == 1 &&
                       op.def().traits.collective == CollectiveKind::kNone;
    if (!moves && !is_passed(op)) break;
    value = op.operand(0);
  }
  return value;
}

}  // namespace

bool is_widening(const OpView& op) { return is_float_widening(op) || is_integer_widening(op); }

ValueId before_widening(const Module& module, ValueId value) { return before(module, value, is_widening); }

ProductFormat product_format(const OpView& product) {
  const Module& module = product.module();
  const auto format = [&](size_t operand) {
    return module.type(before(module, product.operand(operand), is_float_widening)).dtype;
  };
  const DType lhs = format(0), rhs = format(1);
  const DType operands = wider(lhs, rhs);
  if (has_default_precision(product)) return {.dtype = operands, .is_default_precision = true};
  const bool has_algorithm = product.attrs().find("algorithm") != nullptr;
  return has_algorithm ? format_of_algorithm(product, operands) : ProductFormat{.dtype = operands};
}

}  // namespace shardwise
