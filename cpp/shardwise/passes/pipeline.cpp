// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/pipeline.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "shardwise/base/error.h"
#include "shardwise/base/settings.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/printer.h"
#include "shardwise/ir/verifier.h"
#include "shardwise/passes/assign.h"
#include "shardwise/passes/localize.h"
#include "shardwise/passes/optimize_collectives.h"
#include "shardwise/passes/plan_reshards.h"
#include "shardwise/passes/propagate.h"
#include "shardwise/passes/simplify.h"

namespace shardwise {
namespace {

constexpr std::array kPipeline{
    kSimplify, kPropagate, kAssign, kPlanReshards, kLocalize, kOptimizeCollectives,
};

void dump(const Module& module, int index, std::string_view name) {
  const std::string& folder = settings().dump_dir;
  if (folder.empty()) return;
  std::filesystem::create_directories(folder);
  const std::string number = (index < 10 ? "0" : "") + std::to_string(index);
  const std::filesystem::path path = std::filesystem::path(folder) / str(number, "_", name, ".mlir");
  std::ofstream file(path);
  file << print(module, {.locations = true});
  if (!file) fail<InternalError>("SHARDWISE_DUMP_DIR", "its files must be writable", path.string());
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

}  // namespace

std::span<const Pass> pipeline() { return kPipeline; }

PassRecord run_pass(const Pass& pass, Program& program, int index) {
  const auto start = std::chrono::steady_clock::now();
  pass.run(program);
  const auto end = std::chrono::steady_clock::now();
  const Module& module = program.module;
  PassRecord record{.name = std::string(pass.name),
                    .nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count(),
                    .ops = static_cast<int64_t>(module.region(module.main().body).ops.size())};
  dump(module, index, pass.name);
  if (settings().verify) verify(module);
  log(record, program.counters);
  return record;
}

Compiled compile(Module traced, const CompileOptions& options) {
  Program program{.module = std::move(traced), .options = options};
  const Module nothing(program.module.shared_context());
  Compiled compiled{nothing, nothing, nothing, nothing, {}, {}, {}, {}};
  dump(program.module, 0, "trace");
  int index = 0;
  for (const Pass& pass : kPipeline) {
    compiled.passes.push_back(run_pass(pass, program, ++index));
    if (pass.name == kSimplify.name) compiled.global = program.module;
    if (pass.name == kPropagate.name) compiled.propagated = program.module;
    if (pass.name == kPlanReshards.name) compiled.resharded = program.module;
  }
  compiled.local = std::move(program.module);
  compiled.layouts = std::move(program.layouts);
  compiled.provenance = std::move(program.provenance);
  compiled.counters = std::move(program.counters);
  return compiled;
}

}  // namespace shardwise
