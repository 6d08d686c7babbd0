// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/op_propagation.h"

#include <algorithm>

#include "shardwise/propagation/common_mesh.h"

namespace shardwise {

const uint32_t* OpPropagation::after(const ShardingRule& rule, Participation part, bool elementwise, bool conservative,
                                     std::span<const ShardingId> before) {
  // All that a visit depends on, together with the rule and the shardings.
  const uint32_t variant = 4U * part.code() + (elementwise ? 2 : 0) + (conservative ? 1 : 0);
  if (const uint32_t* known = cache_.find(&rule, variant, before)) return known;
  after_.clear();
  for (ShardingId id : before) after_.push_back(id.index);
  // If there is none, nothing grows; that is cached, too.
  if (const MeshPtr* mesh = common_mesh(context_, before)) {
    grow({.rule = rule, .part = part, .elementwise = elementwise, .conservative = conservative}, *mesh, before, {});
  }
  return cache_.insert(&rule, variant, before, after_);
}

void OpPropagation::grow(const Visit& visit, const MeshPtr& mesh, std::span<const ShardingId> before,
                         std::optional<size_t> only, AxisObserver* observer) {
  shardings_.clear();
  for (ShardingId id : before) shardings_.push_back(id ? &context_.sharding(id) : nullptr);
  projection_.project(visit.rule, shardings_);
  if (only) hide_all_but(*observer, *only);
  factors_.restrict_to_whole_axes(visit.conservative ? mesh.get() : nullptr);
  factors_.observe(observer);
  factors_.run(projection_, visit.part.direction, visit.part.pass_through_only, visit.elementwise && !only);
  for (size_t t = 0; t < before.size(); ++t) {
    if (!factors_.updated()[t]) continue;
    const TensorSharding grown = projection_.sharding(t, mesh);
    // A factor may have taken axes that its dim cannot show. As in Shardy, no value gets a sharding without axes then.
    const bool has_axes = std::ranges::any_of(grown.dims, [](const DimSharding& dim) { return !dim.axes.empty(); });
    if (before[t] ? grown == *shardings_[t] : !has_axes) continue;
    after_[t] = context_.intern(grown).index;
  }
}

std::span<const uint32_t> OpPropagation::replay(const Visit& visit, std::span<const ShardingId> before,
                                                AxisObserver& observer, std::optional<size_t> only) {
  after_.clear();
  for (ShardingId id : before) after_.push_back(id.index);
  const MeshPtr* mesh = common_mesh(context_, before);
  if (mesh == nullptr) {
    observer.verdict = Verdict::kDifferentMeshes;
    return after_;
  }
  grow(visit, *mesh, before, only, &observer);
  observe_dim(observer);
  return after_;
}

void OpPropagation::hide_all_but(const AxisObserver& observer, size_t only) {
  for (size_t t = 0; t < projection_.tensor_count(); ++t) {
    if (t == only) continue;
    TensorFactors& tensor = projection_.tensor(t);
    if (t == observer.tensor) {
      AxisList& own = tensor.factors[observer.factor].axes;
      const AxisList& others = projection_.find(only, observer.factor)->axes;
      // Own axes that are a prefix of the list of `only` remain: they do not conflict.
      while (!own.empty() && !is_prefix_of(own, others)) own.pop_back();
      continue;
    }
    tensor.replicated.clear();
    tensor.unreduced.clear();
    for (FactorSharding& factor : tensor.factors) {
      factor.axes.clear();
      factor.overflow.clear();
      factor.closed = false;
    }
  }
}

// A factor may take an axis that its dim cannot show, since a factor before it is not sharded in full.
void OpPropagation::observe_dim(AxisObserver& observer) const {
  if (observer.verdict != Verdict::kTaken && observer.verdict != Verdict::kClosedDim) return;
  const size_t tensor = observer.verdict == Verdict::kTaken ? observer.tensor : observer.blocker.tensor;
  const ShardingRule& rule = projection_.rule();
  const std::span<const FactorId> parts = rule.dim(tensor, dim_of(rule, tensor, observer.factor));
  // The entire dim is closed, which is the better reason.
  if (projection_.tensor(tensor).factors[parts.front()].closed) return;
  for (const FactorId part : parts) {
    if (part == observer.factor) return;
    const FactorSharding& before = projection_.tensor(tensor).factors[part];
    if (before.overflow.empty() && product(before.axes) >= rule.factors()[part].size) continue;
    observer.verdict = Verdict::kPartBefore;
    observer.blocker = {.tensor = tensor, .factor = part, .axis = {}};
    return;
  }
}

}  // namespace shardwise
