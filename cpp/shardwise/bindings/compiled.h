// SPDX-License-Identifier: Apache-2.0
//
// What `compile` made, as Python holds it: bind_passes reads its reports, bind_runtime runs it.
#pragma once

#include <memory>

#include "shardwise/compiler/pipeline.h"

namespace shardwise {

struct CompiledProgram {
  std::shared_ptr<const Module> global, propagated, resharded, local;
  std::vector<LocalLayout> layouts;
  Provenance provenance;
  std::vector<PassRecord> passes;
  Counters counters;
  MeshPtr mesh;
  CompileOptions options;
};

}  // namespace shardwise
