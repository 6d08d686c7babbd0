// SPDX-License-Identifier: Apache-2.0
//
// Answers from the recorded steps of propagation: when an axis came to a dim, from which tensor of which op, along
// which factor.
//
//   AxisHistory history(module, provenance);
//   size_t step = history.arrival({tanh_result}, 0, data, history.now());     // the visit of tanh
//   history.sources(step, 0, data)       // {"data", of its operand, dim 0, along factor i}
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/provenance.h"
#include "shardwise/propagation/factor_projection.h"
#include "shardwise/propagation/identity_rules.h"

namespace shardwise {

// A tensor with a sharding: a value, or result `result` of main as the caller sees it.
struct TensorRef {
  ValueId value = {};
  uint32_t result = 0;
  friend bool operator==(const TensorRef&, const TensorRef&) = default;
};
inline TensorRef changed_by(const PropagationStep& step) { return {step.value, step.value ? 0 : step.tensor}; }

// A tensor that had some digits of an axis before a visit brought them to a dim.
struct AxisSource {
  AxisRef axis;
  TensorRef from = {};
  size_t dim = 0;
  size_t tensor = 0;  // of the op
  FactorId factor = 0;
  bool own = false;  // the dim had these digits before
};

class AxisHistory {
 public:
  AxisHistory(const Module& module, const Provenance& provenance);

  const std::vector<PropagationStep>& steps() const { return provenance_.steps; }
  size_t now() const { return steps().size(); }  // behind all steps
  const Provenance& provenance() const { return provenance_; }

  ShardingId initial(const TensorRef& tensor) const;
  // The sharding just before step `time`.
  ShardingId at(const TensorRef& tensor, size_t time) const;
  bool has(ShardingId id, size_t dim, const AxisRef& axis) const;
  // The step before `time` that gave the tensor `axis` on `dim`; now() when it had it from the start.
  size_t arrival(const TensorRef& tensor, size_t dim, const AxisRef& axis, size_t time) const;
  int64_t priority(size_t s) const { return provenance_.priorities[steps()[s].turn]; }  // a user's
  // The first step of the visit that step `s` belongs to.
  size_t visit_begin(size_t s) const;
  // The tensors that had the digits of `axis` that step `s` left on `dim`.
  std::vector<AxisSource> sources(size_t s, size_t dim, const AxisRef& axis);

  // The tensors of an op, or of the tie between result `result` of main and the value returned there; empty for an op
  // without a rule.
  std::vector<TensorRef> tensors(OpId op, uint32_t result = 0) const;
  const ShardingRule& rule(OpId op, uint32_t result = 0);
  // The shardings of the tensors just before step `time`, as the op sees them.
  std::vector<ShardingId> seen_by(OpId op, size_t time, uint32_t result = 0) const;
  // A sharding of `tensor` as the op sees it, which knows no manual axes of the region around it.
  ShardingId seen_by(OpId op, const TensorRef& tensor, ShardingId id) const;
  // The same shardings, through the op's rule.
  const FactorProjection& project(OpId op, size_t time, uint32_t result = 0);
  const DataFlowEdge* edge_of(OpId op) const;

 private:
  const std::vector<size_t>& steps_of(const TensorRef& tensor) const;
  std::optional<AxisSource> source_of(const AxisRef& digits, size_t target, FactorId factor, const AxisList& grown);
  std::optional<AxisSource> source_in_dim(const AxisRef& digits, size_t target, std::span<const FactorId> factors);

  const Module& module_;
  const Provenance& provenance_;
  std::unordered_map<uint32_t, std::vector<size_t>> by_value_, by_result_;
  std::unordered_map<ValueId, const DataFlowEdge*> arguments_;  // of manual regions, by their op's in_shardings
  IdentityRules identities_;
  FactorProjection projection_, grown_;
  std::vector<TensorRef> tensors_;  // of the projection
};

}  // namespace shardwise
