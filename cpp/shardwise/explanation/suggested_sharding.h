// SPDX-License-Identifier: Apache-2.0
//
// Suggests an annotation for an unsharded value.
//
//   sdy.mesh @mesh = <["x"=4, "y"=2]>
//   %0 = tanh %arg0 : tensor<8x16xf32>                            unsharded
//
//   suggested_sharding(module, %0, [{}, {}], none)               [{}, {"x"}]: the longest dim over the largest axis
//   … annotated as <[{?}, {?}], replicated={"x"}>                [{}, {"y"}], replicated={"x"}
//   … annotated as <[{}, {}], replicated={"x", "y"}>              [{}, {"x"}], replicated={"y"}
//   … inside a manual computation over "x"                       [{}, {"y"}]
#pragma once

#include <optional>

#include "shardwise/ir/module.h"

namespace shardwise {

// `now` is the value's sharding; `annotation` may be null. The replicated and unreduced axes of both count as used, and
// the annotation's are kept. When no other axis is left, one axis stops being replicated. Returns none when
// the value has no dim that can be sharded, or no axis is free.
std::optional<TensorSharding> suggested_sharding(const Module& module, ValueId value, const TensorSharding& now,
                                                 const TensorSharding* annotation);

}  // namespace shardwise
