// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/candidates/candidate.h"

#include <algorithm>

namespace shardwise {

Candidate candidate_of(const ProgramPlacements& placements, const OpView& op, const ShardingRule& rule,
                       const ComputeSharding& compute, const Pending& pending) {
  Candidate candidate{.choice = {.method = compute.method, .operands = {}, .results = {}},
                      .passes = !compute.passed.empty(),
                      .work = compute.local_work(op, rule)};
  OpChoice& choice = candidate.choice;
  choice.operands.reserve(op.operand_count());
  choice.results.reserve(op.result_count());
  for (size_t i = 0; i < op.operand_count(); ++i) {
    choice.operands.push_back(operand_placement(placements, op, rule, compute, pending, i));
  }
  for (size_t i = 0; i < op.result_count(); ++i) {
    choice.results.push_back(result_placement(placements, op, rule, compute, pending, i));
  }
  if (compute.method == nullptr || compute.reduced.empty()) return candidate;
  choice.method_reduces = std::ranges::any_of(compute.method->factors(op, rule), [&](FactorId id) {
    return !compute.factors[id].empty() && overlaps(compute.factors[id], compute.reduced);
  });
  return candidate;
}

OpChoice replicated_choice(ProgramPlacements& placements, const OpView& op) {
  OpChoice choice;
  const auto whole = [&](ValueId value) { return placements.replicated(op.module().value(value).type); };
  for (const ValueId operand : op.operands()) choice.operands.push_back(whole(operand));
  for (size_t i = 0; i < op.result_count(); ++i) choice.results.push_back(whole(op.result(i)));
  return choice;
}

bool has_wide_addends(const ProgramPlacements& placements, const OpView& op, const OpChoice& choice) {
  return op.result_count() != 0 &&
         type_made(placements, op, 0, choice.results[0]) != op.module().value(op.result()).type;
}

}  // namespace shardwise
