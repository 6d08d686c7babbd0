// SPDX-License-Identifier: Apache-2.0
//
// What one op does with the shardings of its tensors, factor by factor.
//
//   dot ([i, k], [k, j])->([i, j])      lhs [{"a"}, {?}]   rhs [{?}, {"b"}]   result [{?}, {?}]
//   i has "a" in lhs, j has "b" in rhs: the result takes both, [{"a", ?}, {"b", ?}].
//   With rhs [{?}, {"a"}] the result cannot have "a" twice. kBasic leaves it alone; kAggressive gives it to the factor
//   of the larger tensor.
//
// Follows Shardy's strategies of the same names: the order of factors and tensors is part of the result.
#pragma once

#include <vector>

#include "shardwise/ir/pass.h"
#include "shardwise/propagation/axis_observer.h"
#include "shardwise/propagation/factor_projection.h"

namespace shardwise {

// Which tensors may tell which along a factor: operands the results, results the operands, or both. The numbers are
// those of Shardy's allowed_direction.
enum class Direction : uint8_t { kNone, kForward, kBackward, kBoth };

// Shardy compares digits as intervals here: "x":(1)2 counts as a beginning of "x":(1)3, though no split of the axis has
// both, so that (1)3 from further down replaces (1)2. Which of two such annotations wins is part of the contract.
bool reaches_into(const AxisRef& inner, const AxisRef& outer);
bool begins(const AxisRef& shorter, const AxisRef& longer);

class FactorPropagation {
 public:
  explicit FactorPropagation(Strategy strategy) : strategy_(strategy) {}

  // Conservative: only whole axes of `mesh` propagate; null: parts of axes, too.
  void restrict_to_whole_axes(const Mesh* mesh) { whole_of_ = mesh; }

  // Null, except where a visit is replayed.
  void observe(AxisObserver* observer) { observer_ = observer; }

  // Grows factors of `projection`; `updated()` then says which of its tensors have grown.
  void run(FactorProjection& projection, Direction direction, bool pass_through_only, bool elementwise);
  const std::vector<char>& updated() const { return updated_; }

 private:
  bool participates(const Factor& factor) const;
  void run_basic(FactorProjection& projection, Direction direction);
  void run_aggressive(FactorProjection& projection, Direction direction, bool elementwise);
  AxisObserver* observer_of(FactorId factor, AxisSpan axes) const;
  void observe_candidates(const FactorProjection& projection, FactorId factor, AxisSpan axes, Direction direction);
  bool find_candidates(const FactorProjection& projection, Direction direction);
  void order_candidates(const FactorProjection& projection, bool elementwise);
  void grow_tensor(FactorProjection& projection, size_t tensor, bool elementwise);

  Strategy strategy_;
  bool pass_through_only_ = false;
  const Mesh* whole_of_ = nullptr;
  std::vector<char> updated_;         // by tensor
  AxisList axes_;                     // of the factor at hand
  std::vector<AxisList> candidates_;  // by factor
  std::vector<FactorId> order_;
  std::vector<CandidateSource> sources_;
  AxisObserver* observer_ = nullptr;
};

}  // namespace shardwise
