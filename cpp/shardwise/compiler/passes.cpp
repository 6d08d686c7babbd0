// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/passes.h"

#include <algorithm>
#include <array>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/choice/choose.h"
#include "shardwise/partition/assign.h"
#include "shardwise/partition/combine_collectives.h"
#include "shardwise/partition/gathers_in_trips.h"
#include "shardwise/partition/legalize.h"
#include "shardwise/partition/localize.h"
#include "shardwise/partition/optimize_collectives.h"
#include "shardwise/partition/plan_reshards.h"
#include "shardwise/partition/rematerialize.h"
#include "shardwise/partition/window_einsums.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/propagation/shardy/levels.h"
#include "shardwise/propagation/shardy/lift_inlined_meshes.h"
#include "shardwise/propagation/shardy/populate_rules.h"
#include "shardwise/propagation/shardy/remove_size_one_axes.h"
#include "shardwise/shard_update/shard_update.h"
#include "shardwise/transforms/form_scans.h"
#include "shardwise/transforms/inline_calls.h"
#include "shardwise/transforms/simplify.h"
#include "shardwise/transforms/simplify_loops.h"

namespace shardwise {
namespace {

// Ops are decomposed after propagation, so that why() shows what the user wrote, and before the choice of placements,
// which is made for ops that run. Carries become captures before the choice, so that what a loop does not change is
// resharded once. Scans are formed of the loops that are left in the local program, and
// show which rows a value is kept in. Windows are written before the memory is counted. What is computed again for its memory
// comes behind the passes that merge ops. Collectives are moved into loops and combined last, by the schedule and the memory of the program that
// runs.
constexpr std::array kPipeline{
    kInlineCalls,         kSimplify,  kShardUpdate,   kPropagate,     kLegalize,
    kSimplifyLoops,       kChoose,    kAssign,        kPlanReshards,  kLocalize,
    kOptimizeCollectives, kFormScans, kWindowEinsums, kRematerialize, kGathersInTrips,
    kCombineCollectives,
};

void change_nothing(Module&) {}

// The names by which readers of Shardy look for these passes.
constexpr Pass renamed(Pass pass, std::string_view name, std::string_view doc) {
  pass.name = name;
  pass.doc = doc;
  return pass;
}

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes = [] {
    std::vector<Pass> list(kPipeline.begin(), kPipeline.end());
    list.push_back({"parse", "read the program, verify it and print it", in_place<change_nothing>});
    list.insert(list.end(), {kLiftInlinedMeshes, kRemoveSizeOneAxes, kPopulateRules});
    list.insert(list.end(), propagation_levels().begin(), propagation_levels().end());
    list.push_back(renamed(kAssign, "insert_reshards", "another name of assign"));
    list.push_back(renamed(kPlanReshards, "reshard_to_collectives", "another name of plan_reshards"));
    return list;
  }();
  return passes;
}

bool same_name(std::string_view a, std::string_view b) {
  // Command lines such as sdy_opt's separate the words of a pass by '-'.
  const auto plain = [](char c) { return c == '-' ? '_' : c; };
  return std::ranges::equal(a, b, {}, plain, plain);
}

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

std::span<const Pass> named_passes() { return all_passes(); }

const Pass* find_named_pass(std::string_view name) {
  const auto found = std::ranges::find_if(all_passes(), [&](const Pass& pass) { return same_name(pass.name, name); });
  return found == all_passes().end() ? nullptr : &*found;
}

std::vector<Pass> passes_called(std::span<const std::string> names) {
  std::vector<Pass> passes;
  for (const std::string& name : names) {
    const Pass* pass = find_named_pass(name);
    if (pass == nullptr) {
      const std::string known = join(all_passes(), ", ", [](const Pass& one) { return std::string(one.name); });
      fail<ShardingError>("passes", str("a pass must be one of ", known), name);
    }
    passes.push_back(*pass);
  }
  return passes;
}

}  // namespace shardwise
