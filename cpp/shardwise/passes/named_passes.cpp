// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/named_passes.h"

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ops/manual.h"
#include "shardwise/passes/assign.h"
#include "shardwise/passes/lift_inlined_meshes.h"
#include "shardwise/passes/pipeline.h"
#include "shardwise/passes/plan_reshards.h"
#include "shardwise/passes/populate_rules.h"
#include "shardwise/passes/propagate.h"
#include "shardwise/passes/remove_size_one_axes.h"

namespace shardwise {
namespace {

void change_nothing(Program&) {}

// The arguments of manual regions that no edge stands for: while this lives, they have the shardings that the ops of
// their region see.
class InsideViews {
 public:
  explicit InsideViews(Module& module) : module_(module) {
    std::vector<DataFlowEdge> edges;
    std::unordered_set<ValueId> behind_edges;
    for (uint32_t id = 1; id < module.op_count(); ++id) {
      const OpView op(module, OpId{id});
      if (op.def().flow != nullptr) op.def().flow(op, edges);
      if (op.def().traits.data_flow_edge) behind_edges.insert(op.operand(0));
    }
    for (const DataFlowEdge& edge : edges) {
      if (!edge.target_inside || !edge.outside || behind_edges.contains(edge.owner)) continue;
      views_.push_back(edge);
      const TensorSharding& outside = module.context().sharding(edge.outside);
      module.value(edge.owner).sharding = module.context().intern(seen_from_inside(outside, edge.manual_axes));
    }
  }
  ~InsideViews() {
    Context& context = module_.context();
    for (const DataFlowEdge& edge : views_) {
      ShardingId& sharding = module_.value(edge.owner).sharding;
      const TensorSharding inside = context.sharding(sharding);
      sharding = context.intern(seen_from_outside(inside, context.sharding(edge.outside), edge.manual_axes));
    }
  }
  InsideViews(const InsideViews&) = delete;
  InsideViews& operator=(const InsideViews&) = delete;

 private:
  Module& module_;
  std::vector<DataFlowEdge> views_;
};

// Dims stay open, and a value that nothing reached has no sharding.
template <Strategy strategy, Priorities priorities>
void propagate_only(Program& program) {
  const InsideViews views(program.module);
  record_annotations(program.module, program.provenance);
  propagate_shardings(program.module, strategy, priorities, program.provenance, program.counters,
                      program.options.conservative);
}

constexpr Pass kOthers[] = {
    {"parse", "read the program, verify it and print it", change_nothing},
    kLiftInlinedMeshes,
    kRemoveSizeOneAxes,
    kPopulateRules,
    {"propagate_basic", "propagate only what all tensors of an op agree on, as sdy-basic-propagate",
     propagate_only<Strategy::kBasic, Priorities::kNone>},
    {"propagate_aggressive", "propagate with conflicts settled by the larger source, as sdy-aggressive-propagate",
     propagate_only<Strategy::kAggressive, Priorities::kNone>},
    {"propagate_op_priority", "propagate in rounds, ops that change no element first, as sdy-op-priority-propagate",
     propagate_only<Strategy::kAggressive, Priorities::kOps>},
    {"propagate_user_priority", "propagate by the user's priorities, then in rounds, as sdy-user-priority-propagate",
     propagate_only<Strategy::kAggressive, Priorities::kUser>},
    {"insert_reshards", "another name of assign", kAssign.run, true},
    {"reshard_to_collectives", "another name of plan_reshards", kPlanReshards.run, true},
};

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes = [] {
    std::vector<Pass> list(pipeline().begin(), pipeline().end());
    list.insert(list.end(), std::begin(kOthers), std::end(kOthers));
    return list;
  }();
  return passes;
}

bool same_name(std::string_view a, std::string_view b) {
  const auto plain = [](char c) { return c == '-' ? '_' : c; };
  return std::ranges::equal(a, b, {}, plain, plain);
}

}  // namespace

std::span<const Pass> named_passes() { return all_passes(); }

const Pass* find_named_pass(std::string_view name) {
  const auto found = std::ranges::find_if(all_passes(), [&](const Pass& pass) { return same_name(pass.name, name); });
  return found == all_passes().end() ? nullptr : &*found;
}

void run_passes(std::span<const std::string> names, Program& program) {
  std::vector<const Pass*> passes;
  for (const std::string& name : names) {
    passes.push_back(find_named_pass(name));
    if (passes.back() != nullptr) continue;
    std::vector<std::string> known;
    for (const Pass& pass : all_passes()) known.emplace_back(pass.name);
    fail<ShardingError>("passes", str("a pass must be one of ", join(known, ", ")), name);
  }
  int index = 0;
  for (const Pass* pass : passes) {
    if (pass->needs_runnable) check_runnable(program.module);
    run_pass(*pass, program, ++index);
  }
}

}  // namespace shardwise
