// SPDX-License-Identifier: Apache-2.0
//
// Follows axes back to annotations: the annotation that an axis comes from, and the ops between.
//
//   %0 = dot_general %x, %w        %x: [{"data"}, {}] by the annotation at train.py:8
//   %1 = tanh %0
//
//   AxisTracer tracer(module, history);
//   tracer.origins({%1}, 0, data, history.now())
//       argument %x (train.py:8)      path 1: dot_general operand 0, factor i (train.py:9); tanh (train.py:10)
//
// A path is the index of its last step, and each step has the path before it. Paths with a common beginning share it:
// all paths along a chain of ops take as many steps as the chain has ops.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "shardwise/explanation/axis_history.h"

namespace shardwise {

using PathId = int64_t;
inline constexpr PathId kNoSteps = -1;

// An op or an annotation, as users see it.
struct Label {
  std::string text = {};      // "stablehlo.dot_general"; "argument x", "result 1 of main"
  std::string location = {};  // "train.py:9", or ""
  std::string name = {};      // of the annotated value or the op's results: "%h", "%a, %r:2", or ""
};

// One op that carried an axis.
struct PathStep {
  PathId before = kNoSteps;
  OpId op;
  Label label;
  std::string from;  // "operand 0 dim 1", "result 0 dim 0"
  std::string to;
  std::string factor;    // of the op's rule, as in its text: "i"
  int round = 0;         // propagation_rounds.h
  int64_t priority = 0;  // a user's
};

// A user's annotation of a value, or of a result of main.
struct Annotation {
  TensorRef tensor = {};
  OpId op = {};  // the annotating op, if it annotates its operands
  Label label = {};
  friend bool operator==(const Annotation& a, const Annotation& b) { return a.tensor == b.tensor && a.op == b.op; }
};

struct AxisOrigin {
  AxisRef axis;
  std::string axis_text = {};  // "x" or "x":(1)2, in quotes as in MLIR
  int64_t dim = 0;
  Annotation origin = {};
  PathId path = kNoSteps;  // from the origin on
};

class AxisTracer {
 public:
  AxisTracer(const Module& module, AxisHistory& history) : module_(module), history_(history) {}

  // The origins of `axis` on `dim` of `tensor` just before step `time`; several if its digits came separately.
  const std::vector<AxisOrigin>& origins(const TensorRef& tensor, size_t dim, const AxisRef& axis, size_t time);
  const std::vector<PathStep>& paths() const { return paths_; }  // by PathId

  Annotation annotation_of(const TensorRef& tensor) const;
  Label label_of(OpId op) const;

  // The annotation by which the step's op sharded another value: a manual computation annotates its operands by the
  // shardings of its region's arguments.
  Annotation annotation_by(const PropagationStep& step) const;

  // The op that a data-flow edge belongs to; any other op itself.
  OpId shown(OpId op) const;

 private:
  // An axis on a dim. Those that it was made of arrived earlier, so they come first in this order.
  struct HeldAxis {
    std::optional<size_t> arrival;  // the step that brought it; none: it was there from the start
    TensorRef tensor;
    size_t dim = 0;
    AxisRef axis;
    friend auto operator<=>(const HeldAxis&, const HeldAxis&) = default;
  };
  // The annotation that gave the axis, or the tensors that had its digits before and the op between; without an op the
  // dim had them itself.
  struct Predecessors {
    std::optional<Annotation> annotation = {};
    std::vector<std::pair<HeldAxis, std::optional<PathStep>>> list = {};
  };
  HeldAxis held(const TensorRef& tensor, size_t dim, const AxisRef& axis, size_t time) const {
    return {.arrival = history_.arrival(tensor, dim, axis, time), .tensor = tensor, .dim = dim, .axis = axis};
  }
  Predecessors predecessors(const HeldAxis& at);
  std::vector<AxisOrigin> merged_origins(const HeldAxis& at, const Predecessors& before);
  PathId extended(PathId path, const PathStep& step);
  PathStep path_step(size_t s, const AxisSource& source, size_t dim) const;
  std::string place_text(const PropagationStep& step, size_t tensor, ValueId value, size_t dim) const;

  const Module& module_;
  AxisHistory& history_;
  std::map<HeldAxis, std::vector<AxisOrigin>> origins_;
  std::vector<PathStep> paths_;
  // Keyed by the previous path and the last step (op, axis, source, target): equal steps share one path.
  std::map<std::tuple<PathId, OpId, std::string, std::string, std::string>, PathId> known_paths_;
};

}  // namespace shardwise
