// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/gradient/in_place_expansion.h"

#include <algorithm>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/located.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/transforms/batch/manual_regions.h"
#include "shardwise/transforms/gradient/differentiate_regions.h"
#include "shardwise/transforms/inlined_ops.h"

namespace shardwise {

InPlaceExpansion::InPlaceExpansion(Builder& builder, std::span<const ValueId> wrt)
    : builder_(builder), module_(builder.module()), wrt_(wrt), active_(wrt.begin(), wrt.end()), expanded_(module_) {}

void InPlaceExpansion::run() {
  const std::vector<OpId> ops = module_.region(builder_.region()).ops;
  if (std::ranges::none_of(ops, [&](OpId id) { return is_expanded(id); })) return;
  for (const OpId id : ops) visit(id);
  module_.region(builder_.region()).ops = std::move(kept_);
}

bool InPlaceExpansion::is_differentiated_as_ops(OpId id) const {
  return module_.op(id).def->is_differentiated_as_ops();
}

bool InPlaceExpansion::is_expanded_inline(OpId id) const {
  return is_inlined(module_, id) && !is_checkpoint(module_, id) && !has_given_derivative(module_, id);
}

bool InPlaceExpansion::is_manual(OpId id) const { return module_.op(id).def->regions == Regions::kManual; }

// No derivative flows through its results.
bool InPlaceExpansion::is_variable(OpId id) const {
  return std::ranges::any_of(wrt_, [&](ValueId value) { return module_.value(value).op == id; });
}

void InPlaceExpansion::visit(OpId id) {
  // First, so that the op reads the results of ops that were expanded before it.
  expanded_.apply(id);
  const bool is_active = reads_any(module_, id, [&](ValueId value) { return active_.contains(value); });
  const bool is_replaced = (is_expanded_inline(id) || is_manual(id)) && !is_variable(id);
  if (is_active && (is_replaced || is_differentiated_as_ops(id))) located(module_, id, [&] { expand(id); });
  if (is_active && is_replaced) return;
  // Results of an expanded op are not marked: later ops read those of its expansion, which `visit` marked.
  if (is_active && !is_differentiated_as_ops(id)) {
    for (const ValueId result : results_of(module_, id)) active_.insert(result);
  }
  kept_.push_back(id);
}

// Visits the ops that make it up in place of the op.
void InPlaceExpansion::expand(OpId id) {
  const size_t known = module_.region(builder_.region()).ops.size();
  const std::vector<ValueId> results = append_expansion(builder_, OpView(module_, id), "differentiated");
  std::vector<OpId>& ops = module_.region(builder_.region()).ops;
  const std::vector<OpId> made(ops.begin() + static_cast<std::ptrdiff_t>(known), ops.end());
  // Appended at the end, but wanted at the place of the op: `visit` moves them to kept_ one by one.
  ops.resize(known);
  for (const OpId inner : made) visit(inner);
  for (uint32_t i = 0; i < results.size(); ++i) {
    const ValueId result = module_.result(id, i);
    if (std::ranges::find(wrt_, result) == wrt_.end()) expanded_.add(result, expanded_(results[i]));
  }
}

}  // namespace shardwise
