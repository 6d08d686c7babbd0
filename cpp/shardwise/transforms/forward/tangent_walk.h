// SPDX-License-Identifier: Apache-2.0
//
// The walk of forward-mode differentiation: from the first op of a region to the last, with a tangent for each value.
//
//   %h:2 = while(%i = 0, %c = %x)                     %h:3 = while(%i = 0, %c = %x, %d = %t)
//   cond { %i < 10 }                                  cond { %i < 10 }
//   do { %1 = tanh %c; return %i + 1, %1 }            do { %1 = tanh %c; %2 = %d * (1 - %1²); return %i + 1, %1, %2 }
//
// Ops with regions are replaced by ops that compute values and tangents (tangent_regions.h).
#pragma once

#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/rewrite/redirection.h"
#include "shardwise/transforms/gradient/activity.h"

namespace shardwise {

class TangentWalk {
 public:
  // Only what the tangents of `outputs` depend on gets tangents.
  TangentWalk(Builder& builder, std::span<const ValueId> outputs, std::span<const ValueId> wrt,
              std::span<const ValueId> tangents);

  void run();
  ValueId tangent(ValueId value) const;  // none: zeros
  // The values that took the place of others.
  const Redirection& replaced() const { return replaced_; }

  Builder& builder() { return builder_; }
  Module& module() { return module_; }
  bool is_active(ValueId value) const { return activity_(value); }  // it may depend on a variable
  std::vector<ValueId> tangents_of(std::span<const ValueId> values) const;
  // The values that the regions of an op capture, with tangents.
  void capture(OpId op, std::vector<ValueId>& wrt, std::vector<ValueId>& tangents) const;
  // The first of the results replace those of the op; `tangents` are theirs, or none.
  void put_in_place_of(OpId op, std::span<const ValueId> results, std::span<const ValueId> tangents);

 private:
  void find_needed(std::span<const ValueId> outputs);
  void visit(OpId op);
  void replace(OpId op);
  void push(OpId op);

  Builder& builder_;
  Module& module_;
  std::vector<OpId> ops_;  // of the region, before anything is appended
  std::unordered_map<ValueId, ValueId> tangents_;
  std::unordered_set<OpId> needed_;
  Activity activity_;
  Redirection replaced_;
};

// The tangent, or zeros of the type of `like`.
ValueId tangent_or_zeros(Builder& builder, ValueId tangent, ValueId like);

}  // namespace shardwise
