// SPDX-License-Identifier: Apache-2.0
//
// Runs the whole pipeline:
//
//   const CompileUnit unit = compile(std::move(traced), options);
//   *unit.propagated                  // global shapes, every value with its sharding
//   *unit.module                      // local shapes, collectives; Module::part has what each value holds
//   unit.log[2].nanoseconds           // the time of `propagate`
#pragma once

#include "shardwise/compiler/driver.h"

namespace shardwise {

// Keeps all snapshots. Throws ShardingError for a program that is partitioned already, or a result with unreduced axes.
// `pinned`: the choices of another compilation, of the same program; without, the cheapest.
CompileUnit compile(SharedModule traced, const CompileOptions& options = {},
                    std::shared_ptr<const Choices> pinned = nullptr);

}  // namespace shardwise
