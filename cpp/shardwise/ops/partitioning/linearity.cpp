// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/partitioning/linearity.h"

#include "shardwise/ops/partitioning/addends.h"
#include "shardwise/ops/shared/reducers.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {
namespace {

// A conversion to fewer bits rounds, and one between integers wraps around: neither distributes over a sum.
bool loses_bits(const OpView& op) {
  if (!op.def().traits.elementwise || op.operand_count() != 1) return false;
  const DType from = op.operand_type(0).dtype, to = op.result_type().dtype;
  return from != to && !(is_float(from) && is_float(to) && item_size(to) > item_size(from));
}

// Addends divided by 0 may be infinities of both signs.
bool is_divided_by_constant(const OpView& op) {
  const std::optional<Scalar> divisor = splat_value(op.module(), op.operand(1));
  return is_inexact(op.result_type().dtype) && divisor && !is_neutral(Reducer::kSum, *divisor);
}

// Addends that round, or overflow, where the whole sum does not.
bool narrows_addends(const OpView& op) {
  const DType dtype = op.result_type().dtype;
  return wide_addend(dtype) != dtype && op.def().addends == Addends::kNarrow && !only_copies(op.def());
}

}  // namespace

Linear linear_in(const OpView& op, const ShardingRule& rule, Reducer reducer) {
  if (reducer == Reducer::kNone || op.result_count() == 0) return Linear::kNone;
  if (reducer == Reducer::kSum && narrows_addends(op)) return Linear::kNone;
  if (combines_by(op.def(), reducer)) return Linear::kJoint;  // it is associative and commutative
  const Linearity& linear = op.def().linear;
  // Linear in exact arithmetic, but f(a) + f(b) rounds twice where f(a + b) rounds once.
  if ((linear.reducers & reducer_bit(reducer)) == 0 || loses_bits(op)) return Linear::kNone;
  if (linear.kind == Linear::kDividend) return is_divided_by_constant(op) ? Linear::kFirst : Linear::kNone;
  for (const Factor& factor : rule.factors()) {
    // A sum of products is no product of sums.
    if (factor.kind == FactorKind::kReduction && factor.reducer != reducer) return Linear::kNone;
  }
  // Any other region need not be linear.
  return op.regions().empty() || op_reducer(op) == reducer ? linear.kind : Linear::kNone;
}

// An elementwise op that distributes over every reducer computes nothing.
bool only_copies(const OpDef& def) {
  return def.traits.movement || (def.traits.elementwise && def.linear.reducers == kAllReducers);
}

bool is_free_addend(const OpView& op, size_t operand, Reducer reducer) {
  const std::optional<Scalar> splat = splat_value(op.module(), op.operand(operand));
  return splat && is_neutral(reducer, *splat);
}

}  // namespace shardwise
