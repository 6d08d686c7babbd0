// SPDX-License-Identifier: Apache-2.0
//
// The round in which each op propagates. An annotation should travel along ops that keep it unchanged before it reaches
// an op that must choose. So propagation runs in rounds, each to its fixed point, each with more ops than the one
// before:
//
//   0  elementwise ops, reshape, transpose; dynamic slices forward; where no operand has another use
//   1  the same, whatever the uses
//   2  all ops along their pass-through factors; broadcasts from result to operand only
//   3  all factors
//   4  broadcasts from operand to result as well
//
// These are Shardy's op-priority rounds. They are part of the contract, because they decide conflicts.
#pragma once

#include "shardwise/ir/op_def.h"
#include "shardwise/propagation/propagate_factors.h"
#include "shardwise/propagation/shardy/rules.h"

namespace shardwise {

inline constexpr int kRounds = 5;
inline constexpr int kLastRound = kRounds - 1;

// Which ops propagate first:
//   kNone  none: one round with all ops
//   kOps   ops that do not change an annotation, round by round
//   kUser  by the user's priorities, and within each of them by kOps
enum class Priorities : uint8_t { kNone, kOps, kUser };

// How an op takes part in a round.
struct Participation {
  Direction direction = Direction::kBoth;
  bool pass_through_only = false;
  // A number for each way to take part; 0 for none.
  uint8_t code() const { return static_cast<uint8_t>(2 * static_cast<int>(direction) + (pass_through_only ? 1 : 0)); }
  friend bool operator==(const Participation&, const Participation&) = default;
};

// Decides in which rounds an op takes part, and in which directions. A barrier takes part in every round, in its one
// direction. An op that passes values into regions never does: its data-flow edges do.
class RoundOrder {
 public:
  RoundOrder() = default;
  explicit RoundOrder(const OpView& op) : RoundOrder(op, ShardyOps::table()) {}
  RoundOrder(const OpView& op, const ShardyOps& table);

  // In round 0, an op that `waits_for_shared` takes no part if one of its operands, other than a scalar, has another
  // use. The caller checks that, because a RoundOrder does not see uses.
  Participation participation(int round) const;
  bool waits_for_shared() const { return kind_ != Kind::kBarrier; }
  bool is_elementwise() const { return elementwise_; }  // one factor per dim; or a constraint

 private:
  enum class Kind : uint8_t { kNever, kBarrier, kEarly, kForwardEarly, kLate };
  Kind kind_ : 3 = Kind::kLate;
  Direction allowed_ : 2 = Direction::kBoth;  // by a barrier
  bool backward_first_ : 1 = false;
  bool elementwise_ : 1 = false;
};

inline Participation participation(const OpView& op, int round) { return RoundOrder(op).participation(round); }

}  // namespace shardwise
