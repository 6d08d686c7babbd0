// SPDX-License-Identifier: Apache-2.0
#include "shardwise/ops/partitioning/local_ranges.h"

namespace shardwise {

Interval places_read(const Range& range, int64_t rows) {
  // From the first tap of the first row to the last tap of the last one; a single row spans one window.
  const int64_t spanned = (range.window - 1) * range.dilation + 1;
  return {range.offset, range.offset + (rows == 0 ? 0 : (rows - 1) * range.scale + spanned)};
}

int64_t padding_after(const Range& range, int64_t rows, int64_t block) {
  // A block of b rows with holes between them spans (b - 1) * holes + 1 places.
  return places_read(range, rows).end - (block == 0 ? 0 : (block - 1) * range.holes + 1);
}

}  // namespace shardwise
