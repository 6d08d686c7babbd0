// SPDX-License-Identifier: Apache-2.0
//
// Compiles a program whole, or runs passes whose shardings are to be explained.
//
//   const CompileUnit unit = compile(std::move(traced), options);
//   *unit.propagated                  // global shapes, every value with its sharding
//   *unit.module                      // local shapes, collectives; Module::part has what each value holds
//   unit.log[2].nanoseconds           // the time of `propagate`
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwise/choice/choose.h"
#include "shardwise/compiler/driver.h"

namespace shardwise {

// Runs the whole pipeline, and keeps all snapshots. Throws ShardingError for a program that is partitioned already, or
// for a result with unreduced axes.
// `mesh`: the one to run on, which becomes the first of the program; MeshError if its shardings are on other devices.
// `pinned`: the choices of another compilation, of the same program; without, the cheapest.
// `poll`: called often; what it throws stops the compilation.
CompileUnit compile(SharedModule traced, const CompileOptions& options = {}, const MeshPtr& mesh = nullptr,
                    std::shared_ptr<const Choices> pinned = nullptr, std::function<void()> poll = {});

// Runs the passes before the choice: `unit.module` is the program that `choose` is given.
CompileUnit compile_to_choose(SharedModule traced, const CompileOptions& options = {}, const MeshPtr& mesh = nullptr);

// Returns the problem around the choice that `compile` makes of this program without pins.
ChoiceProblem problem_of_choice(SharedModule traced, const CompileOptions& options = {}, const MeshPtr& mesh = nullptr);

// Runs passes so that the shardings which the last of them gives can be explained: the unit keeps the program that it
// was given (`global`) and what it made of it (`propagated`). Called functions are regions in both, since a value of a
// function is explained where it is called. ShardingError for an unknown name, before any pass runs.
void run_to_explain(std::span<const std::string> names, CompileUnit& unit);

// Return the shardings that arguments and results of main have in the partitioned program
// (choice/program_placements.h). They name axes of the mesh on which it runs, if their own axes are digits of those.
std::vector<TensorSharding> argument_shardings(const CompileUnit& unit);
std::vector<TensorSharding> result_shardings(const CompileUnit& unit);

}  // namespace shardwise
