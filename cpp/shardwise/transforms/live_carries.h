// SPDX-License-Identifier: Apache-2.0
//
// The carries of a while that something depends on: an op with an effect, a used result, or a value that is named.
//
//   while(%i = 0, %x = %a, %t = %c) cond { %i < 10 }        reach(%i < 10): %i
//   do { … return %i + 1, tanh %x, %t + %x }                #1 is used:     %x; %t only feeds itself
#pragma once

#include <vector>

#include "shardwise/ir/module.h"

namespace shardwise {

class LiveCarries {
 public:
  LiveCarries(Module& module, OpId loop)
      : module_(module), loop_(loop), live_(module.op(loop).operand_count), reached_(module.value_count()) {}

  void reach(ValueId value);                          // something reads it
  void keep(uint32_t carry) { live_[carry] = true; }  // whatever it depends on
  std::vector<bool> find();                           // by carry

 private:
  void follow(const Value& value);
  void mark(uint32_t carry);
  void reach_operands(OpId id);  // also every value that the regions of the op read

  Module& module_;
  OpId loop_;
  std::vector<bool> live_;     // by carry
  std::vector<bool> reached_;  // by value
  std::vector<ValueId> open_;
};

}  // namespace shardwise
