// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/candidates/free_results.h"

#include <algorithm>

#include "shardwise/ir/op_def.h"

namespace shardwise {
namespace {

int64_t parts(const Placement* placement) { return placement == nullptr ? 1 : product(axes_of_dims(placement->dims)); }

// Where the choice makes the value; none if it is not known, or if it is a sum that is not complete.
PlacementId made_at(const Module& module, const Choice& choice, ValueId value, const ProgramPlacements& placements) {
  const OpView op(module, module.value(value).op);
  const std::vector<PlacementId>& made = choice.ops[op.id().index].results;
  for (size_t i = 0; i < std::min(made.size(), op.result_count()); ++i) {
    if (op.result(i) != value) continue;
    const Placement* found = placements.find(made[i]);
    return found != nullptr && found->unreduced.empty() ? made[i] : PlacementId{};
  }
  return {};
}

}  // namespace

FreeResults::FreeResults(Module& module, std::span<const size_t> unplaced) : module_(module) {
  if (unplaced.empty()) return;
  Function& main = module.main();
  ProgramPlacements placements(module);
  const std::vector<ValueId>& values = module.region(main.body).results;
  main.result_shardings.resize(values.size());
  for (const size_t i : unplaced) {
    if (i >= values.size()) continue;
    const OpId maker = module.value(values[i]).op;
    if (!maker || module.op(maker).parent != main.body) continue;
    const Traits& traits = module.op(maker).def->traits;
    if (traits.annotates() || traits.constant_like) continue;
    if (parts(placements.find(placements.result(main, i))) == 1) continue;
    results_.push_back({.place = i,
                        .value = values[i],
                        .of_value = module.value(values[i]).sharding,
                        .of_result = main.result_shardings[i],
                        .now = {}});
  }
}

std::unordered_set<ValueId> FreeResults::values() const {
  std::unordered_set<ValueId> values;
  for (const Result& result : results_) values.insert(result.value);
  return values;
}

bool FreeResults::place(const Choice& open, ProgramPlacements& placements, Costs& costs) {
  bool is_any = false;
  for (Result& result : results_) {
    const PlacementId made = made_at(module_, open, result.value, placements);
    const PlacementId guess = placements.result(module_.main(), result.place);
    if (!made || made == guess || parts(placements.find(made)) < parts(placements.find(guess))) continue;
    // From whole rows, a part of them is cut without a transfer.
    if (costs.reshard_price(module_.value(result.value).type, made, guess).bytes == 0) continue;
    result.now = placements.sharding(made);
    module_.main().result_shardings[result.place] = result.now;
    module_.value(result.value).sharding = result.now;
    is_any = true;
  }
  return is_any;
}

void FreeResults::place_as_before() {
  for (Result& result : results_) {
    result.now = {};
    module_.main().result_shardings[result.place] = result.of_result;
    module_.value(result.value).sharding = result.of_value;
  }
}

std::vector<Choice::PlacedResult> FreeResults::placed() const {
  std::vector<Choice::PlacedResult> placed;
  for (const Result& result : results_) {
    if (result.now) placed.push_back({result.place, result.now});
  }
  return placed;
}

}  // namespace shardwise
