// SPDX-License-Identifier: Apache-2.0
//
// How each op of a program passes on reductions that are pending at its operands, by reducer. It depends on the op alone,
// so it is answered once, before any walk over the program:
//
//   ProgramLinearity linearity(module);
//   linearity.of(add, Reducer::kSum).kind               kJoint: both operands may be unreduced
//   linearity.of(add, Reducer::kSum).is_free(1)         true if operand 1 is 0: it is an addend without a mask
//   linearity.of(add, Reducer::kMax).may_pass()         false: the operands are reduced first
#pragma once

#include <array>
#include <span>
#include <unordered_map>
#include <vector>

#include "shardwise/ir/module.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

// How one op passes on values that one reducer still has to combine.
struct OpLinearity {
  // A constant operand of a joint op, and the reducers that it is neutral for.
  struct Constant {
    uint32_t operand = 0;
    ReducerSet neutral_for = 0;
  };

  Linear kind = Linear::kNone;  // linear_in (ops/partitioning/linearity.h)
  bool combines = false;        // combines_by (ops/shared/reducers.h)
  bool copies_inexact = false;  // the results are copies of floats: owned elements must not meet addends in it
  const OpDef* def = nullptr;
  Reducer reducer = Reducer::kNone;
  std::span<const Constant> constants = {};  // ascending

  bool may_pass() const { return kind != Linear::kNone; }
  // Whether the operand may be unreduced, alone or with others.
  bool may_be_pending(size_t operand) const;
  // Whether exactly these operands may be unreduced.
  bool passes(const std::vector<bool>& pending) const;
  // Whether a whole operand of a joint op is an addend of the reduction without a mask: a constant that is neutral.
  bool is_free(size_t operand) const;
};

class ProgramLinearity {
 public:
  // The module must stay as it is.
  explicit ProgramLinearity(const Module& module);

  OpLinearity of(OpId op, Reducer reducer) const;
  bool is_linear(OpId op) const;  // by some reducer

 private:
  struct Row {
    std::array<Linear, 8> kinds{};  // by reducer
    ReducerSet combines = 0;
    bool copies_inexact = false;
  };
  void add(const Module& module, RegionId region);
  void add(const OpView& op);

  const Module& module_;
  std::vector<Row> rows_;                                                   // by op
  std::unordered_map<OpId, std::vector<OpLinearity::Constant>> constants_;  // of joint ops that have some
};

}  // namespace shardwise
