// SPDX-License-Identifier: Apache-2.0
//
// Which ops an OpDef::fold may skip or replace.
#pragma once

#include <optional>
#include <string_view>

#include "shardwise/ir/module.h"
#include "shardwise/ir/rewrite/reads.h"

namespace shardwise {

// Whether the op has its own attributes and no others: a sharding rule of the user numbers the dims of this very op.
// A tensor without elements has no rule as a reshape, but one as a broadcast.
inline bool may_change(const OpView& op, size_t own_attributes) {
  return op.attrs().entries().size() == own_attributes && op.result_type().size() != 0;
}

// The op of this name that makes the value. None if its user must not skip it.
inline std::optional<OpView> skippable(const Module& module, ValueId value, std::string_view name,
                                       size_t own_attributes) {
  const std::optional<OpView> made = made_by(module, value, name);
  // A sharding on the value between two ops is an annotation of the user, which must not vanish.
  if (!made || module.value(value).sharding || !may_change(*made, own_attributes)) return std::nullopt;
  return made;
}

}  // namespace shardwise
