// SPDX-License-Identifier: Apache-2.0
//
// The cause of a reshard or a collective is an attribute, such as "operand 0 of tanh". It does not distinguish
// collectives: cse ignores it.
#pragma once

#include <string>

#include "shardwise/ir/module.h"

namespace shardwise {

void set_cause(Module& module, ValueId result, std::string cause);  // on the op of `result`
void copy_cause(Module& module, OpView from, ValueId result);       // no-op if `from` has no cause

}  // namespace shardwise
