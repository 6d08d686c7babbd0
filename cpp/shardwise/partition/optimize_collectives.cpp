// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/optimize_collectives.h"

#include "shardwise/ir/rewrite/cse.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/partition/exchanges/join_ranges.h"
#include "shardwise/partition/exchanges/merge_exchanges.h"
#include "shardwise/partition/lift_constants.h"

namespace shardwise {

Module optimize_collectives(Module module, PassContext& context) {
  ExchangeChoices exchanges(context);
  const int64_t merged = merge_exchanges(module, exchanges);
  // If every user starts from the unannotated version, the annotation's collective is dead.
  context.counters.add("optimize_collectives.removed", dce(module));
  // After dce: exchanges that the merge left unused would widen the tiles that are joined.
  const int64_t joined = join_ranges(module, exchanges);
  exchanges.check_pins();
  lift_constants(module);
  context.counters.add("optimize_collectives.merged", merged + joined + cse(module));
  return module;
}

}  // namespace shardwise
