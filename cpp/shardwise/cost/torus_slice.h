// SPDX-License-Identifier: Apache-2.0
//
// The slice of a torus that a number of units gets: the shape nearest to a cube that fits.
//
//   slice_shape({16, 16}, 32)         // {8, 4}
//   slice_shape({16, 20, 28}, 256)    // {8, 8, 4}
//   slice_shape({16, 16}, 256)        // {16, 16}: the whole torus
//   slice_shape({16, 16}, 17)         // {17}: no shape of so many units fits; they form one line
#pragma once

#include "shardwise/base/dims.h"

namespace shardwise {

// Major dim first, and larger dims first; the whole torus keeps the order of `torus`. 1 <= units <= product of `torus`.
Dims slice_shape(const Dims& torus, int64_t units);

}  // namespace shardwise
