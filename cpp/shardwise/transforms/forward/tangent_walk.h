// SPDX-License-Identifier: Apache-2.0
//
// The walk of forward-mode differentiation: from the first op of a region to the last, with a tangent for each value.
//
//   %h:2 = while(%i = 0, %c = %x)                     %h:3 = while(%i = 0, %c = %x, %d = %t)
//   cond { %i < 10 }                                  cond { %i < 10 }
//   do { %1 = tanh %c; return %i + 1, %1 }            do { %1 = tanh %c; %2 = %d * (1 - %1²); return %i + 1, %1, %2 }
//
// Ops with regions are replaced by ops that compute values and tangents: a loop has a carry more for each carry that
// depends on a variable, a branch and a checkpoint a result more. The tangent of a value that a region captures is
// captured as well.
#pragma once

#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/rewrite/redirection.h"
#include "shardwise/transforms/gradient/activity.h"

namespace shardwise {

struct Tangents;

class TangentWalk {
 public:
  // Only what the tangents of `outputs` depend on gets tangents.
  TangentWalk(Builder& builder, std::span<const ValueId> outputs, std::span<const ValueId> wrt,
              std::span<const ValueId> tangents);

  void run();
  ValueId tangent(ValueId value) const;  // none: zeros
  // The values that took the place of others.
  const Redirection& replaced() const { return replaced_; }

 private:
  // A region that computes tangents too, and belongs to no op yet.
  struct Joint {
    RegionId region;
    std::vector<ValueId> results, tangents;
  };

  void find_needed(std::span<const ValueId> outputs);
  void visit(OpId op);
  void replace(OpId op);
  std::vector<ValueId> tangents_of(std::span<const ValueId> values) const;
  void push(OpId op);
  void loop(OpId op);
  void branches(OpId op);
  void checkpoint(OpId op);
  void given(OpId op);
  void capture(OpId op, std::vector<ValueId>& wrt, std::vector<ValueId>& tangents) const;
  ValueId or_zeros(Builder& builder, ValueId tangent, ValueId like) const;
  void put_in_place_of(OpId op, std::span<const ValueId> results, std::span<const ValueId> tangents);

  Builder& builder_;
  Module& module_;
  std::vector<OpId> ops_;  // of the region, before anything is appended
  std::unordered_map<ValueId, ValueId> tangents_;
  std::unordered_set<OpId> needed_;
  Activity activity_;
  Redirection replaced_;
};

}  // namespace shardwise
