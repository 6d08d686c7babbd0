// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/simplify_loops.h"

#include <algorithm>
#include <vector>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ir/rewrite/rewrite.h"
#include "shardwise/ops/control/loop_parts.h"
#include "shardwise/ops/sharding/constraints.h"
#include "shardwise/transforms/live_carries.h"

namespace shardwise {
namespace {

class LoopSimplifier {
 public:
  explicit LoopSimplifier(Module& module)
      : module_(module), rewrite_(module), effects_(module, unused_constraints(module)) {}

  void run() {
    const auto is_loop = [&](OpId id) { return module_.op(id).def->regions == Regions::kLoop; };
    for (const OpId loop : find_ops<Order::kRegionsFirst>(module_, is_loop)) simplify(loop);
  }
  int64_t captured() const { return captured_; }
  int64_t dropped() const { return dropped_; }

 private:
  void simplify(OpId loop) {
    rewrite_.commit_inside(loop);  // the loops in it are new ops
    const LoopParts parts = loop_parts(OpView(module_, loop));
    if (std::ranges::all_of(parts.carries, &LoopParts::Carry::is_invariant)) return;  // it runs no trip or never ends
    std::vector<bool> kept(parts.carries.size(), true);
    for (size_t i = 0; i < kept.size(); ++i) {
      if (!parts.carries[i].is_invariant()) continue;
      // Before the live carries are looked for, because a captured value no longer reaches the loop as a carry.
      capture(loop, parts.carries[i]);
      kept[i] = false;
      ++captured_;
    }
    LiveCarries carries(module_, loop, effects_);
    carries.reach(loop_parts(OpView(module_, loop)).predicate);  // `capture` may have replaced it
    const std::vector<bool> live = carries.find();
    for (size_t i = 0; i < kept.size(); ++i) {
      if (!kept[i] || live[i]) continue;
      kept[i] = false;
      ++dropped_;
    }
    if (std::ranges::find(kept, false) != kept.end()) keep_carries(loop, kept);
  }

  void capture(OpId loop, const LoopParts::Carry& carry) {
    const ValueId value = before(loop, carry);
    for (const ValueId replaced : {carry.tested, carry.argument, carry.result}) rewrite_.replace(replaced, value);
  }

  // The initial value of a carry, with the sharding that propagation gave to the carry.
  ValueId before(OpId loop, const LoopParts::Carry& carry) {
    const ValueId init = carry.entry;
    const ShardingId had = module_.value(init).sharding;
    const ShardingId wanted = module_.value(carry.result).sharding;
    // Propagation may shard a carry and its initial value differently. The reshard then runs once, before the loop.
    if (wanted == had || is_whole(wanted, had)) return init;
    return rewrite_.insert(rewrite_.before(loop), module_.op(loop).loc, [&](Builder& builder) {
      return create_reshard(builder, init, module_.context().sharding(wanted));
    });
  }

  // A value without a sharding, or with one of no axes, is replicated.
  bool is_whole(ShardingId wanted, ShardingId had) const {
    const auto has_no_axes = [&](ShardingId id) { return !id || module_.context().sharding(id).is_fully_replicated(); };
    return has_no_axes(wanted) && has_no_axes(had);
  }

  // Replaces the loop by one with these carries. Nothing uses the others but the ops that compute them.
  void keep_carries(OpId loop, const std::vector<bool>& kept) {
    const auto keep = [&](std::vector<ValueId>& values) {
      size_t next = 0;
      std::erase_if(values, [&](ValueId) { return !kept[next++]; });
    };
    const std::vector<RegionId> regions(module_.regions(loop).begin(), module_.regions(loop).end());
    const RegionId body = loop_parts(OpView(module_, loop)).body;
    module_.drop_uses(loop);
    // The regions move to the new op. Erasing the old one must not take them along.
    module_.release_regions(loop);
    for (const RegionId region : regions) {
      std::vector<ValueId>& arguments = module_.region(region).arguments;
      keep(arguments);
      for (uint32_t i = 0; i < arguments.size(); ++i) module_.value(arguments[i]).index = i;
    }
    keep(module_.region(body).results);
    std::vector<ValueId> operands(module_.operands(loop).begin(), module_.operands(loop).end());
    keep(operands);
    const std::vector<TypeId> types = types_of(module_, operands);
    const Operation old = module_.op(loop);
    const OpId made = rewrite_.insert(rewrite_.before(loop), old.loc, [&](Builder& builder) {
      builder.set_loc(old.loc, old.origin);
      return builder.create_op(*old.def, operands, old.attrs, types, regions);
    });
    uint32_t next = 0;
    for (uint32_t i = 0; i < old.result_count; ++i) {
      if (kept[i]) rewrite_.hand_over(module_.result(loop, i), module_.result(made, next++));
    }
    rewrite_.erase(loop);
  }

  Module& module_;
  Rewrite rewrite_;
  Effects effects_;
  int64_t captured_ = 0, dropped_ = 0;
};

}  // namespace

Module simplify_loops(Module module, PassContext& context) {
  int64_t captured = 0, dropped = 0;
  {
    // In a block of its own: its Rewrite commits when it is destroyed, and dce needs the ops in place.
    LoopSimplifier simplifier(module);
    simplifier.run();
    captured = simplifier.captured();
    dropped = simplifier.dropped();
  }
  context.counters.add("simplify_loops.captured", captured);
  context.counters.add("simplify_loops.dropped", dropped);
  if (dropped != 0) dce(module, unused_constraints(module));
  return module;
}

}  // namespace shardwise
