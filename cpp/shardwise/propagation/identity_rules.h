// SPDX-License-Identifier: Apache-2.0
//
// The rule of what hands a value on as it is: a data-flow edge with its sources, main with a value that it returns.
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

  // Of so many operands and one result; lives as long as this.
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
