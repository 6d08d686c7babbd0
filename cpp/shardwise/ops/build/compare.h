// SPDX-License-Identifier: Apache-2.0
//
// Creates comparisons.
#pragma once

#include <string_view>

#include "shardwise/ir/builder.h"

namespace shardwise {

// `direction` is EQ, NE, LT, LE, GT or GE; `type`, if given, what the operands are compared as: FLOAT, SIGNED,
// UNSIGNED.
ValueId build_compare(Builder& builder, std::string_view direction, ValueId lhs, ValueId rhs,
                      std::string_view type = {});
// 1 where both are equal, else 0, in their own dtype.
ValueId build_equal_as_number(Builder& builder, ValueId lhs, ValueId rhs);

}  // namespace shardwise
