// SPDX-License-Identifier: Apache-2.0
//
// An exchange where all shards are at hand: views, if each tile of the result is part of one shard, else one copy.
#pragma once

#include <span>

#include "shardwise/mesh/digits.h"
#include "shardwise/mesh/exchange.h"
#include "shardwise/runtime/shards.h"

namespace shardwise {

// The digits along which the result varies, from those of the operands, the fill included.
DigitSet varying_after_exchange(const ExchangeMap& map, const Digits& digits, std::span<const DigitSet> operands);

Shards exchanged(std::span<const Shards> operands, const Shards* fill, const ExchangeMap& map);

}  // namespace shardwise
