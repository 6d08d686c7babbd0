// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/registry.h"

#include <unordered_map>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/ops/collectives/local_collectives.h"
#include "shardwise/ops/collectives/varying.h"
#include "shardwise/ops/contraction/convolution.h"
#include "shardwise/ops/contraction/dot_general.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/control/custom_call.h"
#include "shardwise/ops/control/scan.h"
#include "shardwise/ops/control/tokens.h"
#include "shardwise/ops/create/create.h"
#include "shardwise/ops/elementwise/elementwise.h"
#include "shardwise/ops/families.h"
#include "shardwise/ops/indexing/indexing.h"
#include "shardwise/ops/layout/layout.h"
#include "shardwise/ops/linalg/fft.h"
#include "shardwise/ops/linalg/lapack_calls.h"
#include "shardwise/ops/reduce/reduce.h"
#include "shardwise/ops/sharding/constraints.h"
#include "shardwise/ops/sharding/inlined_regions.h"
#include "shardwise/ops/sharding/manual_computation.h"
#include "shardwise/ops/sharding/propagation_control.h"
#include "shardwise/ops/shared/refusals.h"
#include "shardwise/ops/slicing/dynamic_slicing.h"
#include "shardwise/ops/slicing/slicing.h"
#include "shardwise/ops/sort/sort.h"
#include "shardwise/ops/sort/top_k.h"
#include "shardwise/ops/sort/top_k_calls.h"
#include "shardwise/ops/window/reduce_window.h"
#include "shardwise/ops/window/select_and_scatter.h"

namespace shardwise {
namespace {

std::vector<const OpDef*> join_families() {
  std::vector<const OpDef*> ops;
  // An explicit list, not registration by static objects: a linker drops those of a library file that nothing refers
  // to, and their order is not defined. The order here is that of all_ops().
  for (std::span<const OpDef> family : {elementwise_ops(),
                                        reduce_ops(),
                                        reduce_window_ops(),
                                        dot_general_ops(),
                                        layout_ops(),
                                        slicing_ops(),
                                        dynamic_slicing_ops(),
                                        indexing_ops(),
                                        create_ops(),
                                        constraint_ops(),
                                        local_collective_ops(),
                                        complex_ops(),
                                        special_function_ops(),
                                        chlo_broadcast_ops(),
                                        chlo_constant_ops(),
                                        convolution_ops(),
                                        select_and_scatter_ops(),
                                        linalg_ops(),
                                        fft_ops(),
                                        sort_ops(),
                                        top_k_ops(),
                                        batch_norm_ops(),
                                        dot_ops(),
                                        einsum_ops(),
                                        ragged_dot_ops(),
                                        broadcast_ops(),
                                        dynamic_shape_ops(),
                                        composed_gather_ops(),
                                        custom_call_ops(),
                                        token_ops(),
                                        rng_ops(),
                                        stablehlo_collective_ops(),
                                        varying_ops(),
                                        control_ops(),
                                        scan_ops(),
                                        manual_computation_ops(),
                                        inlined_region_ops(),
                                        propagation_control_ops(),
                                        shardy_collective_ops()}) {
    for (const OpDef& def : family) ops.push_back(&def);
  }
  return ops;
}

const OpDef* lookup(std::string_view name) {
  // Never destroyed, like the list of ops: threads may look up ops while the process exits.
  static const auto* index = [] {
    auto* ops = new std::unordered_map<std::string_view, const OpDef*>;
    for (const OpDef* def : all_ops()) {
      // Two families are edited in two files: only here can a name that both define be found.
      check_internal(ops->emplace(def->name, def).second, "two ops share one name");
    }
    ops->emplace("sdy.constant", ops->at("stablehlo.constant"));  // the import of sdy renames every constant
    return ops;
  }();
  const auto it = index->find(name);
  return it == index->end() ? nullptr : it->second;
}

}  // namespace

std::span<const OpDef* const> all_ops() {
  // Pointers into the families' constexpr tables: an OpDef is never copied, so that its address is its identity.
  static const auto* ops = new std::vector<const OpDef*>(join_families());
  return *ops;
}

void register_ops() {
  static const bool kOnce = [] {
    // Custom calls are found by their target, which is an attribute, so they are no rows of the list above.
    register_linalg_calls();
    register_top_k_calls();
    register_identity_calls();
    register_refused_calls();
    return true;
  }();
  static_cast<void>(kOnce);
  // ir/ creates ops by name, but must not link ops/.
  install_op_lookup(lookup);
  install_refusals(refusal_table());
}

}  // namespace shardwise
