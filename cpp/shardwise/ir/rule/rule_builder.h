// SPDX-License-Identifier: Apache-2.0
//
// Makes the sharding rule of an op, factor by factor:
//
//   RuleBuilder rule(op);                       // op: OpView
//   auto i = rule.factor(4), k = rule.reduction(8, Reducer::kSum);
//   rule.operand(0, {{i}, {k}});                // one factor list per dim
//   …
//   return rule.build();                        // gives dims without factors a size-1 (or need-replication) factor
#pragma once

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/rule/range.h"
#include "shardwise/ir/rule/sharding_rule.h"

namespace shardwise {

class RuleBuilder {
 public:
  explicit RuleBuilder(const OpView& op);
  // For a rule without an op: the first `operand_count` shapes are operands, the others results.
  RuleBuilder(std::vector<Dims> shapes, size_t operand_count);

  FactorId factor(int64_t size, FactorKind kind = FactorKind::kPassThrough, bool blocked = false);
  FactorId reduction(int64_t size, Reducer reducer, bool blocked = false);
  FactorId need_replication(int64_t size, bool blocked = false);
  FactorId permutation(int64_t size, bool blocked = false);
  // Appends a factor to a dim; a size-1 factor is never appended to a dim that already has one.
  RuleBuilder& map(size_t tensor, size_t dim, FactorId factor);
  RuleBuilder& operand(size_t index, std::initializer_list<std::initializer_list<FactorId>> dims);
  RuleBuilder& result(size_t index, std::initializer_list<std::initializer_list<FactorId>> dims);
  // How the op reads a dim of an operand, whose factor may then stay sharded.
  RuleBuilder& range(size_t operand, size_t dim, const Range& range);
  size_t result_tensor(size_t result) const;
  size_t tensor_count() const { return shapes_.size(); }
  // One factor per dim of the first result, on every tensor of that shape; scalars get none.
  RuleBuilder& pointwise(FactorKind kind = FactorKind::kPassThrough, bool blocked = false);
  RuleBuilder& has_independent_pairs();
  ShardingRule build();

 private:
  std::vector<Factor> factors_;
  std::vector<Dims> shapes_;
  std::vector<std::vector<std::vector<FactorId>>> dims_;
  std::vector<std::pair<std::pair<size_t, size_t>, Range>> ranges_;  // by operand and dim
  size_t operand_count_;
  bool has_independent_pairs_ = false;
};

}  // namespace shardwise
