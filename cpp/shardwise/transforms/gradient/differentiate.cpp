// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/gradient/differentiate.h"

#include <algorithm>
#include <unordered_set>

#include "shardwise/base/error.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/graph_copy.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/build/constants.h"
#include "shardwise/transforms/batch/manual_regions.h"
#include "shardwise/transforms/gradient/differentiate_regions.h"
#include "shardwise/transforms/gradient/reverse_walk.h"
#include "shardwise/transforms/inlined_ops.h"

namespace shardwise {
namespace {

// Puts the decomposition of an op without its own gradient in front of it, and makes later ops read its results. Calls
// and inline regions are expanded too; `simplify` removes unused ops. The op itself stays: its results may be known
// outside.
class InPlaceExpansion {
 public:
  InPlaceExpansion(Builder& builder, std::span<const ValueId> wrt)
      : builder_(builder), module_(builder.module()), wrt_(wrt), active_(wrt.begin(), wrt.end()), expanded_(module_) {}

  void run() {
    const std::vector<OpId> ops = module_.region(builder_.region()).ops;
    if (std::ranges::none_of(ops, [&](OpId id) { return is_expanded(id); })) return;
    for (const OpId id : ops) visit(id);
    module_.region(builder_.region()).ops = std::move(kept_);
  }

  const Redirection& expanded() const { return expanded_; }

 private:
  bool has_no_vjp(OpId id) const { return module_.op(id).def->vjp == nullptr; }
  bool is_expanded_inline(OpId id) const {
    return is_inlined(module_, id) && !is_checkpoint(module_, id) && !has_given_derivative(module_, id);
  }
  bool is_manual(OpId id) const { return module_.op(id).def->regions == Regions::kManual; }
  bool is_expanded(OpId id) const { return has_no_vjp(id) || is_expanded_inline(id) || is_manual(id); }

  // No cotangent flows through its results.
  bool is_variable(OpId id) const {
    return std::ranges::any_of(wrt_, [&](ValueId value) { return module_.value(value).op == id; });
  }

  void visit(OpId id) {
    // First, so that the op reads the results of ops that were expanded before it.
    expanded_.apply(id);
    const bool is_active = reads_any(module_, id, [&](ValueId value) { return active_.contains(value); });
    const bool is_replaced = (is_expanded_inline(id) || is_manual(id)) && !is_variable(id);
    if (is_active && (is_replaced || has_no_vjp(id))) located(module_, id, [&] { expand(id); });
    if (is_active && is_replaced) return;
    // Results of an expanded op are not marked: later ops read those of its expansion, which `visit` marked.
    if (is_active && !has_no_vjp(id)) {
      for (const ValueId result : results_of(module_, id)) active_.insert(result);
    }
    kept_.push_back(id);
  }

  // Visits the ops that make it up in place of the op.
  void expand(OpId id) {
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

  Builder& builder_;
  Module& module_;
  std::span<const ValueId> wrt_;
  std::unordered_set<ValueId> active_;  // they depend on wrt
  Redirection expanded_;                // results of expanded ops
  std::vector<OpId> kept_;              // of the region, in order
};

}  // namespace

Gradients append_vjp_without_zeros(Builder& builder, std::span<const ValueId> outputs,
                                   std::span<const ValueId> cotangents, std::span<const ValueId> wrt) {
  check_internal(outputs.size() == cotangents.size(), "one cotangent per output");
  InPlaceExpansion expansion(builder, wrt);
  expansion.run();
  ReverseWalk walk(builder, wrt);
  for (size_t i = 0; i < outputs.size(); ++i) {
    // The caller names the output of the expanded op, which no cotangent flows into any more.
    if (cotangents[i]) walk.seed(expansion.expanded()(outputs[i]), cotangents[i]);
  }
  walk.run();
  Gradients gradients{.values = {}, .replaced = walk.replaced()};
  for (const ValueId value : wrt) gradients.values.push_back(walk.cotangent(value));
  for (const auto& [from, to] : expansion.expanded().targets()) gradients.replaced.add(from, to);
  return gradients;
}

Gradients append_vjp(Builder& builder, std::span<const ValueId> outputs, std::span<const ValueId> cotangents,
                     std::span<const ValueId> wrt) {
  Gradients gradients = append_vjp_without_zeros(builder, outputs, cotangents, wrt);
  for (size_t i = 0; i < wrt.size(); ++i) {
    if (!gradients.values[i]) gradients.values[i] = build_zeros(builder, builder.module().type(wrt[i]));
  }
  return gradients;
}

}  // namespace shardwise
