// SPDX-License-Identifier: Apache-2.0
#include "shardwise/choice/greedy/accumulators.h"

#include <algorithm>
#include <optional>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/ops/control/loop_parts.h"

namespace shardwise {
namespace {

// Whether the op distributes over the reductions of some reducer.
bool is_linear(const ProgramLinearity& linearity, const OpView& op) {
  const OpDef& def = op.def();
  const bool has_code = !op.regions().empty() && def.regions != Regions::kCombiner;
  return op.result_count() == 1 && !has_code && def.linear.kind != Linear::kNone && linearity.is_linear(op.id());
}

// An annotation that asks for a sum of parts leaves one as it is.
bool asks_for_parts(const Module& module, const OpView& op) {
  if (!op.def().traits.annotates()) return false;
  const ShardingId sharding = module.value(op.result()).sharding;
  return sharding && !module.context().sharding(sharding).unreduced.empty();
}

// The ops that depend on one carry.
class Dependents {
 public:
  Dependents(Module& module, const ProgramLinearity& linearity, const LoopParts& loop, uint32_t carry)
      : module_(module), linearity_(linearity), loop_(loop), body_(loop.body), carry_(carry) {}

  std::optional<Accumulator> find() {
    const ValueId argument = loop_.carries[carry_].argument;
    // All devices must take the same number of trips, which parts of a sum cannot decide.
    if (!module_.uses(loop_.carries[carry_].tested).empty()) return std::nullopt;
    if (is_relayed(argument)) return Accumulator{carry_, {}};
    open_.push_back(argument);
    while (!open_.empty()) {
      const ValueId value = open_.back();
      open_.pop_back();
      for (const Use use : module_.uses(value)) {
        if (!follow(use)) return std::nullopt;
      }
    }
    // A carry that is returned unchanged has no addends.
    if (!is_returned_ || ops_.empty()) return std::nullopt;
    return Accumulator{carry_, {ops_.begin(), ops_.end()}};
  }

 private:
  bool is_returned_as_carry(const Use& use) const { return use.region == body_ && use.index == carry_; }

  bool is_relayed(ValueId argument) const {
    const auto use = only_use(module_, argument);
    if (!use || !use->op || module_.op(use->op).parent != body_ || module_.op(use->op).def->regions != Regions::kLoop)
      return false;
    const auto next = only_use(module_, module_.result(use->op, use->index));
    return next && !next->op && is_returned_as_carry(*next);
  }

  // Whether the user of a dependent value is one more, or the end of the body.
  bool follow(const Use& use) {
    if (!use.op) {
      is_returned_ = true;
      // If the body also returned it as another carry, that carry would need it reduced.
      return is_returned_as_carry(use);
    }
    const Operation& op = module_.op(use.op);
    // An op in an inner region may run any number of times in one trip.
    if (op.parent != body_) return false;
    const OpView user(module_, use.op);
    if (!is_linear(linearity_, user) && !asks_for_parts(module_, user)) return false;
    if (ops_.insert(use.op).second) open_.push_back(module_.result(use.op));
    return true;
  }

  Module& module_;
  const ProgramLinearity& linearity_;
  const LoopParts& loop_;
  RegionId body_;
  uint32_t carry_;
  std::vector<ValueId> open_;
  std::unordered_set<OpId> ops_;
  bool is_returned_ = false;
};

}  // namespace

std::vector<Accumulator> find_accumulators(Module& module, const ProgramLinearity& linearity, const OpView& loop) {
  const LoopParts parts = loop_parts(loop);
  std::vector<Accumulator> found;
  std::unordered_map<OpId, int> owners;
  for (uint32_t carry = 0; carry < parts.carries.size(); ++carry) {
    auto accumulator = Dependents(module, linearity, parts, carry).find();
    if (!accumulator) continue;
    for (const OpId op : accumulator->ops) ++owners[op];
    found.push_back(std::move(*accumulator));
  }
  // add %a, %b of two carries: the placements of both would have to be chosen together.
  std::erase_if(found, [&](const Accumulator& accumulator) {
    return std::ranges::any_of(accumulator.ops, [&](OpId op) { return owners[op] > 1; });
  });
  if (owners.empty()) return found;
  std::unordered_map<OpId, size_t> places;
  const std::vector<OpId>& ops = module.region(parts.body).ops;
  for (size_t i = 0; i < ops.size(); ++i) places[ops[i]] = i;
  for (Accumulator& accumulator : found) {
    std::ranges::sort(accumulator.ops, {}, [&](OpId op) { return places.at(op); });
  }
  return found;
}

std::vector<ValueId> find_deferred(Module& module, const ProgramLinearity& linearity, const OpView& loop,
                                   const std::vector<Accumulator>& accumulators) {
  std::unordered_set<OpId> deferring;
  for (const Accumulator& accumulator : accumulators) {
    deferring.insert(accumulator.ops.begin(), accumulator.ops.end());
  }
  std::vector<ValueId> deferred;
  if (deferring.empty()) return deferred;
  const auto only_reaches_them = [&](ValueId value) {
    bool is_used = false;
    for (const Use use : module.uses(value)) {
      if (!use.op || !deferring.contains(use.op)) return false;
      is_used = true;
    }
    return is_used;
  };
  // Users before makers, so that one walk follows chains: %2 = dot, %3 = transpose %2, add %dw, %3 defers both.
  for (const OpId id : module.region(loop_parts(loop).body).ops | std::views::reverse) {
    if (deferring.contains(id)) continue;
    for (const ValueId result : results_of(module, id)) {
      if (!only_reaches_them(result)) continue;
      deferred.push_back(result);
      if (is_linear(linearity, OpView(module, id))) deferring.insert(id);
    }
  }
  return deferred;
}

}  // namespace shardwise
