// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/named_passes.h"

#include <algorithm>
#include <vector>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/compiler/pipeline.h"
#include "shardwise/compiler/program_form.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/verifier.h"
#include "shardwise/ops/sharding/manual_computation.h"
#include "shardwise/partition/assign.h"
#include "shardwise/partition/plan_reshards.h"
#include "shardwise/propagation/data_flow_edges.h"
#include "shardwise/propagation/lift_inlined_meshes.h"
#include "shardwise/propagation/populate_rules.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/propagation/remove_size_one_axes.h"
#include "shardwise/propagation/sharding_groups.h"

namespace shardwise {
namespace {

void change_nothing(Program&) {}

// The arguments of manual regions that no edge stands for: while this lives, they have the shardings that the ops of
// their region see.
class InsideViews {
 public:
  explicit InsideViews(Module& module) : module_(module) {
    for (const DataFlowEdge& edge : bare_edges(module)) {
      if (!edge.target_inside || !edge.outside) continue;
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
  sync_sharding_groups(program.module, program.provenance, program.warnings);
  propagate_shardings(program.module, strategy, priorities, program.provenance, program.counters,
                      program.options.conservative);
}

template <Strategy strategy, Priorities priorities>
constexpr Pass level(std::string_view name, std::string_view doc) {
  return {.name = name,
          .doc = doc,
          .run = propagate_only<strategy, priorities>,
          .takes = kPropagate.takes,
          .reads = {.conservative = true},
          .strategy = strategy};
}

constexpr Pass renamed(Pass pass, std::string_view name, std::string_view doc) {
  pass.name = name;
  pass.doc = doc;
  return pass;
}

constexpr Pass kOthers[] = {
    {"parse", "read the program, verify it and print it", change_nothing},
    kLiftInlinedMeshes,
    kRemoveSizeOneAxes,
    kPopulateRules,
    level<Strategy::kBasic, Priorities::kNone>(
        "propagate_basic", "propagate only what all tensors of an op agree on, as sdy-basic-propagate"),
    level<Strategy::kAggressive, Priorities::kNone>(
        "propagate_aggressive", "propagate with conflicts settled by the larger source, as sdy-aggressive-propagate"),
    level<Strategy::kAggressive, Priorities::kOps>(
        "propagate_op_priority", "propagate in rounds, ops that change no element first, as sdy-op-priority-propagate"),
    level<Strategy::kAggressive, Priorities::kUser>(
        "propagate_user_priority",
        "propagate by the user's priorities, then in rounds, as sdy-user-priority-propagate"),
    renamed(kAssign, "insert_reshards", "another name of assign"),
    renamed(kPlanReshards, "reshard_to_collectives", "another name of plan_reshards"),
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
    check_form(pass->name, pass->takes, program);
    run_pass(*pass, program, ++index);
    verify(program.module);  // a level leaves what it came to, and that may be what no rule allows
  }
}

}  // namespace shardwise
