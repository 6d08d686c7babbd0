// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rewrite/reads.h"

#include <unordered_set>

namespace shardwise {
namespace {

class Captures {
 public:
  explicit Captures(const Module& module) : module_(module) {}

  void add(RegionId region) {
    visit_captures(module_, region, [&](ValueId value, OpId) {
      // The set removes duplicates; the list keeps the order of first use, so that passes are deterministic.
      if (known_.insert(value).second) values_.push_back(value);
    });
  }
  std::vector<ValueId> take() { return std::move(values_); }

 private:
  const Module& module_;
  std::vector<ValueId> values_;
  std::unordered_set<ValueId> known_;
};

}  // namespace

std::vector<ValueId> captures_of(const Module& module, RegionId region) {
  Captures captures(module);
  captures.add(region);
  return captures.take();
}

std::vector<ValueId> captures_of(const Module& module, OpId op) {
  Captures captures(module);
  for (const RegionId region : module.regions(op)) captures.add(region);
  return captures.take();
}

}  // namespace shardwise
