// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/propagation/apply_constraints.h"
#include "shardwise/propagation/close_shardings.h"
#include "shardwise/propagation/data_flow_edges.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/propagation/sharding_groups.h"
#include "shardwise/propagation/shardy/divisible_borders.h"
#include "shardwise/propagation/shardy/lift_inlined_meshes.h"
#include "shardwise/propagation/shardy/populate_rules.h"
#include "shardwise/propagation/shardy/remove_size_one_axes.h"
#include "shardwise/propagation/split_constants.h"
#include "shardwise/transforms/call_regions.h"

namespace shardwise {
namespace {

using shardwise::in_place;

template <void (*edit)(Module&, PassContext&)>
Module in_place(Module module, PassContext& context) {
  edit(module, context);
  return module;
}

// Shardings change from here on, so an assigned program goes back to an earlier stage.
void make_regions(Module& module, PassContext& context) {
  module.stage = Stage::kGlobal;
  context.provenance.called = calls_to_regions(module);
}

void record(Module& module, PassContext& context) { record_annotations(module, context.provenance); }

void propagate_all(Module& module, PassContext& context) {
  propagate_shardings(module, context, context.options.strategy, Priorities::kUser);
}

void remove_unused(Module& module) { dce(module, UnusedConstraints::kRemove); }

void close(Module& module) {
  close_shardings(module);
  drop_populated_rules(module);
  module.stage = Stage::kPropagated;
}

void make_calls(Module& module, PassContext& context) {
  regions_to_calls(module, context.provenance.called);
  context.provenance.called.clear();
}

// The first steps rewrite the program as Shardy's import does, so that its rules apply. Annotations are recorded when
// the values exist that propagation sees, and before anything adds to them. Groups go before unused ops, which they
// would keep, and borders shrink while it is known which dims are open.
constexpr Pass kSteps[] = {
    kLiftInlinedMeshes,
    kRemoveSizeOneAxes,
    {kCallsToRegions, "replace each call by a region with the ops of its function", in_place<make_regions>},
    {"split_constants", "give each use of a constant its own copy", in_place<split_constants>},
    {"add_data_flow_edges", "add an edge op for each value that enters or leaves a region",
     in_place<add_data_flow_edges>},
    {"record_annotations", "remember which shardings the user wrote", in_place<record>},
    {"apply_constraints", "apply constraints to the values that nothing else shards", in_place<apply_constraints>},
    {"sync_sharding_groups", "give the members of a sharding group one sharding", in_place<sync_sharding_groups>},
    {"propagate_shardings", "propagate shardings along the factors of each op's rule", in_place<propagate_all>},
    {"sink_data_flow_edges", "give the sharding of each data-flow edge to its value", in_place<sink_data_flow_edges>},
    {"drop_sharding_groups", "remove sharding groups", in_place<drop_sharding_groups>},
    {"remove_unused_ops", "remove unused ops, constraints included", in_place<remove_unused>},
    {"shrink_borders", "shrink shardings that do not divide arguments and results",
     in_place<shrink_borders_to_divisible>},
    {"close_shardings", "close every dim, shard the values that nothing reached, and drop populated rules",
     in_place<close>},
    {"regions_to_calls", "make functions of the regions again that were called", in_place<make_calls>},
};

}  // namespace

std::span<const Pass> propagation_steps() { return kSteps; }

Module propagate(Module module, PassContext& context) {
  for (const Pass& step : kSteps) module = step.run(std::move(module), context);
  return module;
}

}  // namespace shardwise
