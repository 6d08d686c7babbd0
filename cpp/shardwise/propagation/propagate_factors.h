// SPDX-License-Identifier: Apache-2.0
//
// Propagates the shardings of one op's tensors, factor by factor.
//
//   dot ([i, k], [k, j])->([i, j])      lhs [{"a"}, {?}]   rhs [{?}, {"b"}]   result [{?}, {?}]
//   i has "a" in lhs, j has "b" in rhs: the result takes both, [{"a", ?}, {"b", ?}].
//   With rhs [{?}, {"a"}], the result cannot have "a" twice. kBasic does not propagate it; kAggressive gives it to the
//   factor of the larger tensor.
//
// Follows Shardy's strategies of the same names. The order of factors and tensors affects the result.
#pragma once

#include <vector>

#include "shardwise/ir/compile_options.h"
#include "shardwise/propagation/axis_observer.h"
#include "shardwise/propagation/factor_projection.h"

namespace shardwise {

// The direction of propagation along a factor: operands to results, results to operands, or both. The numbers are those
// of Shardy's allowed_direction.
enum class Direction : uint8_t { kNone, kForward, kBackward, kBoth };

// Shardy compares digits as intervals here: "x":(1)2 counts as a prefix of "x":(1)3, although no split of the axis has
// both. So (1)3 from a later op replaces (1)2. Which of two such annotations wins is part of the contract.
bool reaches_into(const AxisRef& inner, const AxisRef& outer);
bool begins(const AxisRef& shorter, const AxisRef& longer);
// Lists are equal except for the last axis of `shorter`, which may be a prefix of the other's.
bool begins(AxisSpan shorter, AxisSpan longer);

class FactorPropagation {
 public:
  explicit FactorPropagation(Strategy strategy) : strategy_(strategy) {}

  struct Mode {
    Direction direction = Direction::kBoth;
    bool pass_through_only = false;
    bool elementwise = false;
    const Mesh* whole_axes_of = nullptr;  // only full axes of this mesh propagate; null: sub-axes propagate, too
    AxisObserver* observer = nullptr;     // null unless a visit is replayed
  };
  // Grows factors of `projection`. `updated()` then has a flag for each of its tensors that has grown.
  void run(FactorProjection& projection, const Mode& mode);
  const std::vector<char>& updated() const { return updated_; }

 private:
  bool participates(const Factor& factor) const;
  void run_basic(FactorProjection& projection);
  void run_aggressive(FactorProjection& projection);
  void find_axes(AxisList& axes, const FactorProjection& projection, FactorId factor);
  AxisObserver* observer_of(FactorId factor, AxisSpan axes) const;
  void observe_missing(const FactorProjection& projection, FactorId factor);
  void order_candidates(const FactorProjection& projection);
  void grow_tensor(FactorProjection& projection, size_t tensor);

  Strategy strategy_;
  Mode mode_ = {};
  std::vector<char> updated_;         // by tensor
  AxisList axes_;                     // of the factor at hand
  std::vector<AxisList> candidates_;  // by factor
  std::vector<FactorId> order_;
  std::vector<CandidateSource> sources_;
};

}  // namespace shardwise
