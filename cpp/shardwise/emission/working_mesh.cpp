// SPDX-License-Identifier: Apache-2.0
#include "shardwise/emission/working_mesh.h"

namespace shardwise {

const MeshPtr& working_mesh(const Context& context, std::span<const PlacementId> tensors) {
  static const MeshPtr kNone;
  for (const PlacementId id : tensors) {
    if (id && !context.placement(id).is_fully_replicated()) return context.placement(id).mesh;
  }
  return tensors.empty() || !tensors[0] ? kNone : context.placement(tensors[0]).mesh;
}

}  // namespace shardwise
