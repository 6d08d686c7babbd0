// SPDX-License-Identifier: Apache-2.0
//
// The method of ops that read places of a sharded dim: the device that has a row gives it, and the others give the exact
// neutral element of a sum there. The result is unreduced:
//
//   x[i] of 64 rows on x=8      seven devices have -0 and one has the row: its bits are what the others receive
#pragma once

#include <string_view>

#include "shardwise/ir/op_def.h"

namespace shardwise {

inline constexpr std::string_view kOwnedRows = "owned rows";

// Whether the op was assigned this method and moves elements. Then one device has each element of a result that is
// unreduced, if no operand was.
bool reads_owned_rows(const OpView& op);

}  // namespace shardwise
