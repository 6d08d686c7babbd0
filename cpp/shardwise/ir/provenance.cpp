// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/provenance.h"

namespace shardwise {

void record_annotations([[maybe_unused]] const Module& module, [[maybe_unused]] Provenance& provenance) {
#ifndef SHARDWISE_NO_PROVENANCE
  provenance.initial.clear();
  provenance.initial.reserve(module.value_count());
  for (uint32_t v = 0; v < module.value_count(); ++v) provenance.initial.push_back(module.value(ValueId{v}).sharding);
  provenance.initial_results = module.main().result_shardings;
#endif
}

}  // namespace shardwise
