// SPDX-License-Identifier: Apache-2.0
#include "shardwise/passes/program_shardings.h"

#include "shardwise/base/error.h"

namespace shardwise {
namespace {

class MeshFinder {
 public:
  explicit MeshFinder(const Module& module) : module_(module) {}

  void see(ShardingId id, LocId loc) {
    if (!id || id == last_) return;
    last_ = id;
    const MeshPtr& mesh = module_.context().sharding(id).mesh;
    if (mesh == nullptr || mesh->is_empty() || mesh == found_) return;
    if (mesh->is_maximal()) {
      refuse("a value cannot be placed on a single device", mesh->text(), "shard or replicate it over the mesh", loc);
    }
    if (found_ == nullptr) {
      found_ = mesh;
    } else if (!found_->same_devices(*mesh)) {
      refuse("all shardings must be of one mesh", found_->text() + " and " + mesh->text(),
             "use one mesh, with as many axes as the finest of them", loc);
    }
  }
  MeshPtr found() const { return found_; }

 private:
  [[noreturn]] void refuse(std::string_view must_hold, const std::string& got, std::string_view way_out, LocId loc) {
    ShardingError error(error_message("sharding", must_hold, got, way_out));
    error.at(module_.context().location_text(loc));
    throw error;
  }
  const Module& module_;
  MeshPtr found_;
  ShardingId last_;
};

}  // namespace

MeshPtr main_mesh(const Module& module) {
  MeshFinder finder(module);
  const Region& body = module.region(module.main().body);
  for (const ValueId argument : body.arguments) finder.see(module.value(argument).sharding, module.value(argument).loc);
  for (const OpId id : body.ops) {
    const OpView op(module, id);
    for (size_t i = 0; i < op.result_count(); ++i) finder.see(module.value(op.result(i)).sharding, op.loc());
  }
  for (const ShardingId id : module.main().result_shardings) finder.see(id, {});
  return finder.found();
}

MeshPtr program_mesh(const Module& module) {
  if (MeshPtr mesh = main_mesh(module)) return mesh;
  for (const MeshPtr& mesh : module.meshes) {
    if (!mesh->is_empty() && !mesh->is_maximal()) return mesh;
  }
  return nullptr;
}

ProgramShardings::ProgramShardings(const Module& module)
    : module_(module), context_(module.context()), mesh_(main_mesh(module)) {}

ShardingId ProgramShardings::declared(ValueId value) {
  return reduced(module_.value(value).sharding, module_.type(value).ndim());
}

ShardingId ProgramShardings::reduced(ShardingId id, int64_t ndim) {
  if (mesh_ == nullptr) return {};
  ShardingId& known = reduced_[{id, ndim}];
  if (known) return known;
  const TensorSharding* sharding = find(id);
  std::vector<AxisList> dims(static_cast<size_t>(ndim));
  for (size_t d = 0; sharding != nullptr && d < sharding->dims.size(); ++d) dims[d] = sharding->dims[d].axes;
  known = of(std::move(dims), {}, Reducer::kNone);
  return known;
}

ShardingId ProgramShardings::with_unreduced(ShardingId id, int64_t ndim) {
  const TensorSharding* sharding = find(id);
  const ShardingId dims_only = reduced(id, ndim);
  if (sharding == nullptr || sharding->unreduced.empty()) return dims_only;
  TensorSharding result = *find(dims_only);
  result.unreduced = sharding->unreduced;
  result.reducer = sharding->pending_reducer();
  return context_.intern(result);
}

ShardingId ProgramShardings::replicated(int64_t ndim) const {
  return of(std::vector<AxisList>(static_cast<size_t>(ndim)), {}, Reducer::kNone);
}

ShardingId ProgramShardings::of(std::vector<AxisList> dims, AxisList unreduced, Reducer reducer) const {
  if (mesh_ == nullptr) return {};
  TensorSharding sharding{.mesh = mesh_, .dims = {}, .replicated = {}, .unreduced = std::move(unreduced)};
  for (AxisList& axes : dims) sharding.dims.push_back({std::move(axes), false, {}});
  if (!sharding.unreduced.empty()) sharding.reducer = reducer;
  return context_.intern(sharding);
}

}  // namespace shardwise
