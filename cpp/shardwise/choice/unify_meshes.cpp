// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/unify_meshes.h"

#include "shardwise/mesh/other_mesh.h"
#include "shardwise/propagation/map_shardings.h"
#include "shardwise/propagation/program_mesh.h"

namespace shardwise {

void unify_meshes(Module& module) {
  const MeshPtr main = main_mesh(module);
  if (main == nullptr) return;
  map_shardings(module, [&](const TensorSharding& sharding) {
    const MeshPtr& mesh = sharding.mesh;
    const bool is_of_main = mesh == nullptr || mesh == main || mesh->is_empty() || mesh->same_devices(*main);
    return is_of_main ? sharding : on_mesh(sharding, main).value_or(sharding);
  });
}

}  // namespace shardwise
