// SPDX-License-Identifier: Apache-2.0
//
// A suggested annotation for a value that nothing splits.
//
//   sdy.mesh @mesh = <["x"=4, "y"=2]>
//   %0 = tanh %arg0 : tensor<8x16xf32>
//
//   suggested_sharding(module, %0, [{}, {}], none)                       [{}, {"x"}]: the longest dim, the largest axis
//   … where the annotation is <[{?}, {?}], replicated={"x"}>             [{}, {"y"}], replicated={"x"}
//   … where the annotation is <[{}, {}], replicated={"x", "y"}>          [{}, {"x"}], replicated={"y"}
//   … inside a manual computation over "x"                               [{}, {"y"}]
#pragma once

#include <optional>

#include "shardwise/ir/module.h"

namespace shardwise {

// `now` is the value's sharding, `annotation` its annotation, or null. Their replicated and unreduced axes are not used
// for the split, unless no other axis is left: then one of the replicated ones is. None for a value without a dim to
// split or an axis to split it over.
std::optional<TensorSharding> suggested_sharding(const Module& module, ValueId value, const TensorSharding& now,
                                                 const TensorSharding* annotation);

}  // namespace shardwise
