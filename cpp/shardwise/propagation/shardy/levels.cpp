// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/shardy/levels.h"

#include <vector>

#include "shardwise/propagation/data_flow_edges.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/propagation/sharding_groups.h"

namespace shardwise {
namespace {

// Gives arguments of manual regions without an edge the shardings that ops inside see, for the lifetime of this object.
// Shardy's module passes leave out the edges, so its ops see the arguments themselves.
class InsideViews {
 public:
  explicit InsideViews(Module& module) : module_(module) {
    const DataFlowEdges edges(module);
    for (const DataFlowEdge& edge : edges.bare()) {
      if (!edge.target_inside || !edge.outside) continue;
      views_.push_back(edge);
      module.value(edge.owner).sharding = seen_from_target(module.context(), edge, edge.outside);
    }
  }
  ~InsideViews() {
    for (const DataFlowEdge& edge : views_) {
      ShardingId& sharding = module_.value(edge.owner).sharding;
      sharding = seen_from_sources(module_.context(), edge, sharding);
    }
  }
  InsideViews(const InsideViews&) = delete;
  InsideViews& operator=(const InsideViews&) = delete;

 private:
  Module& module_;
  std::vector<DataFlowEdge> views_;
};

template <Strategy strategy, Priorities priorities>
Module run_level(Module module, PassContext& context) {
  {
    // The scope ends before the module is returned: its arguments are then as seen from outside again.
    const InsideViews views(module);
    record_annotations(module, context.provenance);
    sync_sharding_groups(module, context);
    propagate_shardings(module, context, strategy, priorities, VisitOrder::kModulePass);
  }
  module.stage = Stage::kGlobal;  // dims are open: a program that was assigned is so no longer
  return module;
}

template <Strategy strategy, Priorities priorities>
constexpr Pass level(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .run = run_level<strategy, priorities>,
          .takes = kPropagate.takes,
          .reads = option("conservative"),
          .strategy = strategy};
}

constexpr Pass kLevels[] = {
    level<Strategy::kBasic, Priorities::kNone>(
        "propagate_basic", "propagate only what all tensors of an op agree on, as sdy-basic-propagate"),
    level<Strategy::kAggressive, Priorities::kNone>(
        "propagate_aggressive", "propagate with conflicts settled by the larger source, as sdy-aggressive-propagate"),
    level<Strategy::kAggressive, Priorities::kOps>(
        "propagate_op_priority", "propagate in rounds, ops that change no element first, as sdy-op-priority-propagate"),
    level<Strategy::kAggressive, Priorities::kUser>(
        "propagate_user_priority",
        "propagate by the user's priorities, then in rounds, as sdy-user-priority-propagate"),
};

}  // namespace

std::span<const Pass> propagation_levels() { return kLevels; }

}  // namespace shardwise
