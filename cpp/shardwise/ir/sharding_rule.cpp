// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ir/sharding_rule.h"

#include <algorithm>

#include "shardwise/base/error.h"
#include "shardwise/ir/module.h"
#include "shardwise/ir/rule_attribute.h"

namespace shardwise {
namespace {

// Attributes may be any int64, so products of two need more bits.
using Wide = __int128;

// Rounds to minus infinity, where / rounds to 0: -1 / 2 is -1.
Wide wide_floor_div(Wide a, Wide b) { return a >= 0 ? a / b : -((-a + b - 1) / b); }

int64_t clamped(Wide index, int64_t size) { return static_cast<int64_t>(std::clamp<Wide>(index, 0, size)); }

}  // namespace

// ---- ranges --------------------------------------------------------------------------------------------------------

Interval Range::reads(Interval result, int64_t size) const {
  if (result.begin >= result.end) return {};
  const auto index = [&](int64_t of) { return Wide{scale} * of + offset; };
  // A negative scale reads from the end, so the two ends of the result may swap.
  const auto [first, end] = std::minmax({index(result.begin), index(result.end - 1)});
  const Wide last = end + Wide{window - 1} * dilation;
  // pad low=2, interior=1 of 3 rows (offset -2, holes 2): results [0, 4) touch the places -2 … 1, row 0 alone.
  const Interval found{clamped(-wide_floor_div(-first, holes), size), clamped(wide_floor_div(last, holes) + 1, size)};
  return found.begin < found.end ? found : Interval{};
}

bool Range::stays_local(Blocks operand, Blocks result) const {
  // Blocks that start at the same place in each shard need the same local op.
  if (!is_static() || Wide{scale} * result.block != Wide{holes} * operand.block) return false;
  const auto last = [&](int64_t count) { return offset + Wide{scale} * (count - 1) + Wide{window - 1} * dilation; };
  // An offset above -holes begins in the holes before the block's first row, and reads nothing of the shard before.
  const bool inside_block = offset > -holes && last(result.block) < Wide{holes} * operand.block;
  return inside_block && (result.size == 0 || last(result.size) < Wide{holes} * operand.size);
}

// ---- rules ---------------------------------------------------------------------------------------------------------

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

std::string ShardingRule::text() const { return shardwise::text(to_attribute(*this, false)); }

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
