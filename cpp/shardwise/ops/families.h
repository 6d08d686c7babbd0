// SPDX-License-Identifier: Apache-2.0
//
// The tables of the families that declare nothing else. Each .cpp file describes its family.
#pragma once

#include <span>

#include "shardwise/ir/op_def.h"

namespace shardwise {

std::span<const OpDef> shardy_collective_ops();
std::span<const OpDef> stablehlo_collective_ops();
std::span<const OpDef> dot_ops();
std::span<const OpDef> einsum_ops();
std::span<const OpDef> ragged_dot_ops();
std::span<const OpDef> chlo_constant_ops();
std::span<const OpDef> dynamic_shape_ops();
std::span<const OpDef> chlo_broadcast_ops();
std::span<const OpDef> complex_ops();
std::span<const OpDef> special_function_ops();
std::span<const OpDef> composed_gather_ops();
std::span<const OpDef> broadcast_ops();
std::span<const OpDef> linalg_ops();
std::span<const OpDef> rng_ops();
std::span<const OpDef> batch_norm_ops();

}  // namespace shardwise
