// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/optimize_collectives.h"

#include "shardwise/ir/rewrite/cse.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/partition/merge_exchanges.h"

namespace shardwise {

Module optimize_collectives(Module module, PassContext& context) {
  // A value that was annotated, but that all its users took from where it was before, leaves a collective that nobody
  // needs.
  const int64_t exchanges = merge_exchanges(module);
  context.counters.add("optimize_collectives.removed", dce(module));
  context.counters.add("optimize_collectives.merged", exchanges + cse(module));
  return module;
}

}  // namespace shardwise
