// SPDX-License-Identifier: Apache-2.0
//
// The method of ops that read places of a sharded dim: the device that has a row gives it, and the others give the
// exact neutral element of a sum there. The result is unreduced:
//
//   x[i] of 64 rows on x=8      seven devices have -0 and one has the row: its bits are what the others receive
//
// Such a value is *owned*, as are results of movement ops on it, until it is reduced.
#pragma once

#include <span>
#include <string_view>

#include "shardwise/ir/op_def.h"

namespace shardwise {

inline constexpr std::string_view kOwnedRows = "owned rows";

// An operand of an op, where it is computed.
struct AddendOperand {
  bool is_unreduced = false;
  bool is_owned = false;
};

// Whether the unreduced result of an op is owned; `method` is the one that it was assigned, or empty.
bool gives_owned(const OpDef& def, std::string_view method, std::span<const AddendOperand> operands);

}  // namespace shardwise
