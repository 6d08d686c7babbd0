// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/region_program.h"

#include <utility>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ops/sharding/inlined_regions.h"

namespace shardwise {

std::shared_ptr<Module> program_of_region(const Module& module, RegionId region) {
  auto program = std::make_shared<Module>(module.shared_context());
  program->name = module.name;
  program->meshes = module.meshes;
  Function main;
  main.name = "main";
  main.body = GraphCopy(module, *program).region(region);
  main.result_shardings.resize(program->region(main.body).results.size());
  program->functions.push_back(std::move(main));
  for (const Function& function : module.functions) {
    if (function.name != "main") GraphCopy(module, *program).function(function);
  }
  // Numbers of derivatives mean nothing elsewhere.
  for (uint32_t op = 1; op < program->op_count(); ++op) {
    if (program->op(OpId{op}).def->region_gradient == RegionGradient::kGiven)
      make_named_computation(*program, OpId{op});
  }
  return program;
}

}  // namespace shardwise
