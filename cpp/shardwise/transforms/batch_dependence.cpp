// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/batch_dependence.h"

#include <algorithm>

#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {

bool BatchDependence::uses_batched(OpId op) {
  const auto batched = [&](ValueId value) { return is_batched(value); };
  return std::ranges::any_of(module_.operands(op), batched) || std::ranges::any_of(captures_of(module_, op), batched);
}

LoopBatching BatchDependence::loop(OpId op) {
  const LoopParts parts = loop_parts(OpView(module_, op));
  LoopBatching found;
  for (const LoopParts::Carry& carry : parts.carries) found.carries.push_back(is_batched(carry.entry));
  // (a, b) -> (b, c) with a batched c: one sweep finds b, the next one a. A carry that is batched stays so.
  for (bool grows = true; grows;) {
    grows = false;
    mark(module_.region(parts.body).arguments, found.carries);
    visit(parts.body);
    for (size_t i = 0; i < found.carries.size(); ++i) {
      if (found.carries[i] || !is_batched(parts.carries[i].next)) continue;
      found.carries[i] = grows = true;
    }
  }
  // The condition makes no carries, so it is visited once, when those are known.
  mark(module_.region(parts.condition).arguments, found.carries);
  visit(parts.condition);
  found.predicate = is_batched(parts.predicate);
  // An example that is done keeps its carries, while those of the others change.
  for (size_t i = 0; found.predicate && i < found.carries.size(); ++i) {
    found.carries[i] = found.carries[i] || !parts.carries[i].is_invariant();
  }
  return found;
}

std::vector<bool> BatchDependence::branches(OpId op) {
  // An index per example selects between the results of all branches, so that each result differs between examples.
  std::vector<bool> batched(module_.op(op).result_count, is_batched(module_.operands(op)[0]));
  for (const RegionId branch : module_.regions(op)) {
    visit(branch);
    const std::vector<ValueId>& results = module_.region(branch).results;
    for (size_t i = 0; i < batched.size(); ++i) batched[i] = batched[i] || is_batched(results[i]);
  }
  return batched;
}

void BatchDependence::visit(RegionId region) {
  for (const OpId op : module_.region(region).ops) visit(op);
}

void BatchDependence::visit(OpId op) {
  std::vector<ValueId> results;
  for (uint32_t i = 0; i < module_.op(op).result_count; ++i) results.push_back(module_.result(op, i));
  switch (module_.op(op).def->regions) {
    case Regions::kLoop: return mark(results, loop(op).carries);
    case Regions::kBranches: return mark(results, branches(op));
    default: return mark(results, std::vector<bool>(results.size(), uses_batched(op)));
  }
}

}  // namespace shardwise
