// SPDX-License-Identifier: Apache-2.0
//
// Projects the shardings of an op's tensors to the factors of its sharding rule, and back.
//
//   reshape ([ij])->([i, j]) {i=2, j=4}   mesh a=4
//   operand 8{"a"}         i: {"a":(1)2}   j: {"a":(2)2}     the first two-fold split fills i, the rest goes to j
//   result  2{} x 4{?}     i: {} closed    j: {} open
//
// Axes fill the factors of a dim from major to minor. A factor that is not the last takes only as much as divides it
// (which may split an axis). When factor and axis are coprime, this axis and all following ones are *overflow* of that
// factor, and the following factors get nothing. The last factor of a dim takes the rest, divisible or not.
//
// Back, a dim consists of the axes of its factors, one after another, as long as shards stay contiguous: a factor that
// is not fully sharded, or that has overflow, is the last one.
//
// One FactorProjection keeps its storage, so it should be reused for many ops.
#pragma once

#include <span>
#include <vector>

#include "shardwise/ir/rule/sharding_rule.h"
#include "shardwise/mesh/placement.h"

namespace shardwise {

struct FactorSharding {
  AxisList axes;        // major to minor
  AxisList overflow;    // axes that follow, which the factor's size cannot take
  bool mapped = false;  // the tensor has this factor, and may use it
  bool closed = false;
  bool minor_most = false;  // the last factor of its dim
};

struct TensorFactors {
  std::vector<FactorSharding> factors;  // by FactorId; look at `mapped` first
  AxisList replicated;
  AxisList unreduced;
  Reducer reducer = Reducer::kNone;
};

// The dim of a tensor that a factor belongs to.
size_t dim_of(const ShardingRule& rule, size_t tensor, FactorId factor);

class FactorProjection {
 public:
  // One sharding per tensor of the rule, operands first. Null means that a tensor has none: it is open.
  void project(const ShardingRule& rule, std::span<const TensorSharding* const> shardings);
  // After propagation, where all dims are closed. Null means replicated.
  void project(const ShardingRule& rule, std::span<const Placement* const> placements);

  const ShardingRule& rule() const { return *rule_; }
  size_t tensor_count() const { return tensor_count_; }
  size_t operand_count() const { return rule_->operand_count(); }
  TensorFactors& tensor(size_t i) { return tensors_[i]; }
  const TensorFactors& tensor(size_t i) const { return tensors_[i]; }
  // Null when the tensor does not have the factor.
  FactorSharding* find(size_t tensor, FactorId factor);
  const FactorSharding* find(size_t tensor, FactorId factor) const;

  // The tensor's sharding, projected back from its factors. Drops priorities.
  TensorSharding sharding(size_t tensor, const MeshPtr& mesh) const;

 private:
  template <class Sharding>
  void project_tensors(const ShardingRule& rule, std::span<const Sharding* const> shardings, bool is_closed_without);
  TensorFactors& start_tensor(size_t tensor);
  void project_dim(TensorFactors& tensor, std::span<const FactorId> factors, AxisSpan axes, bool closed);

  const ShardingRule* rule_ = nullptr;
  std::vector<TensorFactors> tensors_;  // may be longer than tensor_count_: storage of wider ops before
  size_t tensor_count_ = 0;
};

}  // namespace shardwise
