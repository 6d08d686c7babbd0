// SPDX-License-Identifier: Apache-2.0
//
// Which ops a sweep still has to visit. A sweep goes from top to bottom; ops that a change brings back go first, the
// last one that was pushed before the others:
//
//   queue.begin_sweep();
//   for (OpId op : graph.order()) {
//     if (!queue.is_waiting(op)) continue;             // was visited early
//     if (queue.take(op)) …                            // false for an unused op, which is skipped
//     while (queue.has_pushed()) … queue.pop() …
//   }
//
// The order is Shardy's, down to when it finds that an op has become unused: it decides conflicts.
#pragma once

#include <cstdint>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/rewrite/called.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/propagation/propagation_graph.h"

namespace shardwise {

class VisitQueue {
 public:
  // `settles`: every op is pushed when a tensor of it changes, so a visit that changes nothing need not be repeated.
  VisitQueue(const Module& module, PropagationGraph& graph, bool settles)
      : module_(module),
        graph_(graph),
        settles_(settles),
        states_(module.op_count()),
        kept_(module, IsKept{{&module, UnusedConstraints::kKeep}}) {}

  void begin_sweep() {
    for (State& state : states_) state.queued = true;
  }
  bool is_waiting(OpId id) const { return states_[id.index].queued; }

  // Takes the op out of the queue; false when it takes no part any more. An op without users, unless it has effects,
  // ends here, and the ops before it may be next.
  bool take(OpId id) {
    State& state = states_[id.index];
    state.queued = false;
    if (state.dead || (state.may_be_unused && remove_if_unused(id))) return false;
    state.may_be_unused = false;
    return !state.stays_out;
  }
  // From now on, `take` is false for the ops that are not let in.
  void keep_out_all() {
    for (State& state : states_) state.stays_out = true;
  }
  void let_in(OpId id) { states_[id.index].stays_out = false; }

  void push(OpId id) {
    State& state = states_[id.index];
    state.settled = 0;
    if (state.queued || state.dead) return;
    state.queued = true;
    pushed_.push_back(id);
  }
  bool has_pushed() const { return !pushed_.empty(); }
  OpId pop() {
    const OpId id = pushed_.back();
    pushed_.pop_back();
    return id;
  }

  // A visit that takes part in this way would change nothing.
  bool is_settled(OpId id, Participation part) const { return states_[id.index].settled == part.code(); }
  void settle(OpId id, Participation part) { states_[id.index].settled = settles_ ? part.code() : uint8_t{0}; }
  void unsettle(OpId id) { states_[id.index].settled = 0; }
  void unsettle_all() {
    for (State& state : states_) state.settled = 0;
  }

 private:
  struct State {
    bool queued : 1 = false;
    bool dead : 1 = false;
    bool may_be_unused : 1 = true;
    bool stays_out : 1 = false;
    uint8_t settled = 0;  // the code of a participation; 0: none
  };
  // MLIR does not know the effects of a function, so Shardy keeps every call.
  struct IsKept {
    OwnEffect has_effect;
    bool operator()(OpId id) const { return has_effect.module->op(id).def->is_call() || has_effect(id); }
  };
  bool remove_if_unused(OpId id);
  void remove(OpId id);  // with what is in its regions
  bool has_at_most_one_user(ValueId value) const;

  const Module& module_;
  PropagationGraph& graph_;
  bool settles_;
  std::vector<State> states_;  // by op
  std::vector<OpId> pushed_;
  AnyExecuted<IsKept> kept_;
};

}  // namespace shardwise
