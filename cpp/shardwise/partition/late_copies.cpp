// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/late_copies.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <utility>

#include "shardwise/ir/rewrite/reads.h"

namespace shardwise {
namespace {

// The op of `region` that a use is in; none for a result of the region.
OpId user_in(const Module& module, RegionId region, const Use& use) {
  OpId op = use.op ? use.op : module.region(use.region).op;
  while (op && module.op(op).parent != region) op = module.region(module.op(op).parent).op;
  return op;
}

}  // namespace

ValueId LateCopies::operator()(ValueId value) {
  const ValueId known = copy_(value);
  if (known != value || !needs_copy_(value)) return known;
  // A chain of ops that need each other may be long.
  std::vector<OpId> open = {module_.value(value).op};
  while (!open.empty()) {
    const OpId op = open.back();
    if (copy_(module_.result(op)) != module_.result(op)) {
      open.pop_back();
      continue;
    }
    const size_t before = open.size();
    visit_reads(module_, op, [&](ValueId read) {
      const OpId maker = module_.value(read).op;
      if (maker && maker != op && copy_(read) == read && needs_copy_(read)) open.push_back(maker);
    });
    if (open.size() != before) continue;
    make(op);
    open.pop_back();
  }
  return copy_(value);
}

void LateCopies::make(OpId op) {
  const LocId loc = module_.op(op).loc;
  made_.emplace_back(rewrite_.insert(at_, loc, [&](Builder& builder) { return copy_.op(op, builder.region()); }), op);
}

void LateCopies::sink() {
  rewrite_.commit(at_.region);
  // The place of each op: of a copy, that of the first op in front of which it has to be.
  std::unordered_map<OpId, size_t> places;
  const std::vector<OpId> ops = module_.region(at_.region).ops;
  for (size_t i = 0; i < ops.size(); ++i) places[ops[i]] = i;
  for (const auto& [copy, original] : made_ | std::views::reverse) {
    size_t& place = places[copy] = ops.size();  // what only the region returns is made at its end
    for (const ValueId result : results_of(module_, copy)) {
      for (const Use use : module_.uses(result)) {
        if (const OpId user = user_in(module_, at_.region, use)) place = std::min(place, places.at(user));
      }
    }
  }
  for (const auto& [copy, original] : made_) {
    const size_t place = places.at(copy);
    rewrite_.move(copy, place < ops.size() ? rewrite_.before(ops[place]) : rewrite_.end(at_.region));
  }
  rewrite_.commit(at_.region);
}

}  // namespace shardwise
