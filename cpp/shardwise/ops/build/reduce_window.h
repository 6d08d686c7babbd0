// SPDX-License-Identifier: Apache-2.0
//
// Creates reduce_window by a known reducer, and its prefix form.
#pragma once

#include "shardwise/ir/builder.h"
#include "shardwise/ops/shared/windows.h"

namespace shardwise {

// No init means the neutral element. A window that is the identity, without init, gives the operand back.
ValueId build_reduce_window(Builder& builder, ValueId operand, ValueId init, Reducer reducer, const Window& window);
// The inclusive prefixes along one dim.
ValueId build_prefix(Builder& builder, ValueId operand, Reducer reducer, int64_t dim, Prefix prefix);
// The init values of all windows combined: reduce_window of neutral elements, with padding and holes.
ValueId build_init_share(Builder& builder, ValueId init, Reducer reducer, const Window& window, DimSpan shape);

}  // namespace shardwise
