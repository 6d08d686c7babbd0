// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/linearity.h"

#include "shardwise/ops/shared/reducers.h"

namespace shardwise {
namespace {

// A conversion to fewer bits rounds, and one between integers wraps around: neither distributes over a sum.
bool loses_bits(const OpView& op) {
  if (!op.def().traits.elementwise || op.operand_count() != 1) return false;
  const DType from = op.operand_type(0).dtype, to = op.result_type().dtype;
  return from != to && !(is_float(from) && is_float(to) && item_size(to) > item_size(from));
}

}  // namespace

Linear linear_in(const OpView& op, const ShardingRule& rule, Reducer reducer) {
  if (reducer == Reducer::kNone) return Linear::kNone;
  if (combines_by(op.def(), reducer)) return Linear::kJoint;  // it is associative and commutative
  const Linearity& linear = op.def().linear;
  // Linear in exact arithmetic, but f(a) + f(b) rounds twice where f(a + b) rounds once.
  if ((linear.reducers & reducer_bit(reducer)) == 0 || loses_bits(op)) return Linear::kNone;
  bool reduces = false;
  for (const Factor& factor : rule.factors()) {
    if (factor.kind != FactorKind::kReduction) continue;
    // A sum of products is no product of sums.
    if (factor.reducer != reducer) return Linear::kNone;
    reduces = true;
  }
  // An op with a region that reduces nothing may apply the region in a way that is not linear.
  return reduces || op.regions().empty() ? linear.kind : Linear::kNone;
}

}  // namespace shardwise
