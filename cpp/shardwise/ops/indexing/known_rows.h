// SPDX-License-Identifier: Apache-2.0
//
// Rows of a tensor at places that are known, by ops that move rows to fixed places:
//
//   1, 2, 3            slice [1:4]
//   7, 0, 1, …, 6      two slices, concatenated
//   1, 0, 3, 2, …      reshape to blocks of 2, reverse each of them, and reshape back
//   0, 0, 1, 1, …      broadcast
//
// So a gather at such places is moved as cheaply as the slice that a user could have written.
#pragma once

#include <vector>

#include "shardwise/ir/builder.h"

namespace shardwise {

// `operand` with these rows along `dim`. No value, and no op, for rows without such a form.
ValueId build_known_rows(Builder& builder, ValueId operand, size_t dim, const std::vector<int64_t>& rows);

}  // namespace shardwise
