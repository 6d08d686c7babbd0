// SPDX-License-Identifier: Apache-2.0
//
// The carries of a while that something depends on: an op with an effect, a used result, or a value that is named.
//
//   while(%i = 0, %x = %a, %t = %c) cond { %i < 10 }        reach(%i < 10): %i
//   do { … return %i + 1, tanh %x, %t + %x }                #1 is used:     %x; %t only feeds itself
//
// An op is live iff dce keeps it after the dead carries are removed. A pass drops these carries, and then calls dce
// with unused_constraints(module).
#pragma once

#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {

class LiveCarries {
 public:
  LiveCarries(Module& module, OpId loop, Effects& effects)
      : module_(module),
        loop_(loop),
        parts_(loop_parts(OpView(module, loop))),
        effects_(effects),
        live_(module.op(loop).operand_count),
        reached_(module.value_count()),
        needed_(module.op_count()) {}

  void reach(ValueId value);                          // something reads it
  void keep(uint32_t carry) { live_[carry] = true; }  // whatever it depends on
  std::vector<bool> find();                           // by carry

 private:
  void follow(ValueId value);
  void mark(uint32_t carry);
  void need(OpId id);
  void need_effects(RegionId region);

  Module& module_;
  OpId loop_;
  LoopParts parts_;
  Effects& effects_;
  std::vector<bool> live_;     // by carry
  std::vector<bool> reached_;  // by value
  std::vector<bool> needed_;   // by op
  std::vector<ValueId> open_;
};

}  // namespace shardwise
