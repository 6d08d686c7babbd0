// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/unify_meshes.h"

#include <unordered_map>

#include "shardwise/mesh/other_mesh.h"
#include "shardwise/propagation/program_mesh.h"

namespace shardwise {
namespace {

class Unifier {
 public:
  Unifier(Context& context, MeshPtr main) : context_(context), main_(std::move(main)) {}

  void unify(ShardingId& id) {
    // Most values in a row have one sharding.
    if (!id || id == last_) return;
    const MeshPtr& mesh = context_.sharding(id).mesh;
    if (mesh == nullptr || mesh == main_ || mesh->is_empty() || mesh->same_devices(*main_)) {
      last_ = id;
      return;
    }
    const auto [found, is_new] = known_.try_emplace(id, id);
    if (is_new) {
      // Once for each sharding, because on_mesh looks at all devices.
      if (auto unified = on_mesh(context_.sharding(id), main_)) found->second = context_.intern(std::move(*unified));
    }
    id = found->second;
  }

 private:
  Context& context_;
  const MeshPtr main_;
  ShardingId last_;  // is of the main mesh
  std::unordered_map<ShardingId, ShardingId> known_;
};

}  // namespace

void unify_meshes(Module& module) {
  const MeshPtr main = main_mesh(module);
  if (main == nullptr) return;
  Unifier unifier(module.context(), main);
  for (uint32_t i = 1; i < module.value_count(); ++i) unifier.unify(module.value(ValueId{i}).sharding);
  for (Function& function : module.functions) {
    for (ShardingId& sharding : function.result_shardings) unifier.unify(sharding);
  }
}

}  // namespace shardwise
