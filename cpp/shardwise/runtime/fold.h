// SPDX-License-Identifier: Apache-2.0
//
// The arithmetic of all_reduce and reduce_scatter: one elementwise pass over the members of a group, in order.
//
//   fold(Reducer::kSum, {a, b, c})   // (a + b) + c, a new array
//
// Members have one shape and any strides. 16-bit floats accumulate in float32 and are rounded once at the end.
#pragma once

#include <span>

#include "shardwise/base/ndarray.h"
#include "shardwise/mesh/sharding.h"

namespace shardwise {

NdArray fold(Reducer reducer, std::span<const NdArray> members);

}  // namespace shardwise
