// SPDX-License-Identifier: Apache-2.0
//
// Copies of ops in a region, with all that they need, each as near to its first reader as possible:
//
//   LateCopies copies(module, rewrite, cursor, [&](ValueId value) { return value == h || value == y; });
//   copies.use(x_row, other_row);              // what the copies read in place of a value
//   const ValueId again = copies(h);           // a copy of h, of the one of y that it reads, and of what else is not there
//   … rewrite.replace uses …
//   copies.sink();
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/rewrite.h"

namespace shardwise {

// Copies, each with the op that it is one of.
using CopiedOps = std::vector<std::pair<OpId, OpId>>;

class LateCopies {
 public:
  // `needs_copy`: whether a value cannot be read where the copies are.
  LateCopies(Module& module, Rewrite& rewrite, Cursor at, std::function<bool(ValueId)> needs_copy)
      : module_(module), rewrite_(rewrite), at_(at), needs_copy_(std::move(needs_copy)), copy_(module, module) {}

  void use(ValueId in_place_of, ValueId value) { copy_.map(in_place_of, value); }
  ValueId operator()(ValueId value);
  // Moves the copies down, after all their uses are there.
  void sink();
  const CopiedOps& ops() const { return made_; }

 private:
  void make(OpId op);

  Module& module_;
  Rewrite& rewrite_;
  const Cursor at_;
  const std::function<bool(ValueId)> needs_copy_;
  GraphCopy copy_;
  CopiedOps made_;
};

}  // namespace shardwise
