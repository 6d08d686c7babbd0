// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/provenance.h"

namespace shardwise {

void record_annotations(const Module& module, Provenance& provenance) {
  provenance.initial.assign(module.value_count(), ShardingId{});
  for (uint32_t v = 1; v < module.value_count(); ++v) provenance.initial[v] = module.value(ValueId{v}).sharding;
  provenance.initial_results = module.main().result_shardings;
}

}  // namespace shardwise
