// SPDX-License-Identifier: Apache-2.0
//
// Warnings of passes become Python warnings, of the class ShardingWarning, at the user's line:
//
//   warn(program.warnings);     // train.py:31: ShardingWarning: sharding_group 5: members should be annotated alike, …
#pragma once

#include <string>
#include <vector>

namespace shardwise {

// Throws what a filter of the user's makes of a warning. Needs the GIL.
void warn(const std::vector<std::string>& warnings);

}  // namespace shardwise
