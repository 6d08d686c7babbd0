// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/propagate_factors.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

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

// Folds the axes of another tensor into `axes`, the longest list that is compatible with all tensors so far. Returns
// whether a later tensor may still extend it.
bool fold_compatible(AxisList& axes, AxisSpan other, bool can_expand) {
  const size_t common = std::min(axes.size(), other.size());
  for (size_t i = 0; i < common; ++i) {
    if (axes[i] == other[i]) continue;
    if (begins(other[i], axes[i])) {
      if (i + 1 == other.size()) continue;
      axes[i] = other[i];
      axes.resize(i + 1);
      return false;
    }
    if (begins(axes[i], other[i])) {
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
  if (direction == Direction::kBackward) {
    fold_tensors(axes, projection, factor, operands, tensors, true);
    fold_tensors(axes, projection, factor, 0, operands, false);
  } else {
    const bool can_expand = fold_tensors(axes, projection, factor, 0, operands, true);
    fold_tensors(axes, projection, factor, operands, tensors, both && can_expand);
  }
}

bool cut_before(std::optional<AxisRef>& ref, AxisSpan others) {
  for (const AxisRef& other : others) {
    ref = prefix_without_overlap(*ref, other);
    if (!ref) return false;
  }
  return true;
}

// The prefix of `ref` that no other factor of the tensor uses.
std::optional<AxisRef> free_of_other_factors(std::optional<AxisRef> ref, const TensorFactors& tensor,
                                             size_t factor_count, FactorId factor) {
  for (size_t f = 0; f < factor_count; ++f) {
    const FactorSharding& other = tensor.factors[f];
    if (f == factor || !other.mapped) continue;
    if (!cut_before(ref, other.overflow) || !cut_before(ref, other.axes)) return std::nullopt;
  }
  return ref;
}

// The prefix of `ref` that fits into the factor after axes of product `before`.
std::optional<AxisRef> fitting_in_factor(std::optional<AxisRef> ref, const TensorFactors& tensor,
                                         const FactorSharding& factor, int64_t factor_size, int64_t before) {
  if (!cut_before(ref, tensor.replicated) || !cut_before(ref, tensor.unreduced)) return std::nullopt;
  const bool has_already =
      std::any_of(factor.axes.begin(), factor.axes.end(), [&](const AxisRef& own) { return reaches_into(*ref, own); });
  if (has_already) return ref;
  if (!factor.closed && factor.overflow.empty()) {
    if (factor.minor_most) return ref;
    if (factor_size % before == 0) {
      const int64_t common = std::gcd(factor_size / before, ref->size);
      if (common == ref->size) return ref;
      if (common > 1) return AxisRef{ref->axis, ref->pre, common};
    }
  }
  if (!factor.axes.empty() && begins(factor.axes.back(), *ref)) return factor.axes.back();
  return std::nullopt;
}

// Cuts `axes` at the first one of which `allowed(ref, product of those before)` returns a proper prefix or none. With
// `whole_of`, cuts at the first one that is not a whole axis of that mesh.
template <class Allowed>
void truncate(AxisList& axes, const Mesh* whole_of, Allowed allowed) {
  int64_t before = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const AxisRef wanted = axes[i];
    std::optional<AxisRef> left = allowed(wanted, before);
    if (left && whole_of != nullptr && !is_full(*whole_of, *left)) left.reset();
    if (left != wanted) {
      if (left) axes[i] = *left;
      axes.resize(left ? i + 1 : i);
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

bool FactorPropagation::speaks(const Factor& factor) const {
  return !factor.blocked && (!pass_through_only_ || factor.kind == FactorKind::kPassThrough);
}

void FactorPropagation::run(FactorProjection& projection, Direction direction, bool pass_through_only,
                            bool elementwise) {
  pass_through_only_ = pass_through_only;
  updated_.assign(projection.tensor_count(), 0);
  if (direction == Direction::kNone) return;
  if (strategy_ == Strategy::kBasic) {
    run_basic(projection, direction);
  } else {
    run_aggressive(projection, direction, elementwise);
  }
}

void FactorPropagation::run_basic(FactorProjection& projection, Direction direction) {
  const auto factors = projection.rule().factors();
  const size_t tensors = projection.tensor_count();
  for (size_t f = 0; f < factors.size(); ++f) {
    if (!speaks(factors[f])) continue;
    const auto factor = static_cast<FactorId>(f);
    compatible_axes(axes_, projection, factor, direction);
    truncate(axes_, whole_of_, [&](const AxisRef& wanted, int64_t before) {
      std::optional<AxisRef> left = wanted;
      for (size_t t = 0; t < tensors && left; ++t) {
        const TensorFactors& tensor = projection.tensor(t);
        left = free_of_other_factors(left, tensor, factors.size(), factor);
        if (left && tensor.factors[f].mapped) {
          left = fitting_in_factor(left, tensor, tensor.factors[f], factors[f].size, before);
        }
      }
      return left;
    });
    if (axes_.empty()) continue;
    for (size_t t = 0; t < tensors; ++t) {
      FactorSharding* sharding = projection.find(t, factor);
      if (sharding == nullptr || !is_strict_prefix(sharding->axes, axes_)) continue;
      sharding->axes = axes_;
      updated_[t] = 1;
    }
  }
}

bool FactorPropagation::find_candidates(const FactorProjection& projection, Direction direction) {
  const auto factors = projection.rule().factors();
  if (candidates_.size() < factors.size()) candidates_.resize(factors.size());
  bool any = false;
  for (size_t f = 0; f < factors.size(); ++f) {
    candidates_[f].clear();
    if (speaks(factors[f])) compatible_axes(candidates_[f], projection, static_cast<FactorId>(f), direction);
    any = any || !candidates_[f].empty();
  }
  return any;
}

// Decides conflicts: the factor whose axes come from the larger tensor wins.
void FactorPropagation::order_candidates(const FactorProjection& projection, bool elementwise) {
  const size_t factor_count = projection.rule().factors().size();
  order_.clear();
  sources_.assign(factor_count, Source{});
  for (size_t f = 0; f < factor_count; ++f) {
    if (candidates_[f].empty()) continue;
    Source& source = sources_[f];
    source.tensor = std::numeric_limits<size_t>::max();
    for (size_t t = 0; t < projection.tensor_count(); ++t) {
      const FactorSharding* sharding = projection.find(t, static_cast<FactorId>(f));
      if (sharding == nullptr || sharding->axes.empty()) continue;
      if (sharding->axes != candidates_[f] && !is_strict_prefix(candidates_[f], sharding->axes)) continue;
      const int64_t size = tensor_size(projection, t);
      if (size > source.size) source = Source{.size = size, .tensor = t};
    }
    if (elementwise) source.shards = product(candidates_[f]);
    order_.push_back(static_cast<FactorId>(f));
  }
  std::stable_sort(order_.begin(), order_.end(), [&](FactorId a, FactorId b) {
    const Source& x = sources_[a];
    const Source& y = sources_[b];
    return std::tuple(-x.size, -x.shards, x.tensor) < std::tuple(-y.size, -y.shards, y.tensor);
  });
}

void FactorPropagation::grow_tensor(FactorProjection& projection, size_t t, bool elementwise) {
  const auto factors = projection.rule().factors();
  TensorFactors& tensor = projection.tensor(t);
  for (FactorId factor : order_) {
    FactorSharding* sharding = projection.find(t, factor);
    if (sharding == nullptr) continue;
    axes_ = candidates_[factor];
    if (elementwise && t < projection.operand_count()) {
      // An operand must not get more axes than a result can have: the op would have to gather it again.
      for (size_t r = projection.operand_count(); r < projection.tensor_count(); ++r) {
        const FactorSharding* result = projection.find(r, factor);
        if (result != nullptr && is_strict_prefix(result->axes, axes_)) axes_ = result->axes;
      }
    }
    truncate(axes_, whole_of_, [&](const AxisRef& wanted, int64_t before) {
      return fitting_in_factor(wanted, tensor, *sharding, factors[factor].size, before);
    });
    if (!is_strict_prefix(sharding->axes, axes_)) continue;
    truncate(axes_, whole_of_, [&](const AxisRef& wanted, int64_t) {
      return free_of_other_factors(wanted, tensor, factors.size(), factor);
    });
    if (!is_strict_prefix(sharding->axes, axes_)) continue;
    sharding->axes = axes_;
    updated_[t] = 1;
  }
}

void FactorPropagation::run_aggressive(FactorProjection& projection, Direction direction, bool elementwise) {
  if (!find_candidates(projection, direction)) return;
  order_candidates(projection, elementwise);
  for (size_t t = projection.operand_count(); t < projection.tensor_count(); ++t) {
    grow_tensor(projection, t, elementwise);
  }
  for (size_t t = 0; t < projection.operand_count(); ++t) grow_tensor(projection, t, elementwise);
}

}  // namespace shardwise
