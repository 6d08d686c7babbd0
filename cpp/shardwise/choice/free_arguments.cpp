// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/free_arguments.h"

#include <algorithm>

#include "shardwise/choice/program_placements.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {
namespace {

// Whether an annotation places the value, or what unary ops make of it, such as a convert.
bool is_annotated(Module& module, ValueId value) {
  std::vector<ValueId> open{value};
  while (!open.empty()) {
    const ValueId next = open.back();
    open.pop_back();
    for (const Use use : module.uses(next)) {
      if (!use.op) continue;
      const OpView user(module, use.op);
      const Traits& traits = user.def().traits;
      if (traits.annotates()) return true;
      const bool is_unary = user.operand_count() == 1 && user.result_count() == 1;
      if (is_unary && (traits.elementwise || traits.movement)) open.push_back(user.result());
    }
  }
  return false;
}

}  // namespace

FreeArguments::FreeArguments(Module& module, std::span<const size_t> captured) : module_(module) {
  if (captured.empty()) return;
  ProgramPlacements placements(module);
  const std::vector<ValueId>& arguments = module.region(module.main().body).arguments;
  for (const size_t i : captured) {
    if (i >= arguments.size()) continue;
    const ValueId value = arguments[i];
    const PlacementId placement = placements.declared(value);
    if (!placement || placement == placements.replicated(module.value(value).type)) continue;
    if (is_annotated(module, value)) continue;
    arguments_.push_back({i, value, module.value(value).sharding, placement});
  }
}

void FreeArguments::make_whole() {
  ProgramPlacements placements(module_);
  for (const Argument& argument : arguments_) {
    const PlacementId whole = placements.replicated(module_.value(argument.value).type);
    module_.value(argument.value).sharding = placements.sharding(whole);
  }
}

bool FreeArguments::split_again(const Choice& choice) {
  bool is_any = false;
  for (const Argument& argument : arguments_) {
    const auto takes_it_split = [&](const Use& use) {
      if (!use.op) return false;
      const std::vector<PlacementId>& operands = choice.ops[use.op.index].operands;
      return use.index < operands.size() && operands[use.index] == argument.placement;
    };
    if (!std::ranges::all_of(module_.uses(argument.value), takes_it_split)) continue;
    // A user that is computed again takes another part of it.
    const auto is_other_part = [&](const auto& version) {
      return version.first.value == argument.value && version.first.placement != argument.placement;
    };
    if (std::ranges::any_of(choice.versions, is_other_part)) continue;
    module_.value(argument.value).sharding = argument.split;
    is_any = true;
  }
  return is_any;
}

void FreeArguments::split_all() {
  for (const Argument& argument : arguments_) module_.value(argument.value).sharding = argument.split;
}

std::vector<size_t> FreeArguments::whole() const {
  std::vector<size_t> places;
  for (const Argument& argument : arguments_) {
    if (module_.value(argument.value).sharding != argument.split) places.push_back(argument.place);
  }
  return places;
}

}  // namespace shardwise
