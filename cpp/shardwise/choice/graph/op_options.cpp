// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/graph/op_options.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "shardwise/choice/greedy/heuristics.h"

namespace shardwise {

void OpOptions::add(const OpView& op, const TensorPlaces& places, std::vector<OpChoice>& options) {
  std::vector<const Placement*> current;
  for (size_t i = 0; i < op.operand_count(); ++i) current.push_back(program_.placements.find(places.current[i]));
  const Pending pending = pending_of(op, program_.linearity, current);
  const CandidateList& list = lists_.of(op, sharding_rule(op), pending, places);
  for (size_t i = 0; i < list.candidates.size() && options.size() < kMostOptions; ++i) {
    const OpChoice& choice = list.candidates[i].choice;
    if (std::isfinite(list.compute[i].bytes) && std::ranges::find(options, choice) == options.end()) {
      options.push_back(choice);
    }
  }
}

std::vector<OpChoice> OpOptions::of(const OpView& op, const OpChoice& known, const Function& function,
                                    const Places& places) {
  std::vector<OpChoice> options{known};
  TensorPlaces tensors;
  for (size_t i = 0; i < op.operand_count(); ++i) {
    tensors.declared.push_back(program_.placements.declared(op.operand(i)));
    tensors.current.push_back(places.operands[i].front());
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    tensors.declared.push_back(wanted_placement(program_.module, program_.placements, function, op, i));
    tensors.current.push_back(places.results[i] ? places.results[i] : tensors.declared.back());
  }
  tensors.is_constant = places.is_constant;
  tensors.is_used = places.is_used;
  add(op, tensors, options);
  for (size_t i = 0; i < op.operand_count(); ++i) {
    for (size_t k = 1; k < places.operands[i].size(); ++k) {
      tensors.current[i] = places.operands[i][k];
      add(op, tensors, options);
    }
    tensors.current[i] = places.operands[i].front();
  }
  return options;
}

}  // namespace shardwise
