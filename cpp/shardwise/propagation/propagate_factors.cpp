// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/propagate_factors.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace shardwise {

bool reaches_into(const AxisRef& inner, const AxisRef& outer) {
  return inner.axis == outer.axis && outer.pre <= inner.pre && inner.next() <= outer.next();
}

bool begins(const AxisRef& shorter, const AxisRef& longer) {
  return shorter.pre == longer.pre && reaches_into(shorter, longer);
}

bool begins(AxisSpan shorter, AxisSpan longer) {
  if (shorter.empty()) return true;
  const size_t last = shorter.size() - 1;
  return longer.size() > last && std::equal(shorter.begin(), shorter.end() - 1, longer.begin()) &&
         begins(shorter[last], longer[last]);
}

namespace {

bool reaches_into(const AxisRef& axis, AxisSpan list) {
  return std::ranges::any_of(list, [&](const AxisRef& ref) { return reaches_into(axis, ref); });
}

// Folds the axes of one more tensor into `axes`, the longest list that no tensor so far contradicts. Returns whether a
// later tensor may still make it longer.
bool fold_compatible(AxisList& axes, AxisSpan other, bool can_expand) {
  const size_t common = std::min(axes.size(), other.size());
  for (size_t i = 0; i < common; ++i) {
    if (axes[i] == other[i]) continue;
    if (begins(other[i], axes[i])) {
      // {"x":(1)2} beside {"x", "y"}: a list that ends at a part of an axis contradicts nothing.
      if (i + 1 == other.size()) continue;
      // {"x":(1)2, "z"} beside {"x", "y"}: both have "x":(1)2, and then they differ.
      axes[i] = other[i];
      axes.resize(i + 1);
      return false;
    }
    if (begins(axes[i], other[i])) {
      // {"x":(1)2} so far, and {"x", "y"} now: the longer list is taken only if nothing follows the part.
      const bool grow = can_expand && i + 1 == axes.size();
      if (!grow) {
        axes.resize(i + 1);
        return false;
      }
      axes[i] = other[i];
      continue;
    }
    axes.resize(i);
    return false;
  }
  if (can_expand) axes.insert(axes.end(), other.begin() + static_cast<std::ptrdiff_t>(common), other.end());
  return can_expand;
}

bool fold_tensors(AxisList& axes, const FactorProjection& projection, FactorId factor, size_t begin, size_t end,
                  bool can_expand) {
  for (size_t t = begin; t < end; ++t) {
    if (const FactorSharding* sharding = projection.find(t, factor)) {
      can_expand = fold_compatible(axes, sharding->axes, can_expand);
    }
  }
  return can_expand;
}

void compatible_axes(AxisList& axes, const FactorProjection& projection, FactorId factor, Direction direction) {
  axes.clear();
  const size_t operands = projection.operand_count();
  const size_t tensors = projection.tensor_count();
  const bool both = direction == Direction::kBoth;
  // Axes come from the tensors on one side. Those on the other side can only cut the list, except with kBoth.
  if (direction == Direction::kBackward) {
    fold_tensors(axes, projection, factor, operands, tensors, true);
    fold_tensors(axes, projection, factor, 0, operands, false);
  } else {
    const bool can_expand = fold_tensors(axes, projection, factor, 0, operands, true);
    fold_tensors(axes, projection, factor, operands, tensors, both && can_expand);
  }
}

// `why` is the observer, where this list is observed; else null. The first blocker of an axis is the answer.
void block_first(AxisObserver* why, Verdict verdict, FactorId factor, const AxisRef& axis = {}) {
  if (why != nullptr && why->verdict == Verdict::kTaken) why->block(verdict, factor, axis);
}

bool cut_before(std::optional<AxisRef>& ref, AxisSpan others, AxisObserver* why, Verdict verdict, FactorId factor) {
  for (const AxisRef& other : others) {
    const AxisRef wanted = *ref;
    ref = prefix_without_overlap(wanted, other);
    if (ref != wanted) block_first(why, verdict, factor, other);
    if (!ref) return false;
  }
  return true;
}

// The prefix of `ref` that no other factor of the tensor uses.
std::optional<AxisRef> free_of_other_factors(std::optional<AxisRef> ref, const TensorFactors& tensor,
                                             size_t factor_count, FactorId factor, AxisObserver* why) {
  for (size_t f = 0; f < factor_count; ++f) {
    const FactorSharding& other = tensor.factors[f];
    if (f == factor || !other.mapped) continue;
    // An overflow shards the tensor, too, although no factor takes it.
    for (const AxisList* axes : {&other.overflow, &other.axes}) {
      if (!cut_before(ref, *axes, why, Verdict::kOtherFactor, static_cast<FactorId>(f))) return std::nullopt;
    }
  }
  return ref;
}

// The part of `ref` that the factor itself can take after axes of product `before`.
std::optional<AxisRef> fitting_in_factor(std::optional<AxisRef> ref, const TensorFactors& tensor, FactorId id,
                                         int64_t factor_size, int64_t before, AxisObserver* why) {
  const FactorSharding& factor = tensor.factors[id];
  if (!cut_before(ref, tensor.replicated, why, Verdict::kReplicated, id) ||
      !cut_before(ref, tensor.unreduced, why, Verdict::kUnreduced, id)) {
    return std::nullopt;
  }
  // An axis that the factor has already is no change, not even in a closed dim.
  if (reaches_into(*ref, factor.axes)) return ref;
  if (!factor.closed && factor.overflow.empty()) {
    if (factor.minor_most) return ref;
    // A factor of 4 after an axis of 2 takes "x":(1)2 of "x"=4.
    if (factor_size % before == 0) {
      const int64_t common = std::gcd(factor_size / before, ref->size);
      if (common == ref->size) return ref;
      block_first(why, Verdict::kUneven, id);
      if (common > 1) return AxisRef{ref->axis, ref->pre, common};
    }
  }
  block_first(why, factor.closed ? Verdict::kClosedDim : Verdict::kUneven, id);
  // The part of the axis that the factor has already stays in the list, which ends there.
  if (!factor.axes.empty() && begins(factor.axes.back(), *ref)) return factor.axes.back();
  return std::nullopt;
}

// Cuts `axes` at the first one of which `allowed(ref, product of those before)` returns a proper prefix or none. With
// `whole_of`, cuts at the first one that is not a full axis of that mesh.
template <class Allowed>
void truncate(AxisList& axes, const Mesh* whole_of, AxisObserver* why, Allowed allowed) {
  int64_t before = 1;
  if (why != nullptr) why->verdict = Verdict::kTaken;  // so far
  for (size_t i = 0; i < axes.size(); ++i) {
    const AxisRef wanted = axes[i];
    const auto is_part = [&](const AxisRef& ref) { return whole_of != nullptr && !is_full(*whole_of, ref); };
    if (is_part(wanted)) block_first(why, Verdict::kPartialAxis, 0);
    std::optional<AxisRef> left = allowed(wanted, before);
    if (left && is_part(*left)) {
      block_first(why, Verdict::kPartialAxis, 0);
      left.reset();
    }
    if (left != wanted) {
      if (left) axes[i] = *left;
      axes.resize(left ? i + 1 : i);
      if (why != nullptr && !reaches_into(why->axis, axes) && !reaches_into(why->axis, wanted)) why->refused = wanted;
      return;
    }
    before *= wanted.size;
  }
}

bool is_strict_prefix(const AxisList& shorter, const AxisList& longer) {
  return begins(shorter, longer) && shorter != longer;
}

int64_t tensor_size(const FactorProjection& projection, size_t tensor) {
  const auto factors = projection.rule().factors();
  int64_t size = 1;
  for (size_t f = 0; f < factors.size(); ++f) {
    if (projection.tensor(tensor).factors[f].mapped) size *= factors[f].size;
  }
  return size;
}

}  // namespace

bool FactorPropagation::participates(const Factor& factor) const {
  return !factor.blocked && (!mode_.pass_through_only || factor.kind == FactorKind::kPassThrough);
}

void FactorPropagation::run(FactorProjection& projection, const Mode& mode) {
  mode_ = mode;
  updated_.assign(projection.tensor_count(), 0);
  AxisObserver* const observer = mode_.observer;
  if (observer != nullptr) observer->verdict = Verdict::kDirection;
  if (mode_.direction == Direction::kNone) return;
  strategy_ == Strategy::kBasic ? run_basic(projection) : run_aggressive(projection);
  const FactorSharding* observed = observer == nullptr ? nullptr : projection.find(observer->tensor, observer->factor);
  if (observed == nullptr) return;
  const bool has_it =
      std::ranges::any_of(observed->axes, [&](const AxisRef& own) { return contains(own, observer->axis); });
  if (has_it) observer->verdict = Verdict::kTaken;
}

// The observer, where the list is one of the axis that it asks about.
AxisObserver* FactorPropagation::observer_of(FactorId factor, AxisSpan axes) const {
  AxisObserver* const observer = mode_.observer;
  const bool observed = observer != nullptr && observer->factor == factor && reaches_into(observer->axis, axes);
  return observed ? observer : nullptr;
}

// The candidates of a factor: the axes on which its tensors agree.
void FactorPropagation::find_axes(AxisList& axes, const FactorProjection& projection, FactorId factor) {
  axes.clear();
  if (participates(projection.rule().factors()[factor])) compatible_axes(axes, projection, factor, mode_.direction);
  const AxisObserver* observer = mode_.observer;
  const bool is_missing = observer != nullptr && observer->factor == factor && !reaches_into(observer->axis, axes);
  if (is_missing) observe_missing(projection, factor);
}

// Why a factor's candidates are without the axis.
void FactorPropagation::observe_missing(const FactorProjection& projection, FactorId factor) {
  AxisObserver& observer = *mode_.observer;
  const Factor& of_rule = projection.rule().factors()[factor];
  if (!participates(of_rule)) {
    return observer.block(of_rule.blocked ? Verdict::kBlockedFactor : Verdict::kLaterRound, factor);
  }
  observer.block(Verdict::kDisagreement, factor);
  for (size_t t = 0; t < projection.tensor_count(); ++t) {
    const FactorSharding* sharding = projection.find(t, factor);
    const bool overflows = sharding != nullptr && overlaps(sharding->overflow, observer.axis);
    if (overflows) observer.block(Verdict::kOverflow, factor);
  }
  if (mode_.direction == Direction::kBoth) return;
  AxisList both;
  compatible_axes(both, projection, factor, Direction::kBoth);
  if (reaches_into(observer.axis, both)) observer.block(Verdict::kDirection, factor);
}

void FactorPropagation::run_basic(FactorProjection& projection) {
  const auto factors = projection.rule().factors();
  const size_t tensors = projection.tensor_count();
  for (size_t f = 0; f < factors.size(); ++f) {
    const auto factor = static_cast<FactorId>(f);
    find_axes(axes_, projection, factor);
    AxisObserver* const why = observer_of(factor, axes_);
    truncate(axes_, mode_.whole_axes_of, why, [&](const AxisRef& wanted, int64_t before) {
      std::optional<AxisRef> left = wanted;
      // Every tensor, also one without the factor: kBasic propagates no axis that another dim of some tensor uses.
      for (size_t t = 0; t < tensors && left; ++t) {
        const TensorFactors& tensor = projection.tensor(t);
        const Verdict verdict = why != nullptr ? why->verdict : Verdict::kTaken;
        left = free_of_other_factors(left, tensor, factors.size(), factor, why);
        if (left && tensor.factors[f].mapped) {
          left = fitting_in_factor(left, tensor, factor, factors[f].size, before, why);
        }
        if (why != nullptr && why->verdict != verdict) why->blocker.tensor = t;
      }
      return left;
    });
    if (axes_.empty()) continue;
    for (size_t t = 0; t < tensors; ++t) {
      FactorSharding* sharding = projection.find(t, factor);
      if (sharding == nullptr) continue;
      if (is_strict_prefix(sharding->axes, axes_)) {
        sharding->axes = axes_;
        updated_[t] = 1;
      } else if (AxisObserver* observer = observer_of(factor, axes_); observer != nullptr && observer->tensor == t) {
        observer->block(Verdict::kOtherAxes, factor);
      }
    }
  }
}

// Decides conflicts: the factor whose axes come from the larger tensor wins.
void FactorPropagation::order_candidates(const FactorProjection& projection) {
  const size_t factor_count = projection.rule().factors().size();
  order_.clear();
  sources_.assign(factor_count, {});
  for (size_t f = 0; f < factor_count; ++f) {
    if (candidates_[f].empty()) continue;
    CandidateSource& source = sources_[f];
    source.tensor = std::numeric_limits<size_t>::max();
    for (size_t t = 0; t < projection.tensor_count(); ++t) {
      const FactorSharding* sharding = projection.find(t, static_cast<FactorId>(f));
      if (sharding == nullptr || sharding->axes.empty()) continue;
      // A source has the entire list: a tensor with only a prefix of it did not contribute the rest.
      if (!begins(candidates_[f], sharding->axes)) continue;
      const int64_t size = tensor_size(projection, t);
      if (size > source.size) source = {.size = size, .tensor = t};
    }
    if (mode_.elementwise) source.shards = product(candidates_[f]);
    order_.push_back(static_cast<FactorId>(f));
  }
  // Ties go to the first tensor, then, by a stable sort, to the first factor, as in Shardy.
  std::stable_sort(order_.begin(), order_.end(), [&](FactorId a, FactorId b) {
    const CandidateSource& x = sources_[a];
    const CandidateSource& y = sources_[b];
    return std::tuple(-x.size, -x.shards, x.tensor) < std::tuple(-y.size, -y.shards, y.tensor);
  });
}

void FactorPropagation::grow_tensor(FactorProjection& projection, size_t t) {
  const auto factors = projection.rule().factors();
  TensorFactors& tensor = projection.tensor(t);
  for (FactorId factor : order_) {
    FactorSharding* sharding = projection.find(t, factor);
    if (sharding == nullptr) continue;
    axes_ = candidates_[factor];
    AxisObserver* why = observer_of(factor, axes_);
    if (why != nullptr && why->tensor != t) why = nullptr;
    if (mode_.elementwise && t < projection.operand_count()) {
      // An operand must not get more axes than a result can have: the op would have to gather it again.
      for (size_t r = projection.operand_count(); r < projection.tensor_count(); ++r) {
        const FactorSharding* result = projection.find(r, factor);
        if (result == nullptr || !is_strict_prefix(result->axes, axes_)) continue;
        axes_ = result->axes;
        if (why != nullptr && observer_of(factor, axes_) == nullptr) {
          why->block(Verdict::kResultCannot, factor);
          std::exchange(why, nullptr)->blocker.tensor = r;
        }
      }
    }
    truncate(axes_, mode_.whole_axes_of, why, [&](const AxisRef& wanted, int64_t before) {
      return fitting_in_factor(wanted, tensor, factor, factors[factor].size, before, why);
    });
    if (why != nullptr && observer_of(factor, axes_) == nullptr) {
      // To open the dim would not help where another one has the axis.
      const Verdict by = std::exchange(why->verdict, Verdict::kTaken);
      const bool of_dim = by == Verdict::kClosedDim || by == Verdict::kUneven;
      if (of_dim) free_of_other_factors(why->axis, tensor, factors.size(), factor, why);
      if (why->verdict == Verdict::kTaken) why->verdict = by;
      why = nullptr;
    }
    if (why != nullptr) why->block(Verdict::kOtherAxes, factor);
    if (!is_strict_prefix(sharding->axes, axes_)) continue;
    // Compare with the current axes of the tensor: factors earlier in `order_` have taken theirs, and win.
    truncate(axes_, mode_.whole_axes_of, why, [&](const AxisRef& wanted, int64_t) {
      return free_of_other_factors(wanted, tensor, factors.size(), factor, why);
    });
    if (why != nullptr) {
      why->source = sources_[factor];
      why->blocking_source = sources_[why->blocker.factor];
    }
    if (!is_strict_prefix(sharding->axes, axes_)) continue;
    sharding->axes = axes_;
    updated_[t] = 1;
  }
}

void FactorPropagation::run_aggressive(FactorProjection& projection) {
  const size_t factors = projection.rule().factors().size();
  if (candidates_.size() < factors) candidates_.resize(factors);
  bool any = false;
  for (size_t f = 0; f < factors; ++f) {
    find_axes(candidates_[f], projection, static_cast<FactorId>(f));
    any = any || !candidates_[f].empty();
  }
  if (!any) return;
  order_candidates(projection);
  // Results first: an operand of an elementwise op depends on the axes of its results.
  for (size_t t = projection.operand_count(); t < projection.tensor_count(); ++t) grow_tensor(projection, t);
  for (size_t t = 0; t < projection.operand_count(); ++t) grow_tensor(projection, t);
}

}  // namespace shardwise
