// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/greedy/heuristics.h"

#include "shardwise/choice/compute_price.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"

namespace shardwise {

PlacementId wanted_placement(Module& module, ProgramPlacements& placements, const Function& function, const OpView& op,
                             size_t i) {
  const ValueId result = op.result(i);
  const PlacementId declared = placements.declared(result);
  if (!op.def().traits.movement) return declared;
  const std::vector<ShardingId>& shardings = function.result_shardings;
  PlacementId found;
  for (const Use use : module.uses(result)) {
    PlacementId at = declared;
    if (use.op) {
      const Traits& traits = module.op(use.op).def->traits;
      if (!traits.constraint && !traits.reshard) return declared;
      at = placements.declared(module.result(use.op));
    } else if (use.region == function.body && use.index < shardings.size() && shardings[use.index]) {
      at = placements.reduced(shardings[use.index], module.value(result).type);
    }
    if (found && found != at) return declared;
    found = at;
  }
  return found ? found : declared;
}

double sharers(Module& module, const ProgramLinearity& linearity, ValueId value, const OpView& user, Reducer reducer) {
  const RegionId region = module.op(user.id()).parent;
  double count = 0;
  for (const Use use : module.uses(value)) {
    // A region takes and returns reduced values, so another user reduces this one in any case.
    if (!use.op || module.op(use.op).parent != region) return 0;
    if (use.op != user.id() && !linearity.of(use.op, reducer).may_pass()) return 0;
    ++count;
  }
  return count;
}

bool is_summed_on(Module& module, const ProgramLinearity& linearity, const OpView& op, Reducer reducer) {
  const auto use = only_use(module, op.result());
  // If there is one user, in the same region, the parts are added there and reduced once.
  return use && use->op && module.op(use->op).parent == module.op(op.id()).parent &&
         linearity.of(use->op, reducer).combines && op.result_count() == 1;
}

Pending pending_at_home(Module& module, const ProgramLinearity& linearity, const Versions& versions,
                        const ProgramPlacements& placements, const OpView& op) {
  std::vector<const Placement*> homes;
  for (const ValueId operand : op.operands()) homes.push_back(placements.find(versions.home(operand, {})));
  Pending pending = pending_of(op, linearity, homes);
  if (pending.axes.empty()) return pending;
  const OpLinearity passing = linearity.of(op.id(), pending.reducer);
  bool has_parts = false;
  for (size_t i = 0; passing.kind == Linear::kJoint && i < op.operand_count(); ++i) {
    const bool is_whole = passing.may_be_pending(i) && !pending.operands[i];
    has_parts = has_parts || (is_whole && !passing.is_free(i));
  }
  pending.only_if_less = has_parts && !is_summed_on(module, linearity, op, pending.reducer);
  return pending;
}

bool is_hidden_by_product(const Module& module, const Versions& versions, ProgramPlacements& placements, Costs& costs,
                          const ChoiceInProgress& choice, ValueId addend) {
  OpId maker = module.value(addend).op;
  while (maker && module.op(maker).def->traits.movement && module.op(maker).operand_count == 1) {
    maker = module.value(module.operands(maker)[0]).op;
  }
  const OpChoice* chosen = maker ? choice.chosen(maker) : nullptr;
  if (chosen == nullptr || chosen->has_own_partition()) return false;
  const OpView product(module, maker);
  if (!is_contraction(product.def(), sharding_rule(product))) return false;
  const Price kernel = compute_price(product, *chosen, *costs.hardware(), 0);
  const PlacementId home = versions.home(addend, {}), reduced = placements.declared(addend);
  return costs.reshard_price(module.value(addend).type, home, reduced).ps <= kernel.ps;
}

}  // namespace shardwise
