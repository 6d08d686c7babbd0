// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/pipeline.h"

#include <array>
#include <chrono>
#include <cstdio>

#include "shardwise/base/error.h"
#include "shardwise/base/settings.h"
#include "shardwise/base/text.h"
#include "shardwise/compiler/program_dump.h"
#include "shardwise/compiler/program_form.h"
#include "shardwise/ir/verifier.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/ops/control/control.h"
#include "shardwise/ops/sharding/manual_computation.h"
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

void check_attributes(const OpView& op) {
  if (op.def().verify_runnable == nullptr) return;
  try {
    op.def().verify_runnable(op);
  } catch (Error& error) {
    error.at(op.module().context().location_text(op.loc()));
    throw;
  }
}

// Texts hold ops and dtypes that can be propagated and not run.
void check_runnable_region(const Module& module, RegionId region) {
  const auto check_type = [&](ValueId value, LocId loc) {
    if (has_kernels(module.type(value).dtype)) return;
    DTypeError error(error_message("compile", "a value must be of a dtype that has kernels", module.type(value).text(),
                                   "convert the values before and after"));
    error.at(module.context().location_text(loc));
    throw error;
  };
  for (const ValueId argument : module.region(region).arguments) check_type(argument, module.value(argument).loc);
  for (const OpId id : module.region(region).ops) {
    const OpView op(module, id);
    if (!op.def().runnable()) {
      const bool is_inlined = is_call(module, id) || is_named_computation(module, id);
      const std::string way_out = is_inlined ? str("run ", kInlineCalls.name, " first") : "replace it by other ops";
      UnsupportedError error(error_message(op.name(), "can be read, propagated and printed, but not run", {}, way_out));
      error.at(module.context().location_text(op.loc()));
      throw error;
    }
    check_attributes(op);
    for (size_t i = 0; i < op.result_count(); ++i) check_type(op.result(i), op.loc());
    for (const RegionId inner : op.regions()) check_runnable_region(module, inner);
  }
}

// What the passes take for granted, and a text or an annotation may get wrong.
void check_input(const Module& module) {
  const Context& context = module.context();
  const Function& main = module.main();
  check_runnable_region(module, main.body);
  for (const ShardingId id : main.result_shardings) {
    if (!id || context.sharding(id).unreduced.empty()) continue;
    fail<ShardingError>("compile", "a result cannot be left unreduced", short_text(context.sharding(id)),
                        "drop unreduced= or shard a dim of the result over these axes");
  }
}

void log(const PassRecord& record, const Counters& counters) {
  if (settings().log < 1) return;
  const double milliseconds = static_cast<double>(record.nanoseconds) / 1e6;
  std::fprintf(stderr, "shardwise: %-20s %9.3f ms  %6lld ops\n", record.name.c_str(), milliseconds,
               static_cast<long long>(record.ops));
  if (settings().log < 2) return;
  for (const auto& [name, count] : counters.entries()) {
    if (name.starts_with(record.name + ".")) {
      std::fprintf(stderr, "shardwise:   %-30s %lld\n", name.c_str(), static_cast<long long>(count));
    }
  }
}

// A bug that a pass meets becomes a report that can be sent: which pass, and a program that shows it.
void run_or_report(const Pass& pass, Program& program) {
  const Module before = program.module;
  try {
    pass.run(program);
  } catch (const InternalError& error) {
    const std::string path = keep_for_report(before, program.dump_folder, pass.name).string();
    throw InternalError(str(error.message(), ", in the pass ", pass.name,
                            path.empty() ? "" : "; please report it with the program before the pass, ", path));
  }
}

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

void check_runnable(const Module& module) {
  for (const Function& function : module.functions) check_runnable_region(module, function.body);
}

PassRecord run_pass(const Pass& pass, Program& program, int index) {
  if (program.dump_folder.empty()) program.dump_folder = new_dump_folder(program.module);
  const auto start = std::chrono::steady_clock::now();
  run_or_report(pass, program);
  const auto end = std::chrono::steady_clock::now();
  const Module& module = program.module;
  PassRecord record{.name = std::string(pass.name),
                    .nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count(),
                    .ops = static_cast<int64_t>(module.region(module.main().body).ops.size())};
  dump(module, program.dump_folder, index, pass.name);
  if (settings().verify) verify(module);
  log(record, program.counters);
  return record;
}

Compiled compile(Module traced, const CompileOptions& options) {
  Program program{.module = std::move(traced), .options = options};
  const Module nothing(program.module.shared_context());
  Compiled compiled{nothing, nothing, nothing, nothing, {}, {}, {}, {}, {}};
  program.dump_folder = new_dump_folder(program.module);
  dump(program.module, program.dump_folder, 0, "trace");
  int index = 0;
  for (const Pass& pass : kPipeline) {
    compiled.passes.push_back(run_pass(pass, program, ++index));
    if (pass.name == kInlineCalls.name) {
      check_input(program.module);
      check_form("compile", kAssign.takes, program);
    }
    if (pass.name == kSimplify.name) compiled.global = program.module;
    if (pass.name == kPropagate.name) compiled.propagated = program.module;
    if (pass.name == kPlanReshards.name) compiled.resharded = program.module;
  }
  compiled.local = std::move(program.module);
  compiled.layouts = std::move(program.layouts);
  compiled.provenance = std::move(program.provenance);
  compiled.counters = std::move(program.counters);
  compiled.warnings = std::move(program.warnings);
  return compiled;
}

}  // namespace shardwise
