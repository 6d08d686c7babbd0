// SPDX-License-Identifier: Apache-2.0
//
// What to write about a value that nothing splits.
//
//   sdy.mesh @mesh = <["x"=4, "y"=2]>
//   %0 = tanh %arg0 : tensor<8x16xf32>                            nothing splits it
//
//   suggested_sharding(module, %0, [{}, {}], none)               [{}, {"x"}]: the longest dim over the largest axis
//   … of a value said to be <[{?}, {?}], replicated={"x"}>        [{}, {"y"}], replicated={"x"}
//   … said to be <[{}, {}], replicated={"x", "y"}>                [{}, {"x"}], replicated={"y"}
//   … inside of a manual computation over "x"                     [{}, {"y"}]
#pragma once

#include <optional>

#include "shardwise/ir/module.h"

namespace shardwise {

// `now` is the value's sharding, `said` the one that its annotation gives it, or null; of those the replicated and
// unreduced axes are taken, and of what was said they are kept; where no other axis is left, one is replicated no more.
// Nothing for a value without a dim to split or an axis
// to split it over.
std::optional<TensorSharding> suggested_sharding(const Module& module, ValueId value, const TensorSharding& now,
                                                 const TensorSharding* said);

}  // namespace shardwise
