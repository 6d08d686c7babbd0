// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/explain.h"

#include "shardwise/base/settings.h"
#include "shardwise/explanation/lost_behind_barriers.h"
#include "shardwise/explanation/suggested_sharding.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/propagation/program_mesh.h"
#include "shardwise/propagation/sharding_groups.h"
#include "shardwise/transforms/call_regions.h"

namespace shardwise {

Explainer::Explainer(const Module& module, const Provenance& provenance)
    : module_(module), history_(module, provenance), tracer_(module, history_) {
  // The replay must end where propagation did, or the explanation is of something else.
  if (settings().verify) history_.verify();
}

// For a value without a sharding: the mesh of the first sharded tensor at one of its ops, or else the program's.
MeshPtr Explainer::mesh_around(ValueId value) const {
  const auto has_axes = [](const MeshPtr& mesh) { return mesh != nullptr && !mesh->is_empty() && !mesh->is_maximal(); };
  for (const VisitedOp at : history_.visits_of(value)) {
    for (const ShardingId id : history_.seen_by(at, history_.now())) {
      if (id && has_axes(module_.context().sharding(id).mesh)) return module_.context().sharding(id).mesh;
    }
  }
  MeshPtr mesh = only_mesh(module_);
  return has_axes(mesh) ? mesh : nullptr;
}

void Explainer::suggest(const TensorSharding& now, Explanation& result) {
  const Value& value = module_.value(result.value);
  const OpId owner = module_.owner(value);
  const ShardingId initial = history_.initial({result.value});
  const TensorSharding* annotation = initial ? &module_.context().sharding(initial) : nullptr;
  // If one operand or result of a call has a sharding, the others begin with an open one, which is no annotation.
  const bool is_written =
      annotation != nullptr && !(is_called_region(module_, history_.provenance().called, owner) &&
                                 *annotation == TensorSharding::open(annotation->mesh, annotation->ndim()));
  if (!is_written) annotation = nullptr;
  const auto suggestion = suggested_sharding(module_, result.value, now, annotation);
  if (!suggestion) return;
  result.suggestion = short_text(*suggestion);
  if (annotation != nullptr) result.to_change = tracer_.annotation_of(TensorRef{result.value});
}

Explanation Explainer::explain(ValueId value) {
  Explanation result{.value = value};
  if (!is_made_constraint(module_, history_.provenance(), value)) result.name = shown_name(module_, value);
  const ShardingId id = module_.value(value).sharding;
  const MeshPtr mesh = id ? module_.context().sharding(id).mesh : mesh_around(value);
  if (mesh == nullptr) return result;
  const TensorSharding sharding =
      id ? module_.context().sharding(id) : TensorSharding::open(mesh, module_.type(value).ndim());
  if (id) {
    const bool has_several_meshes = only_mesh(module_) == nullptr;
    result.sharding = (has_several_meshes ? mesh->reference() + " " : "") + short_text(sharding);
  }
  for (size_t d = 0; d < sharding.dims.size(); ++d) {
    for (const AxisRef& axis : sharding.dims[d].axes) {
      const auto& origins = tracer_.origins(TensorRef{value}, d, axis, history_.now());
      result.axes.insert(result.axes.end(), origins.begin(), origins.end());
    }
  }
  result.lost = lost_axes(history_, tracer_, value);
  if (!result.axes.empty()) return result;
  // A search through the program: only where no neighbor explains why the value is not sharded.
  if (result.lost.empty()) result.lost = lost_behind_barriers(history_, tracer_, value);
  suggest(sharding, result);
  return result;
}

}  // namespace shardwise
