// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/compile.h"

#include "shardwise/compiler/checks.h"
#include "shardwise/compiler/pipeline.h"
#include "shardwise/compiler/program_dump.h"
#include "shardwise/propagation/propagate.h"

namespace shardwise {
namespace {

void keep_snapshot(CompileUnit& unit, const Pass& pass, const Pass* step) {
  // Snapshots are of whole passes. Each one makes the next pass copy the module.
  if (step != nullptr) return;
  if (pass.checks_input) {
    check_input(*unit.module);
    unit.is_runnable = true;
  }
  switch (pass.keeps) {
    case Snapshot::kNone: break;
    case Snapshot::kGlobal: unit.global = unit.module; break;
    case Snapshot::kPropagated: unit.propagated = unit.module; break;
    case Snapshot::kResharded: unit.resharded = unit.module; break;
  }
}

}  // namespace

CompileUnit compile(SharedModule traced, const CompileOptions& options, std::shared_ptr<const Choices> pinned) {
  CompileUnit unit(std::move(traced), options);
  unit.context.pinned = std::move(pinned);
  unit.dump_folder = new_dump_folder(*unit.module);
  // Passes are numbered from 1, so that the traced program sorts first.
  dump(*unit.module, unit.dump_folder, numbered(0, "trace"));
  run_passes(unit, pipeline(), {.after = keep_snapshot});
  // For counterfactuals, which run the same pass again.
  unit.propagated_by = &kPropagate;
  return unit;
}

}  // namespace shardwise
