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

// Shardings change from here on, so an assigned program goes back to an earlier stage.
Module make_regions(Module module, PassContext& context) {
  module.stage = Stage::kGlobal;
  context.provenance.called = calls_to_regions(module);
  return module;
}

Module split(Module module, PassContext& context) {
  context.counters.add("propagate.copies", split_constants(module));
  return module;
}

Module record(Module module, PassContext& context) {
  record_annotations(module, context.provenance);
  return module;
}

Module apply(Module module, PassContext& context) {
  apply_constraints(module, context.provenance);
  return module;
}

Module sync_groups(Module module, PassContext& context) {
  sync_sharding_groups(module, context.provenance, context.warnings);
  return module;
}

Module propagate_all(Module module, PassContext& context) {
  propagate_shardings(module, context, context.options.strategy, Priorities::kUser);
  return module;
}

Module sink_edges(Module module, PassContext& context) {
  sink_data_flow_edges(module, context.provenance);
  return module;
}

Module remove_unused(Module module, PassContext&) {
  dce(module, UnusedConstraints::kRemove);
  return module;
}

Module shrink_borders(Module module, PassContext& context) {
  if (context.options.strict_divisible) shrink_borders_to_divisible(module);
  return module;
}

Module close(Module module, PassContext&) {
  close_shardings(module);
  drop_populated_rules(module);
  module.stage = Stage::kPropagated;
  return module;
}

Module make_calls(Module module, PassContext& context) {
  regions_to_calls(module, context.provenance.called);
  context.provenance.called.clear();
  return module;
}

// The first steps rewrite the program as Shardy's import does, so that its rules apply. Annotations are recorded when
// the values exist that propagation sees, and before anything adds to them. Groups go before unused ops, which they
// would keep, and borders shrink while it is known which dims are open.
constexpr Pass kSteps[] = {
    kLiftInlinedMeshes,
    kRemoveSizeOneAxes,
    {"calls_to_regions", "replace each call by a region with the ops of its function", make_regions},
    {"split_constants", "give each use of a constant its own copy", split},
    {"add_data_flow_edges", "add an edge op for each value that enters or leaves a region",
     in_place<add_data_flow_edges>},
    {"record_annotations", "remember which shardings the user wrote", record},
    {"apply_constraints", "apply constraints to the values that nothing else shards", apply},
    {"sync_sharding_groups", "give the members of a sharding group one sharding", sync_groups},
    {"propagate_shardings", "propagate shardings along the factors of each op's rule", propagate_all},
    {"sink_data_flow_edges", "give the sharding of each data-flow edge to its value", sink_edges},
    {"drop_sharding_groups", "remove sharding groups", in_place<drop_sharding_groups>},
    {"remove_unused_ops", "remove unused ops, constraints included", remove_unused},
    {"shrink_borders", "shrink shardings that do not divide arguments and results", shrink_borders},
    {"close_shardings", "close every dim, shard the values that nothing reached, and drop populated rules", close},
    {"regions_to_calls", "make functions of the regions again that were called", make_calls},
};

}  // namespace

std::span<const Pass> propagation_steps() { return kSteps; }

Module propagate(Module module, PassContext& context) {
  for (const Pass& step : kSteps) module = step.run(std::move(module), context);
  return module;
}

}  // namespace shardwise
