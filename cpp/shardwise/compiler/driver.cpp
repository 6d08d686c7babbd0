// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/driver.h"

#include <chrono>
#include <cstdio>
#include <exception>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/base/settings.h"
#include "shardwise/base/text.h"
#include "shardwise/compiler/checks.h"
#include "shardwise/compiler/program_dump.h"
#include "shardwise/ir/verifier.h"
#include "shardwise/partition/verify_assigned.h"

namespace shardwise {
namespace {

constexpr int kLogPasses = 1, kLogSteps = 2;

// Moves the module out, or copies it where somebody else holds it.
Module take(SharedModule& held) {
  if (held.use_count() > 1) {
    Module copy = *held;
    held.reset();
    return copy;
  }
  // The object was made non-const, and nobody else can see it.
  Module moved = std::move(*std::const_pointer_cast<Module>(held));
  held.reset();
  return moved;
}

// The ops of a local program are made by passes, and the user cannot correct their types.
Module run(const Pass& pass, Module module, PassContext& context) {
  const bool is_local = module.stage == Stage::kLocal;
  try {
    return pass.run(std::move(module), context);
  } catch (const ShapeError& error) {
    if (is_local) throw InternalError(error.message());
    throw;
  } catch (const DTypeError& error) {
    if (is_local) throw InternalError(error.message());
    throw;
  }
}

PassRecord run_timed(CompileUnit& unit, const Pass& pass) {
  Module module = take(unit.module);
  // Once, on the traced program: later passes keep the numbers.
  if (!std::exchange(unit.has_origins, true)) module.mark_origins();
  // After the copy, which is the price of a snapshot and not of the pass.
  const auto start = std::chrono::steady_clock::now();
  module = run(pass, std::move(module), unit.context);
  const auto end = std::chrono::steady_clock::now();
  PassRecord record{.name = std::string(pass.name),
                    .nanoseconds = std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count(),
                    .ops = std::ssize(module.region(module.main().body).ops)};
  unit.module = std::make_shared<Module>(std::move(module));
  return record;
}

PassRecord run_steps(CompileUnit& unit, const Pass& pass, const Hooks& hooks, std::string_view dump_name) {
  PassRecord record{.name = std::string(pass.name)};
  for (const Pass& step : pass.steps()) {
    record.steps.push_back(run_timed(unit, step));
    record.nanoseconds += record.steps.back().nanoseconds;
    record.ops = record.steps.back().ops;
    const auto number = static_cast<int>(record.steps.size());
    if (settings().log >= kLogSteps) {
      dump(*unit.module, unit.dump_folder, str(dump_name, "_", numbered(number, step.name)));
    }
    if (hooks.after) hooks.after(unit, pass, &step);
  }
  return record;
}

void print_row(std::string_view indentation, const PassRecord& record) {
  const double milliseconds = static_cast<double>(record.nanoseconds) / 1e6;
  std::fprintf(stderr, "shardwise: %s%-20s %9.3f ms  %6lld ops\n", std::string(indentation).c_str(),
               record.name.c_str(), milliseconds, static_cast<long long>(record.ops));
}

void print_log(const PassRecord& record, const Counters& counters) {
  if (settings().log < kLogPasses) return;
  print_row("", record);
  if (settings().log < kLogSteps) return;
  for (const PassRecord& step : record.steps) print_row("  ", step);
  for (const auto& [name, count] : counters.entries()) {
    // Counters are named "pass.what".
    if (name.starts_with(record.name + ".")) {
      std::fprintf(stderr, "shardwise:   %-30s %lld\n", name.c_str(), static_cast<long long>(count));
    }
  }
}

void run_pass(CompileUnit& unit, const Pass& pass, const Hooks& hooks) {
  // Once per program: later passes make only ops that can run.
  if (pass.needs_runnable && !unit.is_runnable) check_runnable(*unit.module);
  unit.is_runnable = unit.is_runnable || pass.needs_runnable;
  check_stage(pass.name, pass.takes, *unit.module);
  // A text may claim that it has been assigned.
  const bool relies_on_placements = pass.takes.first == Stage::kResharded;
  if (relies_on_placements && !unit.is_assigned) verify_assigned(*unit.module);
  unit.is_assigned = unit.is_assigned || relies_on_placements || pass.makes == Stage::kAssigned;
  if (unit.dump_folder.empty()) unit.dump_folder = new_dump_folder(*unit.module);
  const std::string dump_name = numbered(static_cast<int>(unit.log.size()) + 1, pass.name);
  unit.log.push_back(pass.steps != nullptr ? run_steps(unit, pass, hooks, dump_name) : run_timed(unit, pass));
  // The ids of a choice are those of the program that it was made for.
  if (unit.module->stage < Stage::kAssigned && !pass.chooses) unit.context.choice = nullptr;
  dump(*unit.module, unit.dump_folder, dump_name);
  if (hooks.verify || settings().verify) verify(*unit.module);
  print_log(unit.log.back(), unit.context.counters);
  if (hooks.after) hooks.after(unit, pass, nullptr);
}

// Passes are deterministic: the program before a pass is what the passes before it make of the last snapshot.
std::string kept_for_report(const Module& snapshot, std::span<const Pass> passes_since, const CompileUnit& unit,
                            const Pass& failed) {
  try {
    Module module = snapshot;
    // A context of its own: the report must not add to the warnings and counters of the user's program.
    PassContext context{.options = unit.context.options, .pinned = unit.context.pinned};
    for (const Pass& pass : passes_since) module = pass.run(std::move(module), context);
    return keep_for_report(module, unit.dump_folder, failed.name).string();
  } catch (const std::exception&) {
    return {};  // there is an error to report already
  }
}

}  // namespace

void run_passes(CompileUnit& unit, std::span<const Pass> passes, const Hooks& hooks) {
  SharedModule snapshot = unit.module;
  size_t since = 0;
  for (size_t i = 0; i < passes.size(); ++i) {
    try {
      run_pass(unit, passes[i], hooks);
    } catch (const InternalError& error) {
      const std::string path = kept_for_report(*snapshot, passes.subspan(since, i - since), unit, passes[i]);
      throw InternalError(str(error.message(), ", in the pass ", passes[i].name,
                              path.empty() ? "" : "; please report it with the program before the pass, ", path));
    }
    // A hook has kept this module, so keeping it here costs no copy.
    if (unit.module.use_count() > 1) {
      snapshot = unit.module;
      since = i + 1;
    }
  }
}

}  // namespace shardwise
