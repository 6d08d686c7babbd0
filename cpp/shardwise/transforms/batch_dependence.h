// SPDX-License-Identifier: Apache-2.0
//
// Which values of a region depend on batched ones, before the region is batched: the carries of a loop have one type in
// all trips, so a carry is batched if it is in any of them.
//
//   %r:2 = while(%a = %x, %b = %w) cond {…} do { %0 = add %a, %c; return %0, %a }        %x is batched: both carries are
//
// The answer may be larger than necessary, never smaller. A value that need not be batched is broadcast.
#pragma once

#include <functional>
#include <unordered_set>
#include <vector>

#include "shardwise/ir/op_def.h"

namespace shardwise {

struct LoopBatching {
  std::vector<bool> carries;  // whether it has the leading dim
  bool predicate = false;
};

class BatchDependence {
 public:
  // `known`: whether a value from around is batched.
  BatchDependence(const Module& module, std::function<bool(ValueId)> known)
      : module_(module), known_(std::move(known)) {}

  bool is_batched(ValueId value) const { return batched_.contains(value) || known_(value); }
  bool uses_batched(OpId op);  // as an operand, or captured by its regions

  LoopBatching loop(OpId op);
  std::vector<bool> branches(OpId op);  // whether a result of a branch is batched

 private:
  void visit(RegionId region);
  void visit(OpId op);
  void mark(ValueId value, bool batched) {
    if (batched) batched_.insert(value);
  }
  void mark(const std::vector<ValueId>& values, const std::vector<bool>& batched) {
    for (size_t i = 0; i < values.size(); ++i) mark(values[i], batched[i]);
  }

  const Module& module_;
  std::function<bool(ValueId)> known_;
  std::unordered_set<ValueId> batched_;
};

}  // namespace shardwise
