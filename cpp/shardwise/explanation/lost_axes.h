// SPDX-License-Identifier: Apache-2.0
//
// The axes that neighbors of a value have and the value does not, and the reason for each. The answer is the decision
// of propagation itself: the last visit of the op between is repeated with an observer (visit_replay.h).
//
//   %0 = dot_general %x, %w        %x: [{"a"}, {}]   %w: [{}, {"a"}]   %0: [{}, {"a"}]
//
//   LostAxisFinder(module, history, tracer).find(%0)
//       dim 0 did not get "a": "the axis shards result 0 dim 1", by the rule "… the larger tensor goes first"
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "shardwise/explanation/axis_tracer.h"

namespace shardwise {

struct LostAxis {
  std::string axis_text;
  int64_t dim = 0;
  Label carrier = {};                   // the op that would have carried it
  std::string reason = {};              // "an annotation closes the dim", "the axis shards operand 0 dim 1", …
  std::string rule = {};                // "closed dims take no further axes"
  std::vector<AxisOrigin> winner = {};  // the axes that it lost to
  std::optional<Annotation> closed_by = {};
};

class LostAxisFinder {
 public:
  LostAxisFinder(const Module& module, AxisHistory& history, AxisTracer& tracer);

  // The ops that define and use the value, the data-flow edges that connect it, and the results of main that it is.
  const std::vector<VisitedOp>& visits_of(ValueId value) const;

  std::vector<LostAxis> find(ValueId value);
  // The axes that barriers block, also if ops between barrier and value would propagate them.
  std::vector<LostAxis> find_behind_barriers(ValueId value);

 private:
  // An axis that tensor `other` of an op has on a factor, and tensor `tensor` does not.
  struct Question {
    VisitedOp at;
    size_t tensor = 0, other = 0;
    FactorId factor = 0;
    AxisRef axis = {};
  };
  struct CarriedDim;
  void find_at(VisitedOp at, ValueId value, std::vector<LostAxis>& lost);
  const Mesh* mesh_of(size_t tensor) const;
  size_t dim(size_t tensor, FactorId factor) const { return dim_of(projection_.rule(), tensor, factor); }
  std::string place(size_t tensor, FactorId factor) const;
  void compare(Question question, std::vector<LostAxis>& lost);
  Label carrier_of(VisitedOp at) const;
  AxisObserver observe(const Question& question, size_t time, int round, bool only_two = false);
  void explain(const Question& question, LostAxis& lost);
  void explain_refusal(const Question& question, const AxisObserver& seen, LostAxis& lost);
  void explain_disagreement(const Question& question, LostAxis& lost);
  void add_winner(size_t tensor, FactorId factor, const AxisRef& axis, LostAxis& lost);
  std::string precedence(const Question& question, FactorId factor, const AxisRef& winner);
  std::string precedence_of_later(const Question& question, size_t won);
  std::optional<Annotation> closing_annotation(size_t tensor, size_t dim);
  std::vector<CarriedDim> carried_dims(const CarriedDim& to, OpId op);

  const Module& module_;
  AxisHistory& history_;
  AxisTracer& tracer_;
  std::unordered_map<ValueId, std::vector<VisitedOp>> visits_of_;
  bool has_barrier_ = false;
  std::vector<TensorRef> tensors_;  // of the op at hand
  FactorProjection projection_;     // at the end
};

}  // namespace shardwise
