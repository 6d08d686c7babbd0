// SPDX-License-Identifier: Apache-2.0
//
// The time of a group of ops that run as one kernel (fusion.h): one launch, the operations of all of them, and the memory
// at their border.
//
//   group {dot_general %x, %w ; add ; tanh}  with %x, %w tensor<1024x1024xbf16> and a bias of 1024 elements
//     matrix          2·1024³ operations
//     vector          1024² additions
//     transcendental  1024² functions
//     memory          %x, %w, the bias and the result of tanh: 2·(3·1024² + 1024) bytes
#pragma once

#include <functional>

#include "shardwise/analysis/fusion.h"
#include "shardwise/analysis/op_time.h"

namespace shardwise {

// `type_of`: the type of a value on one device, padding included. Of a global module: by its placement.
using LocalTypeOf = std::function<TypeId(ValueId)>;
OpTime group_time(const Module& module, const FusionGroup& group, const LocalTypeOf& type_of, const Hardware& hardware);
OpTime group_time(const Module& module, const FusionGroup& group,
                  const Hardware& hardware);  // on the values' own types

}  // namespace shardwise
