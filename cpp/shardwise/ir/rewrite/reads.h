// SPDX-License-Identifier: Apache-2.0
//
// The values that an op reads: its operands, and what its regions use. Values that a region makes itself are visited,
// too; they are never defined where the op is.
//
//   %1 = case %i { %0 = tanh %x; return %0 }        visits %i, %x, %0
#pragma once

#include "shardwise/ir/rewrite/walk.h"

namespace shardwise {

template <class Visit>
void visit_region_reads(const Module& module, RegionId region, Visit&& visit) {
  const auto visit_all = [&](std::span<const ValueId> values) {
    for (const ValueId value : values) visit(value);
  };
  const auto visit_results = [&](RegionId inner) { visit_all(module.region(inner).results); };
  walk(module, region, [&](OpId op) {
    visit_all(module.operands(op));
    for (const RegionId inner : module.regions(op)) visit_results(inner);
  });
  visit_results(region);
}

template <class Visit>
void visit_reads(const Module& module, OpId op, Visit&& visit) {
  for (const ValueId operand : module.operands(op)) visit(operand);
  for (const RegionId region : module.regions(op)) visit_region_reads(module, region, visit);
}

// The region whose argument the value is, or that holds its op.
inline RegionId region_of(const Module& module, ValueId value) {
  const Value& known = module.value(value);
  return known.op ? module.op(known.op).parent : known.region;
}

}  // namespace shardwise
