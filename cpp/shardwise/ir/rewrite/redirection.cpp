// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/redirection.h"

namespace shardwise {

ValueId Redirection::operator()(ValueId value) const {
  // A target may have been redirected itself, a -> b -> c.
  for (auto it = targets_.find(value); it != targets_.end(); it = targets_.find(value)) value = it->second;
  return value;
}

void Redirection::apply(OpId op) const {
  if (empty()) return;
  map_operands(module_, op, *this);
  for (const RegionId region : module_.regions(op)) apply(region);
}

void Redirection::apply(RegionId region) const {
  for (const OpId op : module_.region(region).ops) apply(op);
  map_results(module_, region, *this);
}

}  // namespace shardwise
