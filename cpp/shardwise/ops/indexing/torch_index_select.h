// SPDX-License-Identifier: Apache-2.0
//
// stablehlo.torch_index_select: slices of a dim at the places of an index; takes no part in propagation.
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> torch_index_select_ops();

}  // namespace shardwise
