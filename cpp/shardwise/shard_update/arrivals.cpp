// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/arrivals.h"

#include <algorithm>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ops/sharding/constraints.h"

namespace shardwise {

Arrivals::Arrivals(Module& module) {
  Rewrite rewrite(module);
  for (const ValueId argument : module.region(module.main().body).arguments) {
    const auto use = only_use(module, argument);
    const bool is_placed = static_cast<bool>(module.value(argument).sharding);
    if (!is_placed || !use || !use->op || !module.op(use->op).def->traits.constraint) continue;
    // Constraints of users have no cause.
    const std::string* cause = module.attrs(use->op).find<std::string>(kCauseAttr);
    if (cause == nullptr) continue;
    const ValueId constrained = module.result(use->op);
    arrivals_.push_back({.argument = argument,
                         .sharding = module.value(argument).sharding,
                         .given = module.value(constrained).sharding,
                         .cause = *cause});
    module.value(argument).sharding = module.value(constrained).sharding;
    rewrite.replace(constrained, argument);
    rewrite.erase(use->op);
  }
}

ShardingId Arrivals::of(ValueId argument) const {
  const auto found = std::ranges::find(arrivals_, argument, &Arrival::argument);
  return found == arrivals_.end() ? ShardingId{} : found->sharding;
}

void Arrivals::restore(Module& module) const {
  Rewrite rewrite(module);
  for (const Arrival& arrival : arrivals_) {
    const bool is_split = !module.value(arrival.argument).sharding;
    module.value(arrival.argument).sharding = arrival.sharding;
    if (is_split) continue;
    const LocId loc = module.context().without_names(rewrite.loc(arrival.argument));
    const ValueId made = rewrite.insert(rewrite.behind(arrival.argument), loc, [&](Builder& builder) {
      const TensorSharding given = module.context().sharding(arrival.given);
      return create_sharding_constraint(builder, arrival.argument, given, arrival.cause);
    });
    rewrite.replace(arrival.argument, made, module.value(made).op);
  }
}

}  // namespace shardwise
