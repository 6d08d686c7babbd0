// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/graph/wanted_placements.h"

#include <algorithm>
#include <ranges>

#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

// Whether the op can be computed where its result is to be, with the operand there, too.
bool passes_placements(const OpView& op, size_t operand) {
  return op.def().traits.elementwise && op.result_count() == 1 &&
         op.operand_type(operand).shape == op.result_type().shape;
}

}  // namespace

WantedPlacements::WantedPlacements(const WalkedProgram& program, const Choice& known, size_t most)
    : program_(program), known_(known), most_(most), wanted_(program.module.value_count()) {
  for (const size_t f : program.calls.reached()) {
    const Function& function = program.module.functions[f];
    bodies_.emplace(function.body, &function);
    add_region(function.body);
  }
}

// Users before makers.
void WantedPlacements::add_region(RegionId region) {
  for (const OpId id : program_.module.region(region).ops | std::views::reverse) {
    const OpView op(program_.module, id);
    for (const RegionId inner : op.regions()) add_region(inner);
    for (size_t i = 0; i < op.result_count(); ++i) add_result(op.result(i));
  }
}

void WantedPlacements::add_result(ValueId result) {
  Module& module = program_.module;
  for (const Use use : module.uses(result)) add(result, need(use));
  for (const Use use : module.uses(result)) {
    if (!use.op || !passes_placements(OpView(module, use.op), use.index)) continue;
    for (const PlacementId placement : wanted_[module.result(use.op).index]) {
      if (program_.placements.find(placement)->unreduced.empty()) add(result, placement);
    }
  }
}

void WantedPlacements::add(ValueId value, PlacementId placement) {
  std::vector<PlacementId>& known = wanted_[value.index];
  if (!placement || known.size() == most_ || std::ranges::find(known, placement) != known.end()) return;
  known.push_back(placement);
}

PlacementId WantedPlacements::need(const Use& use) const {
  const auto at = [&](const std::vector<PlacementId>& placements) {
    return use.index < placements.size() ? placements[use.index] : PlacementId{};
  };
  if (use.op) return at(known_.ops[use.op.index].operands);
  if (const auto body = bodies_.find(use.region); body != bodies_.end()) {
    return program_.placements.result(*body->second, use.index);
  }
  const OpView owner(program_.module, program_.module.region(use.region).op);
  const Regions regions = owner.def().regions;
  // A condition and a combiner return no results of their op.
  const bool is_body = regions == Regions::kLoop && use.region == loop_parts(owner).body;
  return is_body || regions == Regions::kBranches ? at(known_.ops[owner.id().index].results) : PlacementId{};
}

}  // namespace shardwise
