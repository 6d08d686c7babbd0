// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/named_passes.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/compiler/pipeline.h"
#include "shardwise/partition/assign.h"
#include "shardwise/partition/plan_reshards.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/propagation/shardy/levels.h"
#include "shardwise/propagation/shardy/lift_inlined_meshes.h"
#include "shardwise/propagation/shardy/populate_rules.h"
#include "shardwise/propagation/shardy/remove_size_one_axes.h"

namespace shardwise {
namespace {

void change_nothing(Module&) {}

// The names by which readers of Shardy look for these passes.
constexpr Pass renamed(Pass pass, std::string_view name, std::string_view doc) {
  pass.name = name;
  pass.doc = doc;
  return pass;
}

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> passes = [] {
    std::vector<Pass> list(pipeline().begin(), pipeline().end());
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

std::span<const Pass> steps_before_calls() { return propagation_steps().first(propagation_steps().size() - 1); }

// `propagate`, but the called regions stay.
constexpr Pass kPropagateRegions = [] {
  Pass pass = kPropagate;
  pass.steps = steps_before_calls;
  return pass;
}();

constexpr std::string_view kMakesRegions = "calls_to_regions";

}  // namespace

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

void run_named_passes(std::span<const std::string> names, CompileUnit& unit) {
  run_passes(unit, passes_called(names), {.after = {}, .verify = true});
}

void run_to_explain(std::span<const std::string> names, CompileUnit& unit) {
  std::vector<Pass> passes = passes_called(names);
  // The passes before it only prepare the program that is explained.
  const size_t last = passes.empty() ? 0 : passes.size() - 1;
  if (last != 0) unit.given = unit.module;
  run_passes(unit, std::span(passes).first(last), {.after = {}, .verify = true});
  unit.global = unit.module;
  // why() explains values inside of called functions, which the last step turns back into calls.
  if (!passes.empty() && passes[last].run == kPropagate.run) passes[last] = kPropagateRegions;
  const auto keep_regions = [](CompileUnit& changed, const Pass&, const Pass* step) {
    if (step != nullptr && step->name == kMakesRegions) changed.global = changed.module;
  };
  run_passes(unit, std::span(passes).subspan(last), {.after = keep_regions, .verify = true});
  unit.propagated = unit.module;
  unit.propagated_by = names.empty() ? &kPropagate : find_named_pass(names.back());
}

}  // namespace shardwise
