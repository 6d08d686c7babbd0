// SPDX-License-Identifier: Apache-2.0
//
// Expands ops that have no derivative of their own, before a region is differentiated in either direction:
//
//   %1 = chlo.square_of_norm %x        %0 = multiply %x, %x; %1 = reduce %0      its decomposition, in front of it
//   %2 = call @f(%1)                   the ops of @f                            in its place
//
// Later ops read the results of the expansion. The op itself stays if its results may be known outside; `simplify`
// removes unused ops.
#pragma once

#include <span>
#include <unordered_set>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/rewrite/redirection.h"

namespace shardwise {

class InPlaceExpansion {
 public:
  // Only ops that depend on `wrt` are expanded.
  InPlaceExpansion(Builder& builder, std::span<const ValueId> wrt);

  void run();
  const Redirection& expanded() const { return expanded_; }  // results of expanded ops

 private:
  bool is_differentiated_as_ops(OpId id) const;
  bool is_expanded_inline(OpId id) const;
  bool is_manual(OpId id) const;
  bool is_expanded(OpId id) const { return is_differentiated_as_ops(id) || is_expanded_inline(id) || is_manual(id); }
  bool is_variable(OpId id) const;
  void visit(OpId id);
  void expand(OpId id);

  Builder& builder_;
  Module& module_;
  std::span<const ValueId> wrt_;
  std::unordered_set<ValueId> active_;  // they depend on wrt
  Redirection expanded_;
  std::vector<OpId> kept_;  // of the region, in order
};

}  // namespace shardwise
