// SPDX-License-Identifier: Apache-2.0
#include "shardwise/compiler/priced_ways.h"

#include <algorithm>
#include <memory>
#include <unordered_map>
#include <utility>

#include "shardwise/base/error.h"
#include "shardwise/choice/choose.h"
#include "shardwise/compiler/compile.h"

namespace shardwise {
namespace {

// `program` is before the choice. It is copied, because the units of all ways share it.
CompileUnit chosen(const CompileUnit& program, Choices pinned) {
  CompileUnit unit(program.module, program.context.options);
  unit.has_origins = true;
  unit.is_runnable = program.is_runnable;
  unit.context.pinned = std::make_shared<const Choices>(std::move(pinned));
  run_passes(unit, {&kChoose, 1});
  return unit;
}

Choices with_pin(Choices pinned, const ChosenOp& way) {
  std::erase_if(pinned.ops, [&](const ChosenOp& entry) { return entry.at == way.at; });
  pinned.ops.push_back(way);
  return pinned;
}

}  // namespace

std::vector<PricedWay> priced_ways(SharedModule traced, const CompileOptions& options, const MeshPtr& mesh,
                                   const Choices* pinned, std::span<const std::string> asked, size_t most) {
  const Choices pins = pinned == nullptr ? Choices{} : *pinned;
  CompileOptions as_pinned = options;
  as_pinned.state_last = pins.propagation == kStateLast;
  const CompileUnit program = compile_to_choose(std::move(traced), as_pinned, mesh);
  Choices question = pins;
  question.asked.assign(asked.begin(), asked.end());
  const CompileUnit answered = chosen(program, std::move(question));
  std::vector<PricedWay> priced;
  std::unordered_map<std::string, size_t> counts;
  for (const ChosenOp& way : ways_of(*answered.context.choice, answered.module->context())) {
    if (counts[way.at]++ == most) continue;
    try {
      priced.push_back({way, chosen(program, with_pin(pins, way)).context.choice->price});
    } catch (const ShardingError& error) {
      priced.push_back({.how = way, .error = error.message()});
    }
  }
  return priced;
}

}  // namespace shardwise
