// SPDX-License-Identifier: Apache-2.0
//
// Writes shardings of other meshes with the axes of the program's mesh, where these are digits of it:
//
//   @mesh x=4, y=2; @other p=2, q=4         <@other, [{"q"}, {}]>     <@mesh, [{"x":(2)2, "y"}, {}]>
//
// Shardings that have no digits there stay as they are.
#pragma once

#include "shardwise/ir/module.h"

namespace shardwise {

void unify_meshes(Module& module);

}  // namespace shardwise
