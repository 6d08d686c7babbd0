// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/choose.h"

#include "shardwise/choice/greedy/greedy_walk.h"
#include "shardwise/choice/unify_meshes.h"

namespace shardwise {

Module choose(Module module, PassContext& context) {
  // Before placements are read: afterwards, only real differences of meshes are left.
  unify_meshes(module);
  greedy_choice(module, context);
  return module;
}

}  // namespace shardwise
