// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/propagation_rounds.h"

namespace shardwise {

RoundOrder::RoundOrder(const OpView& op, const ShardyOps& table) {
  const OpDef& def = op.def();
  const Traits& traits = def.traits;
  const ShardyOp& shardy = table[def];
  const Precedence precedence = shardy.precedence_of != nullptr ? shardy.precedence_of(op) : shardy.precedence;
  backward_first_ = precedence == Precedence::kBackwardFirst;
  // An attribute may defer an elementwise op to a later round.
  const bool is_deferred = shardy.precedence_of != nullptr && precedence != Precedence::kEarly;
  elementwise_ = traits.constraint || (traits.elementwise && !is_deferred);
  if (def.flow != nullptr) {
    kind_ = Kind::kNever;
  } else if (traits.barrier) {
    kind_ = Kind::kBarrier;
    allowed_ = static_cast<Direction>(op.attrs().get_int("allowed_direction"));
  } else if (elementwise_ || traits.data_flow_edge || precedence == Precedence::kEarly) {
    kind_ = Kind::kEarly;
  } else if (precedence == Precedence::kForwardEarly) {
    kind_ = Kind::kForwardEarly;
  }
}

Participation RoundOrder::participation(int round) const {
  if (kind_ == Kind::kNever) return {.direction = Direction::kNone};
  // In every round, as in Shardy: it is the identity, and only its direction is limited.
  if (kind_ == Kind::kBarrier) return {.direction = allowed_};
  if (kind_ == Kind::kLate && round < 2) return {.direction = Direction::kNone};
  if (kind_ == Kind::kEarly) return {};
  if (kind_ == Kind::kForwardEarly && round < 2) return {.direction = Direction::kForward};
  const bool backward = backward_first_ && round < kLastRound;
  return {.direction = backward ? Direction::kBackward : Direction::kBoth, .pass_through_only = round == 2};
}

}  // namespace shardwise
