// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rule/sharding_rule.h"

#include <algorithm>

namespace shardwise {

std::string factor_symbol(size_t factor) {
  if (factor <= 'z' - 'i') return std::string(1, static_cast<char>('i' + factor));
  return "z_" + std::to_string(factor - ('z' - 'i'));
}

bool ShardingRule::has_factor(size_t tensor, FactorId factor) const {
  for (size_t d = 0; d < ndim(tensor); ++d) {
    if (std::ranges::find(dim(tensor, d), factor) != dim(tensor, d).end()) return true;
  }
  return false;
}

const Range* ShardingRule::range(size_t operand, size_t dim) const {
  for (const auto& [flat, range] : ranges_) {
    if (flat == tensor_begin(operand) + dim) return &range;
  }
  return nullptr;
}

}  // namespace shardwise
