// SPDX-License-Identifier: Apache-2.0
#include "shardwise/propagation/program_mesh.h"

#include "shardwise/base/error.h"
#include "shardwise/base/text.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ir/rewrite/walk.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/other_mesh.h"

namespace shardwise {
namespace {

class MeshFinder {
 public:
  enum class Several { kRefused, kNoted };
  MeshFinder(const Module& module, Several several) : module_(module), several_(several) {}

  void see_main() {
    const Region& body = module_.region(module_.main().body);
    see_arguments(module_.main().body);
    for (const OpId id : body.ops) see_results(id);
    for (const ShardingId id : module_.main().result_shardings) see(id);
  }

  // The values of regions and of the other functions, which main may call.
  void see_inner() {
    for (const Function& function : module_.functions) {
      see_arguments(function.body);
      for (const ShardingId id : function.result_shardings) see(id);
      walk(module_, function.body, [&](OpId op) {
        for (const RegionId region : module_.regions(op)) see_arguments(region);
        see_results(op);
      });
    }
  }

  MeshPtr found() const { return has_several_ ? nullptr : found_; }
  bool has_several() const { return has_several_; }

 private:
  void see_arguments(RegionId region) {
    for (const ValueId argument : module_.region(region).arguments) see(module_.value(argument).sharding, argument);
  }
  void see_results(OpId op) {
    for (uint32_t i = 0; i < module_.op(op).result_count; ++i) {
      const ValueId result = module_.result(op, i);
      see(module_.value(result).sharding, result);
    }
  }

  // The sharding of a value, or without one of a result of a function.
  void see(ShardingId id, ValueId value = {}) {
    // Most values in a row have one sharding.
    if (!id || id == last_) return;
    last_ = id;
    const MeshPtr& mesh = module_.context().sharding(id).mesh;
    // The empty mesh is a placeholder, which takes any mesh.
    if (mesh == nullptr || mesh->is_empty() || mesh == found_) return;
    if (several_ == Several::kNoted) {
      has_several_ = has_several_ || mesh->is_maximal() || (found_ != nullptr && !found_->same_devices(*mesh));
    } else if (mesh->is_maximal()) {
      if (const OpId op = module_.value(value).op) refuse_op(op);
      refuse("a value cannot be placed on a single device", mesh->text(), "shard or replicate it over the mesh", value);
    }
    if (found_ == nullptr) {
      found_ = mesh;
    } else if (several_ == Several::kRefused && !found_->same_devices(*mesh)) {
      if (!are_over_same_devices(*found_, *mesh)) {
        refuse("all shardings must be of meshes over the same devices",
               str(found_->reference(), " ", found_->text(), " and ", mesh->reference(), " ", mesh->text()),
               "give both as many devices, or use one of them", value);
      }
      // By declaration, so that the mesh does not depend on which value is annotated first.
      if (is_declared_before(*mesh, *found_)) found_ = mesh;
    }
  }

  bool is_declared_before(const Mesh& a, const Mesh& b) const {
    for (const MeshPtr& mesh : module_.meshes) {
      if (mesh->same_devices(b)) return false;
      if (mesh->same_devices(a)) return true;
    }
    return false;
  }

  // JAX puts the results of callbacks on one device: what matters to the user is that the callback cannot run.
  void refuse_op(OpId id) {
    const OpView op(module_, id);
    if (op.def().verify_runnable != nullptr) located(module_, id, [&] { op.def().verify_runnable(op); });
  }

  [[noreturn]] void refuse(std::string_view must_hold, const std::string& got, std::string_view way_out,
                           ValueId value) {
    fail_at<ShardingError>(module_, loc_of(module_, value), error_message("sharding", must_hold, got, way_out));
  }

  const Module& module_;
  Several several_;
  bool has_several_ = false;
  MeshPtr found_;
  ShardingId last_;
};

MeshPtr first_declared(const Module& module) {
  for (const MeshPtr& mesh : module.meshes) {
    if (!mesh->is_empty() && !mesh->is_maximal()) return mesh;
  }
  return nullptr;
}

}  // namespace

MeshPtr main_mesh(const Module& module) {
  MeshFinder finder(module, MeshFinder::Several::kRefused);
  finder.see_main();
  finder.see_inner();
  return finder.found();
}

MeshPtr program_mesh(const Module& module) {
  MeshPtr mesh = main_mesh(module);
  return mesh != nullptr ? mesh : first_declared(module);
}

MeshPtr only_mesh(const Module& module) {
  MeshFinder finder(module, MeshFinder::Several::kNoted);
  finder.see_main();
  // found() is null for several meshes: a value that nothing shards is on none of them in particular.
  return finder.has_several() || finder.found() != nullptr ? finder.found() : first_declared(module);
}

}  // namespace shardwise
