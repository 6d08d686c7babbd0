// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/propagation_rounds.h"

namespace shardwise {

bool is_elementwise(const OpView& op) {
  const OpDef& def = op.def();
  return def.traits.elementwise && (def.precedence == nullptr || def.precedence(op) == Precedence::kEarly);
}

RoundOrder::RoundOrder(const OpView& op) {
  const Traits& traits = op.def().traits;
  const Precedence precedence = op.def().precedence != nullptr ? op.def().precedence(op) : traits.precedence;
  backward_first_ = precedence == Precedence::kBackwardFirst;
  if (op.def().flow != nullptr) {
    kind_ = Kind::kSilent;
  } else if (traits.barrier) {
    kind_ = Kind::kBarrier;
    allowed_ = static_cast<Direction>(op.attrs().get_int("allowed_direction"));
  } else if (is_elementwise(op) || traits.constraint || traits.data_flow_edge || precedence == Precedence::kEarly) {
    kind_ = Kind::kEarly;
  } else if (precedence == Precedence::kForwardEarly) {
    kind_ = Kind::kForwardEarly;
  }
}

Participation RoundOrder::participation(int round) const {
  if (kind_ == Kind::kSilent) return {.direction = Direction::kNone};
  if (kind_ == Kind::kBarrier) return {.direction = allowed_};
  if (kind_ == Kind::kLate && round < 2) return {.direction = Direction::kNone};
  if (kind_ == Kind::kEarly) return {};
  if (kind_ == Kind::kForwardEarly && round < 2) return {.direction = Direction::kForward};
  const bool backward = backward_first_ && round < kLastRound;
  return {.direction = backward ? Direction::kBackward : Direction::kBoth, .pass_through_only = round == 2};
}

}  // namespace shardwise
