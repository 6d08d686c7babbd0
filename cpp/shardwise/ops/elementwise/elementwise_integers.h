// SPDX-License-Identifier: Apache-2.0
//
// What bounds of the operands tell about integer results whose elements are not known (OpDef::integers):
//
//   clamp 0, %i, 9                 [0, 9]
//   compare LT, %i, 0              false, if %i is in [0, 9]
//   select %is_negative, %j, %i    what is known of %i, if %is_negative is false everywhere
#pragma once

#include "shardwise/ir/known_integers.h"

namespace shardwise {

KnownIntegers integers_of_clamp(IntegersContext& context);
KnownIntegers integers_of_compare(IntegersContext& context);
KnownIntegers integers_of_select(IntegersContext& context);

}  // namespace shardwise
