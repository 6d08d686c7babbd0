// SPDX-License-Identifier: Apache-2.0
//
// The axes that neighbors of a value have and the value does not, and what kept each away. The answer is the decision
// of propagation itself: the last visit of the op between is replayed with an observer (visit_replay.h).
//
//   %0 = dot_general %x, %w        %x: [{"a"}, {}]   %w: [{}, {"a"}]   %0: [{}, {"a"}]
//
//   LostAxisFinder(context, %0, mesh).find_at(dot_general, 0, lost)
//       dim 0 did not get "a": "the axis shards result 0 dim 1", by the rule "… the larger tensor goes first"
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "shardwise/explanation/explanation_context.h"

namespace shardwise {

struct LostAxis {
  std::string axis_text;
  int64_t dim = 0;
  std::string op;     // the op that would have carried it
  std::string value;  // the text's name for its results, or ""
  std::string location;
  std::string reason = {};              // "an annotation closes the dim", "the axis shards operand 0 dim 1", …
  std::string rule = {};                // "closed dims take no further axes"
  std::vector<AxisOrigin> winner = {};  // the axes that it lost to
  std::optional<Annotation> closed_by = {};
};

class LostAxisFinder {
 public:
  LostAxisFinder(ExplanationContext& context, ValueId value, const Mesh& mesh);

  // Appends those that `op` would have carried; without an op, those of result `result` of main.
  void find_at(OpId op, uint32_t result, std::vector<LostAxis>& lost);

  // Appends what a barrier keeps back. Ops between it and the value may carry the axis on: they are searched, too.
  void find_behind_barriers(std::vector<LostAxis>& lost);

 private:
  struct CarriedDim;
  const Mesh* mesh_of(const TensorRef& tensor) const;
  bool connects(OpId op) const;
  void compare(AxisQuestion question, std::vector<LostAxis>& lost);
  LostAxis lost_axis(const AxisQuestion& question, const Mesh& mesh);
  void explain(const AxisQuestion& question, const Mesh& mesh, LostAxis& lost);
  void explain_refusal(const AxisQuestion& question, const AxisObserver& seen, LostAxis& lost);
  void explain_disagreement(const AxisQuestion& question, LostAxis& lost);
  void add_winner(size_t tensor, FactorId factor, const AxisRef& axis, LostAxis& lost);
  std::string precedence(const AxisQuestion& question, size_t dim, const AxisRef& winner);
  std::string precedence_of_later(const AxisQuestion& question, size_t won);
  std::optional<Annotation> closing_annotation(size_t tensor, size_t dim);
  std::vector<CarriedDim> carried_dims(const CarriedDim& at, OpId op, size_t own, std::vector<LostAxis>& lost);

  ExplanationContext& context_;
  const Module& module_;
  AxisHistory& history_;
  AxisTracer& tracer_;
  ValueId value_;
  const Mesh& mesh_;
  std::vector<TensorRef> tensors_;  // of the op at hand
  FactorProjection projection_;     // at the end
};

}  // namespace shardwise
