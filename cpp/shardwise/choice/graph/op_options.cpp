// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/graph/op_options.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "shardwise/choice/greedy/heuristics.h"
#include "shardwise/choice/verify_choice.h"

namespace shardwise {

void OpOptions::add(const OpView& op, const TensorPlaces& places, std::vector<OpChoice>& options) {
  std::vector<const Placement*> current;
  for (size_t i = 0; i < op.operand_count(); ++i) current.push_back(program_.placements.find(places.current[i]));
  const Pending pending = pending_of(op, program_.linearity, current);
  const CandidateList& list = program_.lists.of(op, sharding_rule(op), pending, places, CandidateScope::kAll);
  for (size_t i = 0; i < list.candidates.size() && options.size() < kMostOptions; ++i) {
    const OpChoice& choice = list.candidates[i].choice;
    if (!std::isfinite(list.compute[i].bytes) || std::ranges::find(options, choice) != options.end()) continue;
    if (is_possible(program_.placements, program_.linearity, op, choice)) options.push_back(choice);
  }
}

// All that the options and their costs depend on.
const CostKey& OpOptions::key(const OpView& op, const OpChoice& known, const TensorPlaces& tensors,
                              const Places& places) {
  CostKey& key = key_;
  key.clear();
  const ShardingRule& rule = sharding_rule(op);
  key.push_back(reinterpret_cast<uintptr_t>(&rule));
  key.push_back(reinterpret_cast<uintptr_t>(known.method));
  for (const std::vector<PlacementId>* ids : {&known.operands, &known.results, &tensors.declared}) {
    for (const PlacementId id : *ids) key.push_back(id.index);
  }
  for (const std::vector<std::vector<PlacementId>>* places_of : {&places.operands, &places.results}) {
    for (const std::vector<PlacementId>& tensor : *places_of) {
      key.push_back(tensor.size());
      for (const PlacementId id : tensor) key.push_back(id.index);
    }
  }
  for (const std::vector<bool>* flags : {&places.is_constant, &places.is_used}) {
    for (const bool flag : *flags) key.push_back(flag ? 1 : 0);
  }
  program_.costs.append_to_key(op, rule, key);
  return key;
}

const OptionList& OpOptions::of(const OpView& op, const OpChoice& known, const Function& function,
                                const Places& places) {
  TensorPlaces tensors;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    tensors.declared.push_back(program_.placements.declared(op.operand(i)));
    tensors.current.push_back(places.operands[i].front());
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    tensors.declared.push_back(wanted_placement(program_.module, program_.placements, function, op, i));
    tensors.current.push_back(places.results[i].empty() ? tensors.declared.back() : places.results[i].front());
  }
  std::unique_ptr<const OptionList>& found = known_[key(op, known, tensors, places)];
  if (found != nullptr) return *found;
  OptionList list;
  list.choices = {known};
  tensors.is_constant = places.is_constant;
  tensors.is_used = places.is_used;
  add(op, tensors, list.choices);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    for (size_t k = 1; k < places.operands[i].size(); ++k) {
      tensors.current[i] = places.operands[i][k];
      add(op, tensors, list.choices);
    }
    tensors.current[i] = places.operands[i].front();
  }
  if (op.def().traits.elementwise && op.result_count() == 1)
    add_at_wanted(op, places.results[0], tensors, list.choices);
  add_costs_and_homes(op, places, list);
  found = std::make_unique<const OptionList>(std::move(list));
  return *found;
}

// Where users far behind want the result, operands can be, too: they have its dims.
void OpOptions::add_at_wanted(const OpView& op, std::span<const PlacementId> wanted, TensorPlaces tensors,
                              std::vector<OpChoice>& options) {
  for (const PlacementId placement : wanted.subspan(std::min<size_t>(1, wanted.size()))) {
    for (size_t i = 0; i < op.operand_count(); ++i) {
      if (op.operand_type(i).shape == op.result_type().shape) tensors.current[i] = placement;
    }
    tensors.current.back() = placement;
    add(op, tensors, options);
  }
}

PlacementId OpOptions::home(ProgramPlacements& placements, const OpView& op, const OpChoice& choice, size_t result) {
  return has_wide_addends(placements, op, choice) ? placements.declared(op.result(result)) : choice.results[result];
}

namespace {

// Memory is paid where a kernel reads and writes it, which the placements of several ops decide (analysis/fusion.h): ops
// that do little else than that, and in one way alone, cost nothing here. The price of the whole choice has it.
bool has_own_time(const OpView& op) {
  const Traits& traits = op.def().traits;
  const bool is_of_memory = traits.elementwise || traits.movement || op.def().regions == Regions::kCombiner;
  return !is_of_memory || !op.def().methods.empty();
}

}  // namespace

void OpOptions::add_costs_and_homes(const OpView& op, const Places& places, OptionList& list) {
  const std::vector<bool> is_moved(op.operand_count(), false);
  list.homes.resize(op.result_count());
  for (const OpChoice& choice : list.choices) {
    Cost cost;
    int64_t work = 0;
    if (has_own_time(op)) {
      const Costs::Computed computed{op, sharding_rule(op), choice, is_moved, places.is_used};
      cost = program_.costs.compute(computed);
      if (std::isfinite(cost.bytes)) work = program_.costs.compute_price(computed).work;
    }
    list.works.push_back(work);
    for (size_t i = 0; i < op.result_count(); ++i) {
      const PlacementId made = choice.results[i], at = home(program_.placements, op, choice, i);
      list.homes[i].push_back(at);
      if (at != made) cost += program_.costs.reshard(type_made(program_.placements, op, i, made), made, at);
    }
    list.costs.push_back(cost);
  }
}

}  // namespace shardwise
