// SPDX-License-Identifier: Apache-2.0
//
// The walk of reverse-mode differentiation: from the last op of a region to the first, with a cotangent for each value.
//
//   ReverseWalk walk(builder, wrt);
//   walk.seed(output, cotangent);
//   walk.run();
//   walk.cotangent(wrt[0])        // none: nothing flows into it
//
// An op without regions is differentiated by its OpDef::vjp. An op with regions is differentiated by
// differentiate_regions.h, which may replace it by one with more results: those that its gradient needs.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ir/rewrite/redirection.h"
#include "shardwise/transforms/gradient/activity.h"

namespace shardwise {

class ReverseWalk {
 public:
  ReverseWalk(Builder& builder, std::span<const ValueId> wrt);

  void seed(ValueId output, ValueId cotangent);
  void run();

  Builder& builder() { return builder_; }
  Module& module() { return module_; }
  bool is_active(ValueId value) const { return activity_(value); }
  ValueId cotangent(ValueId value) const { return cotangents_[value.index]; }  // the sum so far, or none
  ValueId cotangent_of_result(ValueId result) const {  // none flows through a value of `wrt` to the op that makes it
    return is_wrt_[result.index] ? ValueId{} : cotangent(result);
  }
  ValueId cotangent_or_zeros(ValueId value);
  void accumulate(ValueId value, ValueId cotangent);  // ignored for a value that is not active

  // Puts the ops that `make(Builder&)` appends in place of the op. The first of the values that it returns replace the
  // results of the op.
  template <class Make>
  auto put_in_place_of(OpId op, Make&& make) {
    const size_t known = module_.region(builder_.region()).ops.size();
    auto made = make(builder_);
    take_appended(op, known);
    for (uint32_t i = 0; i < module_.op(op).result_count; ++i) replaced_.add(module_.result(op, i), made[i]);
    return made;
  }
  const std::vector<OpId>& ops_in_place_of(OpId op) const { return in_place_.at(op); }
  // The values that took the place of others.
  const Redirection& replaced() const { return replaced_; }

 private:
  class Context;

  bool flows_into(OpId op) const;
  void pull_back(OpId op);
  void take_appended(OpId op, size_t known);
  void commit();

  Builder& builder_;
  Module& module_;
  std::vector<OpId> ops_;            // of the region, before anything is appended
  std::vector<bool> is_wrt_;         // by value
  std::vector<ValueId> cotangents_;  // by value: the sum so far
  Activity activity_;
  Redirection replaced_;
  bool matches_;        // in a manual computation (ops/collectives/varying.h)
  bool mixes_ = false;  // the cotangents that this op adds may vary more than their values
  std::unordered_map<OpId, std::vector<OpId>> in_place_;  // what takes the place of an op
};

}  // namespace shardwise
