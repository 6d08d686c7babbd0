// SPDX-License-Identifier: Apache-2.0
//
// Observes one decision of a visit: whether a tensor of the op gets an axis along a factor, and why not.
//
//   dot ([i, k], [k, j])->([i, j])      lhs [{"a"}, {?}]   rhs [{?}, {"a"}]   result [{?}, {"a", ?}]
//
//   AxisObserver observer{.tensor = 2, .factor = i, .axis = a};
//   OpPropagation::replay(…, observer)      observer.verdict: kOtherFactor, with blocker j and "a"
//
// Propagation itself runs without an observer.
#pragma once

#include "shardwise/ir/rule/sharding_rule.h"
#include "shardwise/mesh/axis.h"

namespace shardwise {

enum class Verdict : uint8_t {
  kTaken,            // the tensor has the axis after the visit
  kBlockedFactor,    // the op's rule blocks the factor
  kBlockedByOption,  // it would not with the default options (is_blocked_by_option)
  kLaterRound,       // the factor takes no part in this round
  kDirection,        // the op propagates in the other direction only
  kDifferentMeshes,  // the tensors of the op have no mesh in common
  kOverflow,         // the axis does not divide the factor of the tensor that has it
  kDisagreement,     // the tensors of the op agree on a list without the axis
  kOtherAxes,        // the factor of the tensor has axes that the list does not begin with
  kOtherFactor,      // another factor of the tensor has the axis
  kReplicated,
  kUnreduced,
  kClosedDim,
  kUneven,        // the axis does not divide what is left of the factor
  kPartBefore,    // a factor before this one in the dim is not sharded in full
  kPartialAxis,   // the options allow full axes only
  kResultCannot,  // a result of the elementwise op cannot take the axis, so its operand does not
  kNotVisited,    // a visit would bring the axis: propagation skipped the op (only explanations find it)
};

// The tensor that a factor's axes come from, by which conflicts between factors are decided.
struct CandidateSource {
  int64_t size = 0;
  int64_t shards = 0;
  size_t tensor = 0;
};

struct AxisObserver {
  size_t tensor = 0;
  FactorId factor = 0;
  AxisRef axis;
  // The answer.
  Verdict verdict = Verdict::kDisagreement;
  AxisRef refused = axis;  // the axis, or the one before it in the list at which the list was cut
  struct Blocker {
    size_t tensor = 0;
    FactorId factor = 0;
    AxisRef axis;
  } blocker = {};
  CandidateSource source = {}, blocking_source = {};  // of the two factors: the larger one goes first

  void block(Verdict by, FactorId blocking_factor, const AxisRef& blocking_axis = {}) {
    verdict = by;
    blocker = {.tensor = tensor, .factor = blocking_factor, .axis = blocking_axis};
  }
};

}  // namespace shardwise
