// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/suggested_sharding.h"

#include <algorithm>

#include "shardwise/ir/attribute.h"

namespace shardwise {
namespace {

// Also those of the op that defines the value: an axis that splits its result splits its region's result.
AxisList manual_axes_around(const Module& module, ValueId id, const Mesh& mesh) {
  AxisList axes;
  OpId op = module.owner(module.value(id));
  for (; op; op = module.region(module.op(op).parent).op) {
    const auto* names = module.attrs(op).find<AxesAttr>("manual_axes");
    if (names == nullptr) continue;
    for (const RawAxisRef& name : names->axes) {
      if (const std::optional<int> axis = mesh.find_axis(name.name)) axes.push_back(full_axis(mesh, *axis));
    }
  }
  return axes;
}

// The largest one that divides the dim, since it splits without padding; or else the smallest, which pads least.
std::optional<AxisRef> best_axis(const Mesh& mesh, int64_t dim, const AxisList& taken) {
  const auto rank = [&](int64_t size) { return dim % size == 0 ? size : -size; };
  std::optional<AxisRef> best;
  for (int axis = 0; axis < mesh.ndim(); ++axis) {
    const AxisRef full = full_axis(mesh, axis);
    for (const AxisRef& free : difference(AxisSpan(&full, 1), taken)) {
      if (free.size > 1 && (!best || rank(free.size) > rank(best->size))) best = free;
    }
  }
  return best;
}

}  // namespace

std::optional<TensorSharding> suggested_sharding(const Module& module, ValueId value, const TensorSharding& now,
                                                 const TensorSharding* annotation) {
  const Dims& shape = module.type(value).shape;
  const auto dim = std::ranges::max_element(shape);
  if (dim == shape.end() || *dim < 2) return std::nullopt;
  AxisList taken = manual_axes_around(module, value, *now.mesh), replicated;
  for (const TensorSharding* sharding : {&now, annotation}) {
    if (sharding == nullptr) continue;
    taken.insert(taken.end(), sharding->unreduced.begin(), sharding->unreduced.end());
    replicated.insert(replicated.end(), sharding->replicated.begin(), sharding->replicated.end());
  }
  replicated.insert(replicated.end(), taken.begin(), taken.end());
  std::optional<AxisRef> best = best_axis(*now.mesh, *dim, replicated);
  // An annotation that can be changed may stop replicating an axis.
  if (!best && annotation != nullptr) best = best_axis(*now.mesh, *dim, taken);
  if (!best) return std::nullopt;
  TensorSharding sharding = TensorSharding::fully_replicated(now.mesh, now.ndim());
  sharding.dims[static_cast<size_t>(dim - shape.begin())].axes = {*best};
  if (annotation != nullptr) {
    sharding.replicated = difference(annotation->replicated, AxisSpan(&*best, 1));
    sharding.unreduced = annotation->unreduced;
    sharding.reducer = annotation->reducer;
  }
  return sharding;
}

}  // namespace shardwise
