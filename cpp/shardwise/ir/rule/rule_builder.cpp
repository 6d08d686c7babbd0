// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/rule/rule_builder.h"

#include <algorithm>

namespace shardwise {
namespace {

std::vector<Dims> shapes_of(const OpView& op) {
  std::vector<Dims> shapes;
  for (const ValueId operand : op.operands()) shapes.push_back(op.module().type(operand).shape);
  for (size_t i = 0; i < op.result_count(); ++i) shapes.push_back(op.result_type(i).shape);
  return shapes;
}

}  // namespace

RuleBuilder::RuleBuilder(const OpView& op) : RuleBuilder(shapes_of(op), op.operand_count()) {}

RuleBuilder::RuleBuilder(std::vector<Dims> shapes, size_t operand_count)
    : shapes_(std::move(shapes)), operand_count_(operand_count) {
  for (const Dims& shape : shapes_) dims_.emplace_back(shape.size());
}

FactorId RuleBuilder::factor(int64_t size, FactorKind kind, bool blocked) {
  factors_.push_back(Factor{.size = size, .kind = kind, .blocked = blocked});
  return static_cast<FactorId>(factors_.size() - 1);
}

FactorId RuleBuilder::reduction(int64_t size, Reducer reducer, bool blocked) {
  const FactorId id = factor(size, FactorKind::kReduction, blocked);
  factors_[id].reducer = reducer;
  return id;
}

FactorId RuleBuilder::need_replication(int64_t size, bool blocked) {
  return factor(size, FactorKind::kNeedReplication, blocked);
}

FactorId RuleBuilder::permutation(int64_t size, bool blocked) {
  return factor(size, FactorKind::kPermutation, blocked);
}

RuleBuilder& RuleBuilder::map(size_t tensor, size_t dim, FactorId factor) {
  auto& factors = dims_[tensor][dim];
  // Shardy allows a factor of size 1 only where it is alone in its dim.
  if (factors_[factor].size != 1 || factors.empty()) factors.push_back(factor);
  return *this;
}

RuleBuilder& RuleBuilder::operand(size_t index, std::initializer_list<std::initializer_list<FactorId>> dims) {
  size_t d = 0;
  for (const auto& factors : dims) {
    for (FactorId factor : factors) map(index, d, factor);
    ++d;
  }
  return *this;
}

RuleBuilder& RuleBuilder::result(size_t index, std::initializer_list<std::initializer_list<FactorId>> dims) {
  return operand(result_tensor(index), dims);
}

RuleBuilder& RuleBuilder::range(size_t operand, size_t dim, const Range& range) {
  ranges_.emplace_back(std::pair(operand, dim), range);
  return *this;
}

size_t RuleBuilder::result_tensor(size_t result) const { return operand_count_ + result; }

RuleBuilder& RuleBuilder::pointwise(FactorKind kind, bool blocked) {
  const Dims shape = shapes_[operand_count_];
  for (size_t d = 0; d < shape.size(); ++d) {
    const FactorId id = factor(shape[d], kind, blocked);
    for (size_t t = 0; t < shapes_.size(); ++t) {
      // Operands of other shapes, such as the scalar bounds of a clamp, get no factor of the result.
      if (shapes_[t] == shape) map(t, d, id);
    }
  }
  return *this;
}

RuleBuilder& RuleBuilder::has_independent_pairs() {
  has_independent_pairs_ = true;
  return *this;
}

ShardingRule RuleBuilder::build() {
  ShardingRule rule;
  for (size_t t = 0; t < dims_.size(); ++t) {
    for (size_t d = 0; d < dims_[t].size(); ++d) {
      // Every dim has a factor in Shardy's form; one of size 1 belongs to nothing else and is never sharded.
      if (dims_[t][d].empty()) dims_[t][d].push_back(factor(1));
    }
  }
  rule.factors_ = factors_;
  rule.operand_count_ = operand_count_;
  rule.has_independent_pairs_ = has_independent_pairs_;
  for (const auto& tensor : dims_) {
    for (const auto& factors : tensor) {
      rule.dim_factors_.insert(rule.dim_factors_.end(), factors.begin(), factors.end());
      rule.dim_ends_.push_back(static_cast<uint16_t>(rule.dim_factors_.size()));
    }
    rule.tensor_ends_.push_back(static_cast<uint16_t>(rule.dim_ends_.size()));
  }
  for (const auto& [place, range] : ranges_) {
    rule.ranges_.emplace_back(rule.tensor_begin(place.first) + place.second, range);
  }
  return rule;
}

}  // namespace shardwise
