// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/op_propagation.h"

#include <algorithm>

namespace shardwise {
namespace {

// The mesh of the shardings of an op's tensors, under the first of its names: shardings propagate only between tensors
// on one mesh. Null when the meshes differ, when there is none, or when it has no axes.
const MeshPtr* common_mesh(const Context& context, std::span<const ShardingId> shardings) {
  const MeshPtr* common = nullptr;
  for (ShardingId id : shardings) {
    if (!id) continue;
    const MeshPtr& mesh = context.sharding(id).mesh;
    if (mesh == nullptr || mesh->is_empty()) continue;
    if (mesh->is_maximal() || (common != nullptr && *common != mesh && !(*common)->same_devices(*mesh))) return nullptr;
    if (common == nullptr) common = &mesh;
  }
  return common;
}

}  // namespace

OpPropagation::OpPropagation(Context& context, const CompileOptions& options)
    : context_(context), factors_(options.strategy), whole_axes_only_(options.conservative) {}

const uint32_t* OpPropagation::after(const Visit& visit, std::span<const ShardingId> before) {
  // All that a visit depends on, together with the rule and the shardings.
  const uint32_t variant = 4U * visit.part.code() + (visit.elementwise ? 2 : 0) + (visit.is_return ? 1 : 0);
  if (const uint32_t* known = cache_.find(&visit.rule, variant, before)) return known;
  start(before);
  // If there is none, nothing grows; that is cached, too.
  if (const MeshPtr* mesh = common_mesh(context_, before)) grow(visit, *mesh, before);
  return cache_.insert(&visit.rule, variant, before, after_);
}

std::span<const uint32_t> OpPropagation::replay(const Visit& visit, std::span<const ShardingId> before,
                                                AxisObserver& observer, std::optional<size_t> only) {
  start(before);
  const MeshPtr* mesh = common_mesh(context_, before);
  if (mesh == nullptr) {
    observer.verdict = Verdict::kDifferentMeshes;
    return after_;
  }
  grow(visit, *mesh, before, &observer, only);
  observe_dim(observer);
  return after_;
}

void OpPropagation::start(std::span<const ShardingId> before) {
  after_.clear();
  for (ShardingId id : before) after_.push_back(id.index);
}

void OpPropagation::grow(const Visit& visit, const MeshPtr& mesh, std::span<const ShardingId> before,
                         AxisObserver* observer, std::optional<size_t> only) {
  shardings_.clear();
  for (ShardingId id : before) shardings_.push_back(id ? &context_.sharding(id) : nullptr);
  projection_.project(visit.rule, shardings_);
  if (only) hide_all_but(*observer, *only);
  factors_.run(projection_, {.direction = visit.part.direction,
                             .pass_through_only = visit.part.pass_through_only,
                             .elementwise = visit.elementwise && !only,
                             .whole_axes_of = whole_axes_only_ && !visit.is_return ? mesh.get() : nullptr,
                             .observer = observer});
  for (size_t t = 0; t < before.size(); ++t) {
    if (!factors_.updated()[t]) continue;
    const TensorSharding grown = projection_.sharding(t, mesh);
    // A factor may have taken axes that its dim cannot show. As in Shardy, no value gets a sharding without axes then.
    const bool has_axes = std::ranges::any_of(grown.dims, [](const DimSharding& dim) { return !dim.axes.empty(); });
    if (before[t] ? grown == *shardings_[t] : !has_axes) continue;
    after_[t] = context_.intern(grown).index;
  }
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
