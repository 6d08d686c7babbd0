// SPDX-License-Identifier: Apache-2.0
//
// Exchanges of exchanges: what one op has received only for the next one is sent to where that needs it, at once
// (partition/exchanges/merge_exchanges.h).
//
//   %1 = slice %x [7:8]          by an exchange      sends nothing of its own
//   %2 = concatenate %1, …       by an exchange      64 KiB
#pragma once

#include <optional>

#include "shardwise/choice/choice.h"
#include "shardwise/ir/module.h"

namespace shardwise {

bool is_exchange(const OpChoice& chosen);  // and nothing else, as of a slice or a concatenation

// The operand that is the only use of an op's only result, if the two are in one region.
std::optional<Use> mergeable_use(Module& module, OpId op);

// Whether the op sends nothing of its own in this choice.
bool is_merged(Module& module, const Choice& choice, OpId op);

}  // namespace shardwise
