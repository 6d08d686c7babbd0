// SPDX-License-Identifier: Apache-2.0
#include "shardwise/bindings/bindings.h"
#include "shardwise/ops/registry.h"

PYBIND11_MODULE(_core, module) {
  module.doc() = "The compiled core of shardwise: one submodule per layer. Private: use the shardwise package.";
  // First, because the submodules look up ops.
  shardwise::register_ops();
  auto error = module.def_submodule("error", "Exceptions");
  auto mesh = module.def_submodule("mesh", "Meshes, axes, shardings");
  auto hardware = module.def_submodule("hardware", "Rates and links of machines");
  auto ir = module.def_submodule("ir", "Graphs and their text");
  auto passes = module.def_submodule("passes", "The compiler pipeline");
  auto solve = module.def_submodule("solve", "Cheapest options of a cost graph");
  auto analysis = module.def_submodule("analysis", "Times of ops, how often they run");
  auto processes = module.def_submodule("processes", "Runs in several processes");
  auto runtime = module.def_submodule("runtime", "Arrays and execution on a virtual mesh");
  shardwise::bind_error(error);
  shardwise::bind_mesh(mesh);
  shardwise::bind_hardware(hardware);
  shardwise::bind_ir(ir);
  // Problems of the passes are graphs of the solver.
  shardwise::bind_solve(solve);
  shardwise::bind_passes(passes);
  shardwise::bind_analysis(analysis);
  shardwise::bind_processes(processes);
  shardwise::bind_runtime(runtime);
}
