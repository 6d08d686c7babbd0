// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/provenance.h"

namespace shardwise {

void record_annotations([[maybe_unused]] const Module& module, [[maybe_unused]] Provenance& provenance) {
#ifndef SHARDWISE_NO_PROVENANCE
  provenance.initial.assign(module.value_count(), ShardingId{});
  for (uint32_t v = 1; v < module.value_count(); ++v) provenance.initial[v] = module.value(ValueId{v}).sharding;
  provenance.initial_results = module.main().result_shardings;
#endif
}

}  // namespace shardwise
