// SPDX-License-Identifier: Apache-2.0
#include "shardwise/shard_update/sharded_state.h"

#include <utility>

#include "shardwise/base/text.h"
#include "shardwise/ir/value_names.h"
#include "shardwise/mesh/sharding_text.h"
#include "shardwise/shard_update/update_layout.h"

namespace shardwise {

ShardedState whole_state(const Module& module, ValueId state, const TensorSharding& own, std::string reason) {
  const TensorType& type = module.type(state);
  const LocId loc = loc_of(module, state);
  return {.name = module.context().name_of(loc),
          .type = type.text(),
          .layout = short_text(own),
          .shard_bytes = shard_bytes_of(type, own),
          .reason = std::move(reason),
          .location = module.context().location_text(loc)};
}

std::string obstacle_text(const Module& module, OpId obstacle) {
  const OpView op(module, obstacle);
  const std::string place = module.context().location_text(op.loc());
  const std::string_view name = op.name().substr(op.name().find('.') + 1);
  return str("its update computes ", name, place.empty() ? "" : " at ", place,
             ", which is neither elementwise nor a norm");
}

}  // namespace shardwise
