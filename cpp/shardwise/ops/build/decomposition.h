// SPDX-License-Identifier: Apache-2.0
//
// The ops that an op consists of (OpDef::decompose), as transforms and regions of scalars need them.
#pragma once

#include <string_view>
#include <vector>

#include "shardwise/ir/builder.h"
#include "shardwise/ir/op_def.h"

namespace shardwise {

// Whether other ops take its place before it runs, because it has a decomposition and no kernel.
bool is_composed(const OpDef& def);

// Appends the ops to the builder's region. Returns the values of the op's results; nothing where the op cannot be
// decomposed (DecomposeContext).
std::vector<ValueId> append_decomposition(Builder& builder, const OpView& op);

// The UnsupportedError of an op that cannot be decomposed. `what` names the transform that needed it: "differentiated".
[[noreturn]] void refuse_to_decompose(const OpView& op, std::string_view what);

}  // namespace shardwise
