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

}  // namespace

bool is_widening(const OpView& op) {
  if (!op.def().traits.elementwise || op.operand_count() != 1 || op.result_count() != 1) return false;
  const DType from = op.operand_type(0).dtype, to = op.result_type().dtype;
  // A function of complex numbers or to truth values changes the dtype, too, and so do conversions that round.
  return from != to && is_float(from) && is_float(to) &&
         linear_in(op, sharding_rule(op), Reducer::kSum) == Linear::kFirst;
}

ValueId before_widening(const Module& module, ValueId value) {
  for (OpId id = module.value(value).op; id; id = module.value(value).op) {
    const OpView op(module, id);
    const bool moves = op.def().traits.movement && op.operand_count() == 1 && op.result_count() == 1 &&
                       op.def().traits.collective == CollectiveKind::kNone;
    if (!moves && !is_widening(op)) break;
    value = op.operand(0);
  }
  return value;
}

ProductFormat product_format(const OpView& product) {
  const Module& module = product.module();
  const DType lhs = module.type(before_widening(module, product.operand(0))).dtype;
  const DType rhs = module.type(before_widening(module, product.operand(1))).dtype;
  const DType operands = wider(lhs, rhs);
  if (has_default_precision(product)) return {.dtype = operands, .is_default_precision = true};
  const bool has_algorithm = product.attrs().find("algorithm") != nullptr;
  return has_algorithm ? format_of_algorithm(product, operands) : ProductFormat{.dtype = operands};
}

}  // namespace shardwise
