// SPDX-License-Identifier: Apache-2.0
//
// Queries on the recorded steps of propagation: when an axis came to a dim, from which tensor of which op, along which
// factor.
//
//   AxisHistory history(module, provenance);
//   auto step = history.arrival({tanh_result}, 0, data, history.now());   // the visit of tanh
//   history.sources(*step, 0, data)      // {"data", of its operand, dim 0, along factor i}
#pragma once

#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "shardwise/propagation/visit_replay.h"

namespace shardwise {

// A tensor that had some digits of an axis before a visit brought them to a dim.
struct AxisSource {
  AxisRef axis;
  TensorRef from = {};
  size_t dim = 0;
  size_t tensor = 0;  // of the op
  FactorId factor = 0;
  bool own = false;  // the dim had these digits before
};

class AxisHistory : public VisitReplay {
 public:
  AxisHistory(const Module& module, const Provenance& provenance);

  bool has(ShardingId id, size_t dim, const AxisRef& axis) const;
  // The step before `time` that gave the tensor `axis` on `dim`; none when it had it from the start.
  std::optional<size_t> arrival(const TensorRef& tensor, size_t dim, const AxisRef& axis, size_t time) const;
  // The first step from `time` on that left `axis` on `dim` of the tensor.
  std::optional<size_t> next_arrival(const TensorRef& tensor, size_t dim, const AxisRef& axis, size_t time) const;
  // The first step of the visit that step `s` belongs to.
  size_t visit_begin(size_t s) const;
  // The tensors that had the digits of `axis` that step `s` left on `dim`.
  std::vector<AxisSource> sources(size_t s, size_t dim, const AxisRef& axis);
  // The ops that define and use the value, the data-flow edges that connect it, and the results of main that it is.
  const std::vector<VisitedOp>& visits_of(ValueId value) const;
  bool has_barrier() const { return has_barrier_; }

  bool is_group(OpId op) const { return op && module().op(op).def->traits.sharding_group; }
  // The group whose members disagree, for a constraint that propagation put between a member and its users.
  OpId disagreeing_group(OpId op) const;

 private:
  std::vector<AxisSource> source_in_group(size_t s, size_t dim, const AxisRef& axis) const;
  std::optional<AxisSource> source_of(const AxisRef& digits, size_t target, FactorId factor, AxisSpan grown) const;

  std::map<int64_t, std::vector<ValueId>> members_;  // of groups, by their numbers
  std::unordered_map<ValueId, OpId> groups_;         // the first group of each member
  std::unordered_map<ValueId, std::vector<VisitedOp>> visits_of_;
  bool has_barrier_ = false;
  const FactorProjection* factors_ = nullptr;  // of the visit at hand, before it
  FactorProjection grown_;                     // of its target, afterwards
  std::vector<TensorRef> tensors_;
};

}  // namespace shardwise
