// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/op_propagation.h"

#include <algorithm>

#include "shardwise/propagation/common_mesh.h"

namespace shardwise {

const uint32_t* OpPropagation::after(const ShardingRule& rule, Participation part, bool elementwise, bool conservative,
                                     std::span<const ShardingId> before) {
  const uint32_t variant = 4U * part.code() + (elementwise ? 2 : 0) + (conservative ? 1 : 0);
  if (const uint32_t* known = cache_.find(&rule, variant, before)) return known;
  after_.clear();
  for (ShardingId id : before) after_.push_back(id.index);
  if (const MeshPtr* mesh = common_mesh(context_, before)) {
    factors_.hand_on_whole_axes_of(conservative ? mesh->get() : nullptr);
    grow(rule, *mesh, part, elementwise, before);
  }
  return cache_.insert(&rule, variant, before, after_);
}

void OpPropagation::grow(const ShardingRule& rule, const MeshPtr& mesh, Participation part, bool elementwise,
                         std::span<const ShardingId> before) {
  shardings_.clear();
  for (ShardingId id : before) shardings_.push_back(id ? &context_.sharding(id) : nullptr);
  projection_.project(rule, shardings_);
  factors_.run(projection_, part.direction, part.pass_through_only, elementwise);
  for (size_t t = 0; t < before.size(); ++t) {
    if (!factors_.updated()[t]) continue;
    const TensorSharding grown = projection_.sharding(t, mesh);
    const bool has_axes = std::ranges::any_of(grown.dims, [](const DimSharding& dim) { return !dim.axes.empty(); });
    if (before[t] ? grown == *shardings_[t] : !has_axes) continue;
    after_[t] = context_.intern(grown).index;
  }
}

}  // namespace shardwise
