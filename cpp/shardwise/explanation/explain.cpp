// SPDX-License-Identifier: Apache-2.0
#include "shardwise/explanation/explain.h"

#include <algorithm>

#include "shardwise/explanation/suggested_sharding.h"
#include "shardwise/explanation/value_queries.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/propagation/program_mesh.h"

namespace shardwise {
namespace {

// An op that has the value as a tensor, or, without an op, result `result` of main.
struct Place {
  OpId op;
  uint32_t result = 0;
};

RegionId function_body(const Module& module, ValueId value) {
  const Value& asked = module.value(value);
  RegionId body = asked.op ? module.op(asked.op).parent : asked.region;
  while (const OpId owner = module.region(body).op) body = module.op(owner).parent;
  return body;
}

std::vector<Place> places_of(const ExplanationContext& context, ValueId value) {
  const Module& module = context.module();
  std::vector<Place> places;
  for (const OpId op : context.ops_at(value)) places.push_back({op});
  const RegionId body = module.main().body;
  if (function_body(module, value) != body) return places;  // only results of main are propagated
  const std::vector<ValueId>& results = module.region(body).results;
  for (uint32_t i = 0; i < results.size(); ++i) {
    if (results[i] == value) places.push_back({{}, i});
  }
  return places;
}

// For a value without a sharding: the mesh of the first sharded tensor at one of its places, or else the program's.
MeshPtr mesh_around(ExplanationContext& context, const std::vector<Place>& places) {
  const auto has_axes = [](const MeshPtr& mesh) { return mesh != nullptr && !mesh->is_empty() && !mesh->is_maximal(); };
  const AxisHistory& history = context.history();
  for (const Place& place : places) {
    for (const TensorRef& tensor : history.tensors(place.op, place.result)) {
      const ShardingId id = history.at(tensor, history.now());
      if (id && has_axes(context.module().context().sharding(id).mesh)) {
        return context.module().context().sharding(id).mesh;
      }
    }
  }
  MeshPtr mesh = only_mesh(context.module());
  return has_axes(mesh) ? mesh : nullptr;
}

void suggest(ExplanationContext& context, const TensorSharding& now, Explanation& result) {
  const Module& module = context.module();
  const TensorRef tensor{result.value};
  const Value& value = module.value(result.value);
  const OpId owner = value.op ? value.op : module.region(value.region).op;
  ShardingId annotation = context.history().initial(tensor);
  // Where one operand or result of a call has a sharding, the others begin with an open one.
  if (annotation && is_called_region(module, context.history().provenance(), owner)) {
    const TensorSharding& known = module.context().sharding(annotation);
    if (known == TensorSharding::open(known.mesh, known.ndim())) annotation = {};
  }
  const TensorSharding* annotated = annotation ? &module.context().sharding(annotation) : nullptr;
  result.suggestion = suggested_sharding(module, result.value, now, annotated);
  if (annotation && result.suggestion) result.to_change = context.tracer(*now.mesh).annotation_of(tensor);
}

}  // namespace

Explanation explain(ExplanationContext& context, ValueId value) {
  const Module& module = context.module();
  const AxisHistory& history = context.history();
  Explanation result{.value = value};
  if (!is_made_constraint(module, history.provenance(), value)) result.name = shown_name(module, value);
  const std::vector<Place> places = places_of(context, value);
  const ShardingId id = module.value(value).sharding;
  const MeshPtr mesh = id ? module.context().sharding(id).mesh : mesh_around(context, places);
  if (mesh == nullptr) return result;
  const TensorSharding sharding =
      id ? module.context().sharding(id)
         : TensorSharding::open(mesh, static_cast<int64_t>(module.type(value).shape.size()));
  if (id) result.sharding = short_text(sharding);
  for (size_t d = 0; d < sharding.dims.size(); ++d) {
    for (const AxisRef& axis : sharding.dims[d].axes) {
      const auto& origins = context.tracer(*mesh).origins(TensorRef{value}, d, axis, history.now());
      result.axes.insert(result.axes.end(), origins.begin(), origins.end());
    }
  }
  LostAxisFinder finder(context, value, *mesh);
  for (const Place& place : places) finder.find_at(place.op, place.result, result.lost);
  if (!result.axes.empty()) return result;
  if (result.lost.empty() && context.has_barrier(function_body(module, value))) {
    finder.find_behind_barriers(result.lost);
  }
  suggest(context, sharding, result);
  return result;
}

Explanation explain(const Module& module, const Provenance& provenance, ValueId value) {
  ExplanationContext context(module, provenance);
  return explain(context, value);
}

}  // namespace shardwise
