// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/shared/local_ranges.h"

namespace shardwise {

Interval places_read(const Range& range, int64_t rows) {
  const int64_t spanned = (range.window - 1) * range.dilation + 1;
  return {range.offset, range.offset + (rows == 0 ? 0 : (rows - 1) * range.scale + spanned)};
}

int64_t padding_after(const Range& range, int64_t rows, int64_t block) {
  return places_read(range, rows).end - (block == 0 ? 0 : (block - 1) * range.holes + 1);
}

}  // namespace shardwise
