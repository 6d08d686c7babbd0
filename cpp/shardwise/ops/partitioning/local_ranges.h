// SPDX-License-Identifier: Apache-2.0
//
// The attributes of a shard's op that reads a dim at another place, from the range of the rule:
//
//   slice [1:8:2], 8 rows on x = 2               2 rows of the result: places_read [1, 4), the local slice is [1:4:2]
//   pad interior = 1, high = 1, 4 rows on x = 2  4 rows of the result from 2 rows: padding_after 1
#pragma once

#include "shardwise/ir/rule/range.h"

namespace shardwise {

// The places that the first `rows` rows of the result read, in the operand with its holes; not cut off at its ends.
Interval places_read(const Range& range, int64_t rows);
// The padding that a block of the operand needs at its end, negative to cut rows off, so that `rows` rows come out.
int64_t padding_after(const Range& range, int64_t rows, int64_t block);

}  // namespace shardwise
