// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/program_placements.h"

#include <utility>

#include "shardwise/propagation/program_mesh.h"

namespace shardwise {

ProgramPlacements::ProgramPlacements(const Module& module)
    : module_(module), context_(module.context()), mesh_(main_mesh(module)) {}

PlacementId ProgramPlacements::declared(ValueId value) {
  const Value& column = module_.value(value);
  return reduced(column.sharding, column.type);
}

PlacementId ProgramPlacements::result(const Function& function, size_t i) {
  const ValueId value = module_.region(function.body).results[i];
  const std::vector<ShardingId>& declared = function.result_shardings;
  return i < declared.size() && declared[i] ? reduced(declared[i], module_.value(value).type) : this->declared(value);
}

PlacementId ProgramPlacements::reduced(ShardingId sharding, TypeId type) {
  if (mesh_ == nullptr) return {};
  PlacementId& known = reduced_[uint64_t{sharding.index} << 32 | type.index];
  if (known) return known;
  std::vector<AxisList> dims(context_.type(type).shape.size());
  if (sharding) {
    const std::vector<DimSharding>& given = context_.sharding(sharding).dims;
    for (size_t d = 0; d < given.size(); ++d) dims[d] = given[d].axes;
  }
  known = of(type, std::move(dims), {}, Reducer::kNone);
  return known;
}

PlacementId ProgramPlacements::of(ShardingId sharding, TypeId type) {
  const PlacementId whole = reduced(sharding, type);
  if (!sharding || !whole || context_.sharding(sharding).unreduced.empty()) return whole;
  Placement placement = context_.placement(whole);
  placement.unreduced = context_.sharding(sharding).unreduced;
  placement.reducer = context_.sharding(sharding).pending_reducer();
  return context_.intern(placement);
}

PlacementId ProgramPlacements::of(TypeId type, std::vector<AxisList> dims, AxisList unreduced, Reducer reducer) const {
  if (mesh_ == nullptr) return {};
  const Dims& shape = context_.type(type).shape;
  Placement placement{.mesh = mesh_, .dims = {}, .unreduced = std::move(unreduced)};
  placement.dims.reserve(dims.size());
  for (size_t d = 0; d < dims.size(); ++d) {
    const int64_t block = ceil_div(shape[d], product(dims[d]));
    placement.dims.push_back({std::move(dims[d]), block});
  }
  if (!placement.unreduced.empty()) placement.reducer = reducer;
  return context_.intern(placement);
}

ShardingId ProgramPlacements::sharding(PlacementId placement) {
  if (!placement) return {};
  ShardingId& known = shardings_[placement];
  if (!known) known = context_.intern(sharding_of(context_.placement(placement)));
  return known;
}

}  // namespace shardwise
