// SPDX-License-Identifier: Apache-2.0
//
// Replaces values where ops read them, op by op: works in a region that no function holds yet, in which a value's uses
// are unknown (rewrite.h needs them).
//
//   Redirection redirection(module);
//   redirection.add(a, b);
//   redirection.apply(op);       // the op, and the ops in its regions, read b in place of a
#pragma once

#include <unordered_map>

#include "shardwise/ir/module.h"

namespace shardwise {

class Redirection {
 public:
  explicit Redirection(Module& module) : module_(module) {}

  void add(ValueId from, ValueId to) {
    if (from != to) targets_[from] = to;
  }
  bool empty() const { return targets_.empty(); }
  const std::unordered_map<ValueId, ValueId>& targets() const { return targets_; }
  ValueId operator()(ValueId value) const;
  void apply(OpId op) const;

 private:
  Module& module_;
  std::unordered_map<ValueId, ValueId> targets_;
};

}  // namespace shardwise
