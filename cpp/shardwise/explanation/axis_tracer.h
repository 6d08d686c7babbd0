// SPDX-License-Identifier: Apache-2.0
//
// Follows axes back to what a user wrote: the annotation that an axis comes from, and the ops between.
//
//   %0 = dot_general %x, %w        %x: [{"data"}, {}] by the annotation at train.py:8
//   %1 = tanh %0
//
//   AxisTracer tracer(module, history, mesh);
//   tracer.origins({%1}, 0, data, history.now())
//       argument %x (train.py:8)      path: dot_general operand 0, factor i (train.py:9); tanh (train.py:10)
//
// The path of %1 is that of %0 and one step more, and is held so: the paths of all values of a chain are as many steps
// as the chain has.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "shardwise/propagation/axis_history.h"

namespace shardwise {

// One op on the way of an axis, the nearest to its origin first.
struct PathEntry {
  OpId op;               // none: a result annotation of main
  std::string value;     // "%h", or "%a, %r:2": what a text calls its results, or ""
  std::string name;      // "stablehlo.dot_general"
  std::string location;  // "train.py:9", or ""
  std::string from;      // "operand 0 dim 1", "result 0 dim 0"
  std::string to;
  std::string factor;    // of the op's rule, as its text calls it: "i"
  int round = 0;         // propagation_rounds.h
  int64_t priority = 0;  // a user's
};

// What a user said about a value, or about a result of main.
struct Annotation {
  Holder holder;         // neither value nor op: a result of main
  OpId op;               // that says how its operands are sharded
  std::string text;      // "argument x", "sdy.sharding_constraint", "result 1 of main"
  std::string location;  // of it, or ""
  friend bool operator==(const Annotation& a, const Annotation& b) { return a.holder == b.holder && a.op == b.op; }
};

// The ops on the way of an axis, the nearest to its origin first. Paths that begin alike share that beginning, and live
// as long as one of them is used.
struct AxisPath {
  const AxisPath* before = nullptr;       // all steps but the last
  std::shared_ptr<const PathEntry> last;  // none in the path without steps
  size_t length = 0;
  const AxisPath* way = this;  // the first one made of those that lead along the same factors of the same ops

  AxisPath() = default;
  AxisPath(const AxisPath&) = delete;  // its address is what others know it by
  size_t size() const { return length; }
  const PathEntry* at(size_t step) const;
};

struct AxisOrigin {
  AxisRef axis;
  std::string axis_text;  // "x" or "x":(1)2, in quotes as in MLIR
  int64_t dim = 0;
  Annotation origin;
  std::shared_ptr<const AxisPath> path;
};

std::string side_text(size_t operands, size_t tensor);  // of an op: "operand 0", "result 0"
std::string tensor_text(size_t operands, size_t tensor, size_t dim);

class AxisTracer {
 public:
  AxisTracer(const Module& module, AxisHistory& history, const Mesh& mesh)
      : module_(module), context_(module.context()), history_(history), mesh_(mesh) {
    paths_->emplace_back();
  }

  // `axis` that `holder` has on `dim` before `time`. Digits that came in several ways give several origins.
  const std::vector<AxisOrigin>& origins(const Holder& holder, size_t dim, const AxisRef& axis, size_t time);

  Annotation annotation_of(const Holder& holder) const;

  Annotation annotation_of(OpId op) const;

  // Of the op whose annotation the step wrote onto another value: what a manual computation says of an operand, it says
  // of an argument of its region.
  Annotation said_by(const PropagationStep& step) const;

  // The group whose members disagree, of a constraint that propagation put between a member and its users.
  OpId disagreeing_group(OpId op);

  // What an edge's op hands on, said of the op that it belongs to.
  OpId shown(OpId op) const;

 private:
  void describe(OpId op, Annotation& annotation) const;

  // An axis that somebody has, to be followed further back. Known by when it came, it is the same one whenever it is
  // asked about.
  struct Spot {
    Holder holder;
    size_t dim = 0;
    AxisRef axis;
    size_t arrival = 0;
    auto key() const { return std::tuple(holder.value.index, holder.result, dim, axis, arrival); }
    friend bool operator<(const Spot& a, const Spot& b) { return a.key() < b.key(); }
  };
  using EntryPtr = std::shared_ptr<const PathEntry>;
  // One step back from a spot: the annotation that the axis comes from, or who had it before; `entry` is the op
  // between, none where the holder had these digits itself.
  struct Before {
    Spot spot;
    EntryPtr entry;
  };
  struct Back {
    std::optional<Annotation> end;
    std::vector<Before> before;
  };
  Spot spot(const Holder& holder, size_t dim, const AxisRef& axis, size_t time) const {
    return {.holder = holder, .dim = dim, .axis = axis, .arrival = history_.arrival(holder, dim, axis, time)};
  }
  const Back& step_back(const Spot& at);
  Back find_back(const Spot& at);
  // Of a spot, when those of the spots before it are known.
  std::vector<AxisOrigin> merged(const Spot& at, const Back& back);
  const AxisPath* extended(const AxisPath& path, const EntryPtr& entry);

  void find_groups();
  bool is_group(OpId op) const { return op && module_.op(op).def->traits.sharding_group; }

  // The members of a group begin with the sharding of those that had one.
  std::optional<Spot> other_member(const Spot& at, size_t arrival);

  // Of step `s`, which brought the axis to `dim` from `source`.
  PathEntry entry(size_t s, const AxisSource& source, size_t dim);

  // What a value is to an op with regions.
  std::string place_text(OpId op, ValueId value, size_t dim) const;

  const Module& module_;
  Context& context_;
  AxisHistory& history_;
  const Mesh& mesh_;
  std::map<Spot, Back> backs_;
  std::map<Spot, std::vector<AxisOrigin>> origins_;
  // The first path is the empty one. What points to a path keeps them all.
  std::shared_ptr<std::deque<AxisPath>> paths_ = std::make_shared<std::deque<AxisPath>>();
  std::map<std::tuple<const AxisPath*, uint32_t, std::string, std::string, std::string>, const AxisPath*> ways_;
  std::map<int64_t, std::vector<ValueId>> members_;  // of groups, by their numbers
  std::unordered_map<ValueId, OpId> groups_;         // the first group of each member
  bool knows_groups_ = false;
};

}  // namespace shardwise
