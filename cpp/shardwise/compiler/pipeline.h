// SPDX-License-Identifier: Apache-2.0
//
// From the traced program to the program of one device:
//
//   Compiled compiled = compile(std::move(traced), options);
//   compiled.propagated                     // global shapes, every value with its sharding
//   compiled.local                          // local shapes, collectives; compiled.layouts tells what each value is
//   compiled.passes[1].nanoseconds          // what `propagate` took
//
// With SHARDWISE_DUMP_DIR the program after each pass goes there (compiler/program_dump.h); SHARDWISE_VERIFY checks it;
// SHARDWISE_LOG tells of it on stderr. An InternalError names the pass and a file with the program before it.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "shardwise/ir/pass.h"

namespace shardwise {

struct PassRecord {
  std::string name;
  int64_t nanoseconds = 0;
  int64_t ops = 0;  // of main, afterwards
};

struct Compiled {
  Module global;                     // traced and simplified
  Module propagated;                 // every value has its sharding
  Module resharded;                  // global shapes, with Shardy's collectives
  Module local;                      // one device's program
  std::vector<LocalLayout> layouts;  // by value index of `local`
  Provenance provenance;             // of `propagated`
  std::vector<PassRecord> passes;
  Counters counters;
  std::vector<std::string> warnings;
};

std::span<const Pass> pipeline();  // in order
// ShardingError for a program that is partitioned already, or a result that is to stay unreduced.
Compiled compile(Module traced, const CompileOptions& options = {});

// UnsupportedError or DTypeError, with its place, for an op or value that can be propagated and not run.
void check_runnable(const Module& module);

// Runs one pass as `compile` does: timed, verified, dumped as number `index`.
PassRecord run_pass(const Pass& pass, Program& program, int index);

}  // namespace shardwise
