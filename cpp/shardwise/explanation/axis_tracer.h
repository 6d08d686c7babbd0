// SPDX-License-Identifier: Apache-2.0
//
// Follows axes back to annotations: the annotation that an axis comes from, and the ops between.
//
//   %0 = dot_general %x, %w        %x: [{"data"}, {}] by the annotation at train.py:8
//   %1 = tanh %0
//
//   AxisTracer tracer(module, history, mesh);
//   tracer.origins({%1}, 0, data, history.now())
//       argument %x (train.py:8)      path: dot_general operand 0, factor i (train.py:9); tanh (train.py:10)
//
// The path of %1 is that of %0 and one step more, and shares its memory: all paths along a chain of ops take as many
// steps as the chain has ops.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "shardwise/explanation/axis_history.h"

namespace shardwise {

// One op that carried an axis.
struct PathEntry {
  OpId op;               // none: a result annotation of main
  std::string value;     // the text's name for its results, "%h" or "%a, %r:2", or ""
  std::string name;      // "stablehlo.dot_general"
  std::string location;  // "train.py:9", or ""
  std::string from;      // "operand 0 dim 1", "result 0 dim 0"
  std::string to;
  std::string factor;    // of the op's rule, as in its text: "i"
  int round = 0;         // propagation_rounds.h
  int64_t priority = 0;  // a user's
};

// A user's annotation of a value, or of a result of main.
struct Annotation {
  TensorRef tensor = {};
  OpId op = {};               // the annotating op, where it stands for its operands
  std::string text = {};      // "argument x", "sdy.sharding_constraint", "result 1 of main"
  std::string location = {};  // its own, or ""
  friend bool operator==(const Annotation& a, const Annotation& b) { return a.tensor == b.tensor && a.op == b.op; }
};

// The ops that carried an axis, from the origin on. Paths with a common beginning share it, and keep it alive.
struct AxisPath {
  const AxisPath* before = nullptr;       // all steps but the last
  std::shared_ptr<const PathEntry> last;  // none in the path without steps
  size_t length = 0;
  const AxisPath* route = this;  // the first path made along the same factors of the same ops

  AxisPath() = default;
  AxisPath(const AxisPath&) = delete;  // paths are compared by address
  size_t size() const { return length; }
  const PathEntry* at(size_t step) const;
};

struct AxisOrigin {
  AxisRef axis;
  std::string axis_text = {};  // "x" or "x":(1)2, in quotes as in MLIR
  int64_t dim = 0;
  Annotation origin = {};
  std::shared_ptr<const AxisPath> path;
};

std::string side_text(size_t operands, size_t tensor);  // of an op: "operand 0", "result 0"
std::string tensor_text(size_t operands, size_t tensor, size_t dim);

class AxisTracer {
 public:
  AxisTracer(const Module& module, AxisHistory& history, const Mesh& mesh);

  // The origins of `axis` on `dim` of `tensor` just before step `time`; several where its digits came apart.
  const std::vector<AxisOrigin>& origins(const TensorRef& tensor, size_t dim, const AxisRef& axis, size_t time);

  Annotation annotation_of(const TensorRef& tensor) const;

  // The annotation by which the step's op sharded another value: a manual computation annotates its operands by the
  // shardings of its region's arguments.
  Annotation annotation_by(const PropagationStep& step) const;

  // The group whose members disagree, for a constraint that propagation put between a member and its users.
  OpId disagreeing_group(OpId op);

  // The op that a data-flow edge belongs to; any other op itself.
  OpId shown(OpId op) const;

 private:
  // An axis on a dim since step `arrival`.
  struct HeldAxis {
    TensorRef tensor;
    size_t dim = 0;
    AxisRef axis;
    size_t arrival = 0;
    auto key() const { return std::tuple(tensor.value.index, tensor.result, dim, axis, arrival); }
    friend bool operator<(const HeldAxis& a, const HeldAxis& b) { return a.key() < b.key(); }
  };
  using EntryPtr = std::shared_ptr<const PathEntry>;
  // The annotation that gave the axis, or the tensors that had its digits before, each with the op between; without
  // an op the dim had them itself.
  struct Predecessor {
    HeldAxis held;
    EntryPtr entry;
  };
  struct Predecessors {
    std::optional<Annotation> annotation = {};
    std::vector<Predecessor> list = {};
  };
  HeldAxis held(const TensorRef& tensor, size_t dim, const AxisRef& axis, size_t time) const {
    return {.tensor = tensor, .dim = dim, .axis = axis, .arrival = history_.arrival(tensor, dim, axis, time)};
  }
  Predecessors predecessors(const HeldAxis& at);
  std::vector<AxisOrigin> merged_origins(const HeldAxis& at, const Predecessors& before);
  const AxisPath* extended(const AxisPath& path, const EntryPtr& entry);
  Annotation annotation_of(OpId op) const;
  void find_groups();
  bool is_group(OpId op) const { return op && module_.op(op).def->traits.sharding_group; }
  std::optional<HeldAxis> member_with_axis(const HeldAxis& at);
  PathEntry entry(size_t s, const AxisSource& source, size_t dim);
  std::string edge_text(OpId op, ValueId value, size_t dim) const;

  const Module& module_;
  Context& context_;
  AxisHistory& history_;
  const Mesh& mesh_;
  std::map<HeldAxis, std::vector<AxisOrigin>> origins_;
  // The first path is the empty one. A pointer to one path keeps them all alive.
  std::shared_ptr<std::deque<AxisPath>> paths_ = std::make_shared<std::deque<AxisPath>>();
  std::map<std::tuple<const AxisPath*, uint32_t, std::string, std::string, std::string>, const AxisPath*> routes_;
  std::map<int64_t, std::vector<ValueId>> members_;  // of groups, by their numbers
  std::unordered_map<ValueId, OpId> groups_;         // the first group of each member
  bool knows_groups_ = false;
};

}  // namespace shardwise
