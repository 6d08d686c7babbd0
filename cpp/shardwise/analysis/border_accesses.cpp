// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/border_accesses.h"

#include <unordered_map>
#include <utility>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"

namespace shardwise {

BorderAccesses::BorderAccesses(const Module& module, const FusionOptions& options, const FusionRoles& roles,
                               const std::vector<uint32_t>& groups, const std::vector<bool>& is_row)
    : module_(module),
      options_(options),
      roles_(roles),
      shared_(groups),
      is_row_(is_row),
      is_in_memory_(module.value_count(), false) {
  fusion_.group_of.assign(module.op_count(), Fusion::kNoGroup);
}

Fusion BorderAccesses::run(const std::function<GroupFacts(uint32_t)>& facts) {
  for (const Function& function : module_.functions) add_region(function.body, facts);
  for (const Function& function : module_.functions) {
    walk(module_, function.body, [&](OpId id) {
      const uint32_t group = fusion_.group_of[id.index];
      if (group != Fusion::kNoGroup && roles_.of(id) != FusionRole::kView) add_reads(OpView(module_, id));
    });
  }
  make_again_or_read();
  add_writes();
  return std::move(fusion_);
}

// Numbers the groups in the order of their first ops, and marks what borders and regions read.
void BorderAccesses::add_region(RegionId region, const std::function<GroupFacts(uint32_t)>& facts) {
  std::unordered_map<uint32_t, uint32_t> numbers;
  for (const OpId id : module_.region(region).ops) {
    const OpView op(module_, id);
    if (roles_.of(id) == FusionRole::kBorder) {
      for (const ValueId operand : op.operands()) keep_in_memory(operand);
      if (op.def().regions == Regions::kCombiner) continue;
      for (const RegionId inner : op.regions()) add_region(inner, facts);
    } else if (shared_[id.index] != Fusion::kNoGroup) {
      const auto [known, is_new] = numbers.try_emplace(shared_[id.index], static_cast<uint32_t>(fusion_.groups.size()));
      if (is_new) {
        facts_.push_back(facts(shared_[id.index]));
        fusion_.groups.push_back(
            {.ops = {}, .reads = {}, .writes = {}, .computed_again = {}, .is_attention = facts_.back().is_attention()});
      }
      fusion_.group_of[id.index] = known->second;
      fusion_.groups[known->second].ops.push_back(id);
    }
  }
  for (const ValueId result : module_.region(region).results) keep_in_memory(result);
}

uint32_t BorderAccesses::maker_group(ValueId value) const {
  const OpId maker = module_.value(value).op;
  return maker ? fusion_.group_of[maker.index] : Fusion::kNoGroup;
}

void BorderAccesses::add_reads(const OpView& op) {
  const uint32_t group = fusion_.group_of[op.id().index];
  for (size_t i = 0; i < op.operand_count(); ++i) {
    if (roles_.is_free(op.operand(i))) continue;
    const ValueId memory = roles_.viewed(op.operand(i)).value;
    const bool is_cut = options_.is_cut && options_.is_cut(op, i);
    if (maker_group(memory) == group && !is_cut) continue;
    const BorderAccess access{.op = op.id(), .tensor = i, .memory = memory};
    if (!is_cut && may_be_made_again(group, memory)) {
      scores_reads_.push_back({group, access});
    } else {
      read(group, access);
    }
  }
}

void BorderAccesses::read(uint32_t group, const BorderAccess& access) {
  is_in_memory_[access.memory.index] = true;
  if (known_reads_.insert({group, access.op, access.tensor}).second) fusion_.groups[group].reads.push_back(access);
}

bool BorderAccesses::may_be_made_again(uint32_t group, ValueId value) const {
  const uint32_t maker = maker_group(value);
  return maker != Fusion::kNoGroup && fusion_.groups[maker].is_attention && fusion_.groups[group].is_attention &&
         module_.type(value).element_quantity() == facts_[maker].scores;
}

// A value that a border or the end of a region reads. A view of what a group makes is written in place of it; other views
// are copies.
void BorderAccesses::keep_in_memory(ValueId value) {
  value = roles_.before_aliases(value);
  if (is_in_memory_[value.index]) return;
  const OpId maker = module_.value(value).op;
  const FusionRole role = maker ? roles_.of(maker) : FusionRole::kBorder;
  const ViewedValue viewed = roles_.viewed(value);
  const bool is_rewritten =
      viewed.kind == ViewKind::kWhole && !viewed.is_widened && maker_group(viewed.value) != Fusion::kNoGroup;
  if (role == FusionRole::kView && is_rewritten) {
    value = viewed.value;
  } else if (role == FusionRole::kView || role == FusionRole::kFree) {
    const uint32_t copy = add_copy(maker);
    if (!roles_.is_free(value)) read(copy, {.op = maker, .tensor = 0, .memory = viewed.value});
  }
  is_in_memory_[value.index] = true;
}

// A group of a view or a constant, which is otherwise of none.
uint32_t BorderAccesses::add_copy(OpId view) {
  const auto group = static_cast<uint32_t>(fusion_.groups.size());
  facts_.push_back({});
  fusion_.groups.push_back({.ops = {view}, .reads = {}, .writes = {}, .computed_again = {}});
  fusion_.group_of[view.index] = group;
  return group;
}

// The op and what it needs of its group, in depth-first order. Numbers of rows are read: an attention leaves them in
// memory for its gradient.
void BorderAccesses::make_again(uint32_t group, OpId op) {
  struct Visit {
    OpId op;
    size_t next = 0;  // operand
  };
  std::vector<Visit> open;
  const auto add = [&](OpId id) {
    if (!made_again_.insert({group, id, 0}).second) return;
    fusion_.groups[group].computed_again.push_back(id);
    open.push_back({id});
  };
  add(op);
  while (!open.empty()) {
    Visit& visit = open.back();
    const OpView user(module_, visit.op);
    if (visit.next == user.operand_count()) {
      open.pop_back();
      continue;
    }
    const size_t i = visit.next++;
    if (roles_.is_free(user.operand(i))) continue;
    const ValueId memory = roles_.viewed(user.operand(i)).value;
    if (maker_group(memory) == fusion_.group_of[user.id().index] && !is_row_[memory.index]) {
      add(module_.value(memory).op);
    } else {
      read(group, {.op = user.id(), .tensor = i, .memory = memory});
    }
  }
}

void BorderAccesses::make_again_or_read() {
  for (const ScoresRead& scores : scores_reads_) {
    const ValueId value = scores.access.memory;
    if (is_in_memory_[value.index]) {
      read(scores.group, scores.access);
    } else {
      make_again(scores.group, module_.value(value).op);
    }
  }
}

void BorderAccesses::add_writes() {
  for (FusionGroup& group : fusion_.groups) {
    for (const OpId id : group.ops) {
      const OpView op(module_, id);
      for (size_t i = 0; i < op.result_count(); ++i) {
        const ValueId result = op.result(i);
        if (!is_in_memory_[result.index]) continue;
        group.writes.push_back({.op = id, .tensor = op.operand_count() + i, .memory = result});
      }
    }
  }
}

}  // namespace shardwise
