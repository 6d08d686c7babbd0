// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/pipeline.h"

#include <array>

#include "shardwise/compiler/checks.h"
#include "shardwise/compiler/program_dump.h"
#include "shardwise/partition/assign.h"
#include "shardwise/partition/localize.h"
#include "shardwise/partition/optimize_collectives.h"
#include "shardwise/partition/plan_reshards.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/transforms/inline_calls.h"
#include "shardwise/transforms/simplify.h"

namespace shardwise {
namespace {

constexpr std::array kPipeline{
    kInlineCalls, kSimplify, kPropagate, kAssign, kPlanReshards, kLocalize, kOptimizeCollectives,
};

void keep_stages(CompileUnit& unit, const Pass& pass, const Pass* step) {
  if (step != nullptr) return;
  if (pass.name == kInlineCalls.name) {
    check_input(*unit.module);
    unit.is_runnable = true;
  }
  if (pass.name == kSimplify.name) unit.global = unit.module;
  if (pass.name == kPropagate.name) unit.propagated = unit.module;
  if (pass.name == kPlanReshards.name) unit.resharded = unit.module;
}

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

CompileUnit compile(SharedModule traced, const CompileOptions& options) {
  CompileUnit unit(std::move(traced), options);
  unit.dump_folder = new_dump_folder(*unit.module);
  dump(*unit.module, unit.dump_folder, numbered(0, "trace"));
  run_passes(unit, kPipeline, {.after = keep_stages});
  unit.propagated_by = &kPropagate;
  return unit;
}

}  // namespace shardwise
