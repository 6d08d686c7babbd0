// SPDX-License-Identifier: Apache-2.0
//
// Scatters to rows that are known, each once, by ops that move rows to fixed places:
//
//   x.at[[1, 0, 3, 2, …]].add(u)       x + u[[1, 0, 3, 2, …]]: all rows (known_rows.h)
//   x.at[0:64:2].set(u)                u with a row between two of its own, where the row is one of these; else x
#pragma once

#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

// The scatter `op`, whose only index component names rows[i] of its dim for row i of its updates. No value, and no op, where
// rows have no such form.
ValueId build_known_writes(Builder& builder, const OpView& op, const std::vector<int64_t>& rows);
// The scatter `op` of one window that begins at `start` of the dim of its only index component, and has all of the others:
//
//   x.at[1:-1].add(u)                  x + u between two rows of padding, where the row is in the window; else x
ValueId build_known_window(Builder& builder, const OpView& op, int64_t start);

}  // namespace shardwise
