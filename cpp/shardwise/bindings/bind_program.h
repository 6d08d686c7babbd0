// SPDX-License-Identifier: Apache-2.0
//
// Read-only views of programs in Python: ops, values, regions, functions, types, placements. A view keeps its program
// alive. Views of one thing are equal and have one hash.
//
//   for op in module.ops:
//       op.name, op.operands[0].type.shape, op.attributes["dimensions"], op.results[0].placement
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <pybind11/pybind11.h>

#include "shardwise/ir/module.h"

namespace shardwise {

// Every op, those of its regions right after their owner.
std::vector<OpId> ops_in_text_order(const Module& module);

std::optional<TensorSharding> optional_sharding(const Module& module, ShardingId id);
std::vector<std::optional<TensorSharding>> optional_shardings(const Module& module, std::span<const ShardingId> ids);

// The view of a value; the program does not change.
pybind11::object value_view(const std::shared_ptr<const Module>& module, ValueId value);

// Registers the classes, and adds the properties of Module that return them. Called by bind_ir.
void bind_program(pybind11::module_& module, pybind11::class_<Module, std::shared_ptr<Module>>& modules);

}  // namespace shardwise
