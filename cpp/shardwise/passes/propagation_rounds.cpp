// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/propagation_rounds.h"

namespace shardwise {

bool is_elementwise(const OpView& op) {
  const OpDef& def = op.def();
  return def.traits.elementwise && (def.precedence == nullptr || def.precedence(op) == Precedence::kEarly);
}

Participation participation(const OpView& op, int round, bool shares_operands) {
  const Traits& traits = op.def().traits;
  if (traits.barrier) return {.direction = static_cast<Direction>(op.attrs().get_int("allowed_direction"))};
  const Precedence precedence = op.def().precedence != nullptr ? op.def().precedence(op) : traits.precedence;
  const bool early =
      is_elementwise(op) || traits.constraint || traits.data_flow_edge || precedence == Precedence::kEarly;
  if (early || precedence == Precedence::kForwardEarly) {
    if (round == 0 && shares_operands) return {.direction = Direction::kNone};
    if (early || round >= 2) return {.direction = Direction::kBoth, .pass_through_only = !early && round == 2};
    return {.direction = Direction::kForward};
  }
  if (round < 2) return {.direction = Direction::kNone};
  const bool backward = precedence == Precedence::kBackwardFirst && round < kLastRound;
  return {.direction = backward ? Direction::kBackward : Direction::kBoth, .pass_through_only = round == 2};
}

}  // namespace shardwise
