// SPDX-License-Identifier: Apache-2.0
//
// Replays a recorded propagation (ir/provenance.h): the shardings at any time, and each visit of an op, with an
// observer (axis_observer.h).
//
//   %0 = dot_general %x, %w        %x: [{"a"}, {?}]   %w: [{?}, {"a"}]   %0: [{?}, {"a", ?}]
//
//   VisitReplay visits(module, provenance);
//   visits.tensors({dot_general})                                    %x, %w, %0
//   AxisObserver observer{.tensor = 2, .factor = i, .axis = a};
//   visits.replay({dot_general}, visits.now(), kLastRound, observer);
//   observer.verdict                                                 kOtherFactor: j has "a"
#pragma once

#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/provenance.h"
#include "shardwise/propagation/data_flow_edges.h"
#include "shardwise/propagation/factor_projection.h"
#include "shardwise/propagation/op_propagation.h"
#include "shardwise/propagation/rules_by_op.h"

namespace shardwise {

// A target of a visit: an op, or without one the tie between result `result` of main and the value returned there.
struct VisitedOp {
  OpId op = {};
  uint32_t result = 0;
};

// A tensor with a sharding: a value, or without one result `result` of main as the caller sees it.
struct TensorRef {
  ValueId value = {};
  uint32_t result = 0;
  friend auto operator<=>(const TensorRef&, const TensorRef&) = default;
};
struct TensorRefHash {
  size_t operator()(const TensorRef& tensor) const { return size_t{tensor.value.index} << 32 | tensor.result; }
};

// The visit that a step belongs to, its tensor, and the position of this tensor in VisitReplay::tensors.
inline VisitedOp visited_by(const PropagationStep& step) { return {step.op, step.op ? 0 : step.tensor}; }
inline TensorRef changed_by(const PropagationStep& step) { return {step.value, step.value ? 0 : step.tensor}; }
inline size_t position_of(const PropagationStep& step) { return step.op ? step.tensor : (step.value ? 0 : 1); }

class VisitReplay {
 public:
  VisitReplay(const Module& module, const Provenance& provenance);

  const Module& module() const { return module_; }
  const Provenance& provenance() const { return provenance_; }
  const std::vector<PropagationStep>& steps() const { return provenance_.steps; }
  size_t now() const { return steps().size(); }  // after all steps
  const PropagationRound& round_of(size_t s) const;
  // The steps that changed a tensor, and its sharding just before step `time`. At 0 it is the user's annotation.
  std::span<const size_t> steps_of(const TensorRef& tensor) const;
  ShardingId at(const TensorRef& tensor, size_t time) const;
  ShardingId initial(const TensorRef& tensor) const { return at(tensor, 0); }

  // Operands first. Those of a data-flow edge are its sources and the value after it.
  std::vector<TensorRef> tensors(VisitedOp visited) const;
  const ShardingRule& rule(VisitedOp visited);  // empty for an op that propagation never visits
  const DataFlowEdge* edge_of(OpId op) const { return DataFlowEdges::find(provenance_.edges, op); }
  // The shardings of the tensors as the op sees them: the ops of a manual region see no manual axes. And their factors.
  ShardingId seen_by(VisitedOp visited, const TensorRef& tensor, ShardingId sharding) const;
  std::vector<ShardingId> seen_by(VisitedOp visited, size_t time) const;
  const FactorProjection& project(VisitedOp visited, size_t time);

  // A visit just before step `time`: the shardings afterwards. With `only` as if the op had only the observer's tensor,
  // without its own axes of the factor, and the tensor `only`.
  std::span<const uint32_t> replay(VisitedOp visited, size_t time, int round, AxisObserver& observer,
                                   std::optional<size_t> only = {});

  // Throws InternalError unless all visits end as recorded.
  void verify();

 private:
  Visit visit(VisitedOp visited, int round);
  void verify_visit(size_t begin, size_t end);

  const Module& module_;
  const Provenance& provenance_;
  std::unordered_map<TensorRef, std::vector<size_t>, TensorRefHash> steps_of_;
  std::unordered_map<ValueId, const DataFlowEdge*> inner_arguments_;  // of manual regions, sharded as outside
  RulesByOp rules_;
  OpPropagation ops_;
  FactorProjection projection_;
};

}  // namespace shardwise
