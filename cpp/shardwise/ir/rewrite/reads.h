// SPDX-License-Identifier: Apache-2.0
//
// The values that an op reads: its operands and the captures of its regions. Values that a region makes itself are
// visited, too; they are never defined where the op is.
//
//   %1 = case %i { %0 = tanh %x; return %0 }        visits %i, %x, %0
//
// The captures of a region are the values from around that it reads: %x.
#pragma once

#include <algorithm>
#include <optional>
#include <ranges>
#include <span>
#include <string_view>
#include <vector>

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

template <class Test>
bool reads_any(const Module& module, OpId op, Test&& test) {
  bool found = false;
  visit_reads(module, op, [&](ValueId value) { found = found || test(value); });
  return found;
}

inline auto results_of(const Module& module, OpId op) {
  const uint32_t first = module.op(op).first_result, count = module.op(op).result_count;
  return std::views::iota(first, first + count) | std::views::transform([](uint32_t index) { return ValueId{index}; });
}

inline std::vector<ValueId> list_of_results(const Module& module, OpId op) {
  const auto results = results_of(module, op);
  return {results.begin(), results.end()};
}

template <class Test>
bool any_result(const Module& module, OpId op, Test&& test) {
  return std::ranges::any_of(results_of(module, op), test);
}

inline std::vector<TypeId> types_of(const Module& module, std::span<const ValueId> values) {
  std::vector<TypeId> types;
  for (const ValueId value : values) types.push_back(module.value(value).type);
  return types;
}

// The op that makes the value, if it has this name.
inline std::optional<OpView> made_by(const Module& module, ValueId value, std::string_view name) {
  const OpId op = module.value(value).op;
  if (!op || OpView(module, op).name() != name) return std::nullopt;
  return OpView(module, op);
}

// The use of the value, if there is one and no other.
inline std::optional<Use> only_use(Module& module, ValueId value) {
  std::optional<Use> only;
  for (const Use use : module.uses(value)) {
    if (only) return std::nullopt;
    only = use;
  }
  return only;
}

// The region whose argument the value is, or that holds its op.
inline RegionId region_of(const Module& module, ValueId value) {
  const Value& known = module.value(value);
  return known.op ? module.op(known.op).parent : known.region;
}

// Whether the value belongs to the region, or to one inside it.
inline bool is_inside(const Module& module, ValueId value, RegionId region) {
  RegionId at = region_of(module, value);
  while (at && at != region) {
    const OpId owner = module.region(at).op;
    at = owner ? module.op(owner).parent : RegionId{};
  }
  return bool{at};
}

// Visits each use of a capture, in the order of the program: visit(value, op). The op is none where the region returns
// the value; it may be in a region inside, which returns it if the op has that region.
template <class Visit>
void visit_captures(const Module& module, RegionId region, Visit&& visit) {
  const auto visit_all = [&](std::span<const ValueId> values, OpId user) {
    for (const ValueId value : values) {
      if (!is_inside(module, value, region)) visit(value, user);
    }
  };
  walk(module, region, [&](OpId op) {
    visit_all(module.operands(op), op);
    for (const RegionId inner : module.regions(op)) visit_all(module.region(inner).results, op);
  });
  visit_all(module.region(region).results, {});
}

// Each capture once, in the order of the first uses.
std::vector<ValueId> captures_of(const Module& module, RegionId region);
std::vector<ValueId> captures_of(const Module& module, OpId op);  // of all its regions

}  // namespace shardwise
