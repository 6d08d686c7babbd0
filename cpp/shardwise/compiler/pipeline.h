// SPDX-License-Identifier: Apache-2.0
//
// The passes from the traced program to the program of one device, in order:
//
//   for (const Pass& pass : pipeline()) std::cout << pass.name;    // inline_calls, simplify, propagate, assign, …
#pragma once

#include <span>

#include "shardwise/ir/pass.h"

namespace shardwise {

std::span<const Pass> pipeline();

}  // namespace shardwise
