// SPDX-License-Identifier: Apache-2.0
//
// The rules of values that pass through unchanged: a data-flow edge with its sources, main with a returned value.
//
//   IdentityRules identities(context);
//   identities.of(type, 2)       // tensor<8x4xf32>: ([i, j], [i, j])->([i, j]) {i=8, j=4}
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "shardwise/ir/context.h"
#include "shardwise/ir/sharding_rule.h"

namespace shardwise {

class IdentityRules {
 public:
  explicit IdentityRules(const Context& context) : context_(context) {}

  // The rule of that many operands and one result. Lives as long as this object.
  const ShardingRule& of(TypeId type, size_t operands) {
    std::unique_ptr<ShardingRule>& known = rules_[{type, operands}];
    if (known == nullptr) {
      const std::vector<Dims> shapes(operands + 1, context_.type(type).shape);
      known = std::make_unique<ShardingRule>(RuleBuilder(shapes, operands).pointwise().build());
    }
    return *known;
  }

 private:
  const Context& context_;
  std::map<std::pair<TypeId, size_t>, std::unique_ptr<ShardingRule>> rules_;
};

}  // namespace shardwise
