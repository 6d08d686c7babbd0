// SPDX-License-Identifier: Apache-2.0
//
// Copies between two strided layouts of the same shape. Strides are in bytes, of any sign; 0 is allowed in the source.
//
//   // A transpose: {2, 3} row-major floats to the same matrix stored column-major.
//   copy_strided(4, {2, 3}, to, {4, 8}, from, {12, 4});
//
// Bits are moved, never interpreted. Dims are reordered and merged first, so the loops follow memory whatever the order
// of the dims: whole blocks use memcpy, transposes use tiles of one cache line per side, and other rows use xtensor.
// The two layouts must not overlap. `item_size` is 1, 2, 4 or 8. Addresses and strides that are not multiples of it
// make the copy slow.
#pragma once

#include <cstddef>

#include "shardwise/base/dims.h"

namespace shardwise {

void copy_strided(int64_t item_size, DimSpan shape, std::byte* to, DimSpan to_strides, const std::byte* from,
                  DimSpan from_strides);

}  // namespace shardwise
