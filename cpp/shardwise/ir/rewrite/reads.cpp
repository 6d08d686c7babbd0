// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/reads.h"

#include <unordered_set>

namespace shardwise {
namespace {

std::vector<ValueId> captures_of(const Module& module, std::span<const RegionId> regions) {
  // The set removes duplicates; the list keeps the order of first use, so that passes are deterministic.
  std::vector<ValueId> values;
  std::unordered_set<ValueId> known;
  for (const RegionId region : regions) {
    visit_captures(module, region, [&](ValueId value, OpId) {
      if (known.insert(value).second) values.push_back(value);
    });
  }
  return values;
}

}  // namespace

std::vector<ValueId> captures_of(const Module& module, RegionId region) {
  return captures_of(module, std::span(&region, 1));
}

std::vector<ValueId> captures_of(const Module& module, OpId op) { return captures_of(module, module.regions(op)); }

}  // namespace shardwise
