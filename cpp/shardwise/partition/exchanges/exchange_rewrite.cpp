// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/exchanges/exchange_rewrite.h"

#include "shardwise/emission/cause.h"
#include "shardwise/ops/build/collectives.h"
#include "shardwise/ops/collectives/exchange.h"
#include "shardwise/ops/collectives/local_collectives.h"
#include "shardwise/ops/shared/scalars.h"

namespace shardwise {

bool is_collective(const Module& module, OpId id, CollectiveKind kind) {
  return id && is_local_collective(OpView(module, id)) && module.op(id).def->traits.collective == kind;
}

ValueId fill_of(const OpView& exchange) {
  return has_fill(exchange) ? exchange.operand(exchange.operand_count() - 1) : ValueId{};
}

bool same_fill(const Module& module, DType dtype, ValueId a, ValueId b) {
  if (a == b) return true;
  // No fill means zeros, so it equals a constant 0, however that was made.
  const auto known = [&](ValueId fill) { return fill ? splat_value(module, fill) : scalar_of(dtype, 0); };
  const std::optional<Scalar> left = known(a), right = known(b);
  return left && right && *left == *right;
}

ValueId ExchangeRewrite::create(OpId at, std::span<const ValueId> operands, ValueId fill, const ExchangeMap& map) {
  const OpView op(module_, at);
  const ValueId made = rewrite_.insert(rewrite_.before(at), op.loc(), [&](Builder& builder) {
    builder.set_loc(op.loc(), module_.op(at).origin);
    return create_exchange(builder, *collective_mesh(op), operands, fill, map);
  });
  copy_cause(module_, op, made);
  return made;
}

void ExchangeRewrite::replace(OpId id, ValueId made) {
  const ValueId old = OpView(module_, id).result();
  module_.value(made).sharding = module_.value(old).sharding;
  module_.value(made).origin = module_.value(old).origin;
  // The new value holds the same part of the same global value; its users read that part for their layouts.
  module_.set_part(made, module_.part(old));
  rewrite_.replace(id, std::span(&made, 1));
  ++replaced_;
}

}  // namespace shardwise
