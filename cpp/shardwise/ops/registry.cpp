// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/registry.h"

#include <unordered_map>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/ops/annotations.h"
#include "shardwise/ops/batch_norm.h"
#include "shardwise/ops/collectives.h"
#include "shardwise/ops/composed.h"
#include "shardwise/ops/contractions.h"
#include "shardwise/ops/control.h"
#include "shardwise/ops/convolution.h"
#include "shardwise/ops/create.h"
#include "shardwise/ops/custom_call.h"
#include "shardwise/ops/device_collectives.h"
#include "shardwise/ops/dot.h"
#include "shardwise/ops/dynamic_slicing.h"
#include "shardwise/ops/effects.h"
#include "shardwise/ops/elementwise.h"
#include "shardwise/ops/global_collectives.h"
#include "shardwise/ops/indexing.h"
#include "shardwise/ops/layout.h"
#include "shardwise/ops/linalg.h"
#include "shardwise/ops/manual.h"
#include "shardwise/ops/reduce.h"
#include "shardwise/ops/select_and_scatter.h"
#include "shardwise/ops/slicing.h"
#include "shardwise/ops/sort.h"
#include "shardwise/ops/special_functions.h"
#include "shardwise/ops/window.h"

namespace shardwise {
namespace {

std::vector<const OpDef*> join_families() {
  std::vector<const OpDef*> ops;
  for (std::span<const OpDef> family : {elementwise_ops(),      reduce_ops(),
                                        window_ops(),           dot_ops(),
                                        layout_ops(),           slicing_ops(),
                                        dynamic_slicing_ops(),  indexing_ops(),
                                        create_ops(),           annotation_ops(),
                                        collective_ops(),       special_function_ops(),
                                        convolution_ops(),      select_and_scatter_ops(),
                                        linalg_ops(),           sort_ops(),
                                        batch_norm_ops(),       contraction_ops(),
                                        composed_ops(),         custom_call_ops(),
                                        effect_ops(),           device_collective_ops(),
                                        control_ops(),          manual_ops(),
                                        global_collective_ops()}) {
    for (const OpDef& def : family) ops.push_back(&def);
  }
  return ops;
}

const OpDef* lookup(std::string_view name) {
  // Never destroyed, like the list of ops: threads may look up ops while the process exits.
  static const auto* index = [] {
    auto* ops = new std::unordered_map<std::string_view, const OpDef*>;
    for (const OpDef* def : all_ops()) {
      check_internal(ops->emplace(def->name, def).second, "two ops share one name");
    }
    return ops;
  }();
  const auto it = index->find(name);
  return it == index->end() ? nullptr : it->second;
}

}  // namespace

std::span<const OpDef* const> all_ops() {
  static const auto* ops = new std::vector<const OpDef*>(join_families());
  return *ops;
}

void register_ops() { install_op_lookup(lookup); }

}  // namespace shardwise
