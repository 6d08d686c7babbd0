// SPDX-License-Identifier: Apache-2.0
//
// From the traced program to the program of one device:
//
//   const CompileUnit unit = compile(std::move(traced), options);
//   *unit.propagated                  // global shapes, every value with its sharding
//   *unit.module                      // local shapes, collectives; unit.context.layouts tells what each value is
//   unit.log[2].nanoseconds           // what `propagate` took
#pragma once

#include <span>

#include "shardwise/compiler/driver.h"

namespace shardwise {

std::span<const Pass> pipeline();  // in order

// With all snapshots. ShardingError for a program that is partitioned already, or a result that is to stay unreduced.
CompileUnit compile(SharedModule traced, const CompileOptions& options = {});

}  // namespace shardwise
