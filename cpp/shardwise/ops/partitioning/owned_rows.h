// SPDX-License-Identifier: Apache-2.0
//
// The method of ops that read places of a sharded dim: the device that has a row gives it, and the others give the
// exact neutral element of a sum there. The result is unreduced:
//
//   x[i] of 64 rows on x=8      seven devices have -0 and one has the row: its bits are what the others receive
//
// Such a value is owned (mesh/placement.h), as are copies of its elements, until it is reduced.
#pragma once

#include <string_view>

namespace shardwise {

inline constexpr std::string_view kOwnedRows = "owned rows";

}  // namespace shardwise
