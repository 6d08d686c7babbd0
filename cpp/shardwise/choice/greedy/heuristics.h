// SPDX-License-Identifier: Apache-2.0
//
// What the greedy walk (greedy_walk.h) takes in place of the graph: it decides op by op, so that each of these looks a
// little further than the op. All are pure functions of the program and of where its values are so far; a choice of the whole
// graph needs none of them. Each has the program that made it necessary.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "shardwise/choice/candidates/compute_sharding.h"
#include "shardwise/choice/choice_in_progress.h"
#include "shardwise/choice/costs.h"
#include "shardwise/choice/greedy/accumulators.h"
#include "shardwise/choice/versions.h"

namespace shardwise {

// The placement that a result is brought to, and that its price includes: that of propagation, or, for moved elements, where a
// result of the function or an annotation needs them, if these are all the users.
//
//   return x[10:40]        the slice goes directly to the placement of the result: one exchange in place of two
PlacementId wanted_placement(Module& module, ProgramPlacements& placements, const Function& function, const OpView& op,
                             size_t result);

// The number of ops that share the reduction of a value if it is completed before them; 0 if another user needs it
// reduced anyway: a region that returns it, or an op in another region.
//
//   a = x @ w; return a + b, a * c       one all_reduce of %a serves both: each pays half of it
double sharers(Module& module, const ProgramLinearity& linearity, ValueId value, const OpView& user, Reducer reducer);

// Whether all that reads the result combines it with something else by the reducer.
//
//   x + A + M        A and M are addends: x becomes a part of the sum, although the add itself saves nothing by that
bool is_summed_on(Module& module, const ProgramLinearity& linearity, const OpView& op, Reducer reducer);

// The pending reductions that an op could pass on with its operands where they are; none if it cannot. `only_if_less` is set
// where a reduced operand would become a part of them:
//
//   x + A            x is whole, A unreduced: adding first makes x a part, which is better only if it sends less
Pending pending_at_home(Module& module, const ProgramLinearity& linearity, const Versions& versions,
                        const ProgramPlacements& placements, const OpView& op);

// Whether the addend of a loop's carry is a product that takes longer than the reduction of the addend in the same trip. The
// reduction then runs beside the products of the next trip; one after the loop runs beside none. Other addends are small.
//
//   for i in range(80): dw[i] = x[i].T @ dy       as many bytes in 80 reductions as in one of dw
bool is_hidden_by_product(const Module& module, const Versions& versions, ProgramPlacements& placements, Costs& costs,
                          const ChoiceInProgress& choice, ValueId addend);

// How often a reduction of a value runs for each run of the op that makes it: 1, or less where it is deferred after a loop.
//
//   for i in range(10): total += x[i] @ w        the product is reduced once, after ten trips: 1/10
class DeferredReductions {
 public:
  DeferredReductions(Module& module, const ProgramLinearity& linearity) : module_(module), linearity_(linearity) {}
  // At a loop, before its body. The value may reach any of the accumulators, so `share` is that of the one which is
  // reduced most often.
  void add_loop(const OpView& loop, const std::vector<Accumulator>& accumulators, double share) {
    for (const ValueId value : find_deferred(module_, linearity_, loop, accumulators)) shares_[value] = share;
  }
  double share(ValueId value) const {
    const auto found = shares_.find(value);
    return found == shares_.end() ? 1 : found->second;
  }

 private:
  Module& module_;
  const ProgramLinearity& linearity_;
  std::unordered_map<ValueId, double> shares_;  // below 1
};

}  // namespace shardwise
