// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/program_placements.h"

#include <algorithm>
#include <utility>

#include "shardwise/mesh/other_mesh.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/propagation/program_mesh.h"

namespace shardwise {

std::optional<Placement> placement_of_value(const Module& module, ValueId value) {
  if (module.stage < Stage::kAssigned) return std::nullopt;
  const Context& context = module.context();
  // A part wins: its blocks may differ from those that the sharding gives.
  if (const PlacementId placement = module.part(value).placement) return context.placement(placement);
  const ShardingId sharding = module.value(value).sharding;
  return sharding ? std::optional(placement_of(context.sharding(sharding), module.type(value).shape)) : std::nullopt;
}

std::string placement_text(const Context& context, PlacementId id, const MeshPtr& mesh) {
  if (!id) return {};
  const Placement& placement = context.placement(id);
  return (placement.mesh->same_devices(*mesh) ? "" : placement.mesh->reference()) + short_text(sharding_of(placement));
}

ProgramPlacements::ProgramPlacements(const Module& module)
    : module_(module), context_(module.context()), mesh_(main_mesh(module)) {
  const MeshPtr* last = &mesh_;
  const auto add = [&](ShardingId id) {
    // Nearly all values are on one mesh, so that most comparisons are of two pointers.
    if (!id || context_.sharding(id).mesh == *last) return;
    last = &context_.sharding(id).mesh;
    const MeshPtr& mesh = *last;
    const auto is_known = [&](const MeshPtr& known) { return known->same_devices(*mesh); };
    if (mesh == nullptr || mesh->is_empty() || is_known(mesh_) || std::ranges::any_of(others_, is_known)) return;
    others_.push_back(mesh);
  };
  for (uint32_t i = 1; mesh_ != nullptr && i < module.value_count(); ++i) add(module.value(ValueId{i}).sharding);
  for (const Function& function : module.functions) {
    for (const ShardingId id : function.result_shardings) add(id);
  }
}

PlacementId ProgramPlacements::at(ValueId value) {
  if (const PlacementId chosen = module_.part(value).placement) return chosen;
  const Value& column = module_.value(value);
  return of(column.sharding, column.type);
}

PlacementId ProgramPlacements::declared(ValueId value) {
  const Value& column = module_.value(value);
  return reduced(column.sharding, column.type);
}

PlacementId ProgramPlacements::annotated(ValueId value, PlacementId at_home) {
  const Value& column = module_.value(value);
  const PlacementId whole = declared(value);
  const Placement* written = find(of(column.sharding, column.type));
  const Placement* now = find(at_home);
  const bool stays = written != nullptr && now != nullptr && !written->unreduced.empty() && !now->unreduced.empty() &&
                     written->mesh == now->mesh;
  if (!stays) return whole;
  Placement kept = *find(whole);
  kept.mesh = now->mesh;
  kept.unreduced = difference(now->unreduced, difference(now->unreduced, written->unreduced));
  // Sub-axes that no single split of the axis has cannot be in one placement.
  const AxisList dims = axes_of_dims(kept.dims);
  const auto fits = [&](const AxisRef& axis) {
    return can_coexist(written->unreduced, axis) && can_coexist(dims, axis) && !overlaps(dims, axis);
  };
  if (!std::ranges::all_of(kept.unreduced, fits)) return whole;
  kept.reducer = kept.unreduced.empty() ? Reducer::kNone : now->reducer;
  kept.is_owned = !kept.unreduced.empty() && now->is_owned;
  return context_.intern(kept);
}

PlacementId ProgramPlacements::result(const Function& function, size_t i) {
  const ValueId value = module_.region(function.body).results[i];
  const std::vector<ShardingId>& declared = function.result_shardings;
  return i < declared.size() && declared[i] ? reduced(declared[i], module_.value(value).type) : this->declared(value);
}

PlacementId ProgramPlacements::reduced(ShardingId sharding, TypeId type) {
  if (mesh_ == nullptr) return {};
  // The type decides the blocks, so a sharding alone is not enough.
  PlacementId& known = reduced_[uint64_t{sharding.index} << 32 | type.index];
  if (known) return known;
  std::vector<AxisList> dims(context_.type(type).shape.size());
  if (sharding) {
    const std::vector<DimSharding>& given = context_.sharding(sharding).dims;
    for (size_t d = 0; d < given.size(); ++d) dims[d] = given[d].axes;
  }
  known = of(type, std::move(dims), {}, Reducer::kNone, mesh_of(sharding));
  return known;
}

const MeshPtr& ProgramPlacements::mesh_of(ShardingId sharding) const {
  if (!sharding || others_.empty()) return mesh_;
  const MeshPtr& mesh = context_.sharding(sharding).mesh;
  const auto found = std::ranges::find_if(
      others_, [&](const MeshPtr& other) { return other == mesh || (mesh != nullptr && other->same_devices(*mesh)); });
  return found == others_.end() ? mesh_ : *found;
}

PlacementId ProgramPlacements::of(ShardingId sharding, TypeId type) {
  const PlacementId whole = reduced(sharding, type);
  if (!sharding || !whole || context_.sharding(sharding).unreduced.empty()) return whole;
  Placement placement = context_.placement(whole);
  placement.mesh = mesh_of(sharding);
  placement.unreduced = context_.sharding(sharding).unreduced;
  placement.reducer = context_.sharding(sharding).pending_reducer();
  return context_.intern(placement);
}

PlacementId ProgramPlacements::of(TypeId type, std::vector<AxisList> dims, AxisList unreduced, Reducer reducer,
                                  const MeshPtr& mesh, bool is_owned) const {
  if (mesh_ == nullptr) return {};
  const Dims& shape = context_.type(type).shape;
  const bool is_replicated = unreduced.empty() && std::ranges::all_of(dims, &AxisList::empty);
  // One id for a replicated value on any mesh, so that no reshard is between two of them.
  Placement placement{
      .mesh = mesh == nullptr || is_replicated ? mesh_ : mesh, .dims = {}, .unreduced = std::move(unreduced)};
  placement.dims.reserve(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t block = ceil_div(shape[d], product(dims[d]));
    placement.dims.push_back({std::move(dims[d]), block});
  }
  if (!placement.unreduced.empty()) placement.reducer = reducer;
  placement.is_owned = is_owned && !placement.unreduced.empty();
  return context_.intern(placement);
}

const std::string& ProgramPlacements::text(PlacementId id) {
  const auto [entry, is_new] = texts_.try_emplace(id);
  if (is_new) entry->second = placement_text(context_, id, mesh_);
  return entry->second;
}

ShardingId ProgramPlacements::sharding(PlacementId placement) {
  if (!placement) return {};
  ShardingId& known = shardings_[placement];
  if (!known) known = context_.intern(sharding_of(context_.placement(placement)));
  return known;
}

}  // namespace shardwise
