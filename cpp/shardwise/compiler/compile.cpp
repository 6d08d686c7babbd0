// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/compile.h"

#include "shardwise/compiler/checks.h"
#include "shardwise/compiler/pipeline.h"
#include "shardwise/compiler/program_dump.h"
#include "shardwise/partition/plan_reshards.h"
#include "shardwise/propagation/propagate.h"
#include "shardwise/transforms/inline_calls.h"
#include "shardwise/transforms/simplify.h"

namespace shardwise {
namespace {

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

CompileUnit compile(SharedModule traced, const CompileOptions& options) {
  CompileUnit unit(std::move(traced), options);
  unit.dump_folder = new_dump_folder(*unit.module);
  dump(*unit.module, unit.dump_folder, numbered(0, "trace"));
  run_passes(unit, pipeline(), {.after = keep_stages});
  unit.propagated_by = &kPropagate;
  return unit;
}

}  // namespace shardwise
