// SPDX-License-Identifier: Apache-2.0
#include "shardwise/analysis/fuse.h"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

#include "shardwise/analysis/border_accesses.h"
#include "shardwise/analysis/collective_price.h"
#include "shardwise/analysis/fusion_roles.h"
#include "shardwise/analysis/mergeable_groups.h"
#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"

namespace shardwise {
namespace {

using Id = MergeableGroups::Id;

// Decides which ops are in one group, region by region, in the order of the program.
class Grouping {
 public:
  Grouping(const Module& module, const FusionOptions& options)
      : module_(module),
        options_(options),
        roles_(module),
        groups_(module.op_count(), Fusion::kNoGroup),
        is_row_(module.value_count(), false) {}

  Fusion run() {
    for (const Function& function : module_.functions) add_region(function.body);
    for (uint32_t& group : groups_) {
      if (group != Fusion::kNoGroup) group = sets_.find(group);
    }
    BorderAccesses borders(module_, options_, roles_, groups_, is_row_);
    return borders.run([&](uint32_t group) { return sets_.facts(group); });
  }

 private:
  void add_region(RegionId region) {
    for (const OpId id : module_.region(region).ops) {
      const OpView op(module_, id);
      const FusionRole role = roles_.of(id);
      if (role == FusionRole::kBorder) {
        add_border(op);
      } else if (role != FusionRole::kView && role != FusionRole::kFree) {
        add_op(op, role);
      }
    }
  }

  // Waits for what its regions read, too.
  void add_border(const OpView& op) {
    const Id own = groups_[op.id().index] = sets_.add({.core = GroupCore::kBorder});
    visit_reads(module_, op.id(), [&](ValueId value) {
      if (const auto made = group_of(op, roles_.viewed(value).value)) sets_.add_read(own, *made, true);
    });
    if (op.def().regions == Regions::kCombiner) return;
    for (const RegionId inner : op.regions()) add_region(inner);
  }

  void add_op(const OpView& op, FusionRole role) {
    GroupFacts facts = facts_of(op, role);
    facts.transfer_read = last_transfer(op);
    const Id own = groups_[op.id().index] = sets_.add(facts);
    std::vector<Id> joined;
    for (size_t i = 0; i < op.operand_count(); ++i) {
      const ViewedValue read = roles_.viewed(op.operand(i));
      const auto made = group_of(op, read.value);
      if (!made) continue;
      const bool is_joined = joins(op, role, i, read, *made);
      sets_.add_read(own, *made, !is_joined);
      if (is_joined) joined.push_back(*made);
      is_row_[op.result().index] = is_row_[op.result().index] || (keeps_rows(role) && is_whole_row(read));
    }
    if (role == FusionRole::kRowReduction) mark_rows(op);
    // The nearest groups first: they stand before fewer others.
    std::ranges::sort(joined, [&](Id a, Id b) { return sets_.place(a) > sets_.place(b); });
    for (const Id group : joined) sets_.merge(group, own, role == FusionRole::kProduct);
    if (options_.fused_attention) join_gradients(op, role, own);
  }

  static bool keeps_rows(FusionRole role) { return role == FusionRole::kElementwise; }
  bool is_whole_row(const ViewedValue& read) const {
    return read.kind == ViewKind::kWhole && is_row_[read.value.index];
  }
  void mark_rows(const OpView& op) {
    for (size_t i = 0; i < op.result_count(); ++i) is_row_[op.result(i).index] = true;
  }

  GroupFacts facts_of(const OpView& op, FusionRole role) {
    switch (role) {
      case FusionRole::kRowReduction: return {.reduces_rows = true};
      case FusionRole::kReduction: return {.core = GroupCore::kReduction};
      case FusionRole::kProduct:
        return {.core = GroupCore::kProduct,
                .has_batch = roles_.has_batch(op.id()),
                .products = 1,
                .scores = op.result_type().element_quantity()};
      case FusionRole::kOther: return {.core = GroupCore::kOther};
      default: return {};
    }
  }

  // The place, from 1, of the last kernel that a transfer waits for whose result the op reads; 0 if it reads none. A
  // transfer that waits for no kernel, such as the gather of a weight, is issued in time.
  size_t last_transfer(const OpView& op) {
    size_t last = 0;
    for (const ValueId operand : op.operands()) {
      const OpId maker = module_.value(roles_.viewed(operand).value).op;
      if (!maker || !moves_data(OpView(module_, maker).def().traits.collective)) continue;
      for (const ValueId sent : OpView(module_, maker).operands()) {
        const auto made = group_of(op, roles_.viewed(sent).value);
        if (made && sets_.facts(*made).core != GroupCore::kBorder) last = std::max(last, sets_.place(*made) + 1);
      }
    }
    return last;
  }

  // The group of the op that makes a value, in the region of `user`.
  std::optional<Id> group_of(const OpView& user, ValueId value) {
    const OpId maker = module_.value(value).op;
    if (!maker || module_.op(maker).parent != module_.op(user.id()).parent) return std::nullopt;
    const uint32_t group = groups_[maker.index];
    return group == Fusion::kNoGroup ? std::nullopt : std::optional(sets_.find(group));
  }

  bool joins(const OpView& op, FusionRole role, size_t operand, const ViewedValue& read, Id group) {
    if (options_.is_cut && options_.is_cut(op, operand)) return false;
    if (!is_made_whole(read.value)) return false;
    const GroupFacts& facts = sets_.facts(group);
    switch (role) {
      case FusionRole::kElementwise:
        return read.kind == ViewKind::kWhole || (read.kind == ViewKind::kEnlarged && is_row_[read.value.index]);
      case FusionRole::kRowReduction: return read.kind == ViewKind::kWhole;
      case FusionRole::kReduction: return read.kind == ViewKind::kWhole && facts.core == GroupCore::kNothing;
      case FusionRole::kProduct:
        return options_.fused_attention && facts.has_batch && facts.reduces_rows && roles_.has_batch(op.id()) &&
               read.kind == ViewKind::kWhole && is_scores(read.value, facts);
      default: return false;
    }
  }

  bool is_scores(ValueId value, const GroupFacts& facts) const {
    return facts.products > 0 && module_.type(value).element_quantity() == facts.scores;
  }

  // An op that writes a part of its result in place has the rest in memory.
  bool is_made_whole(ValueId value) const {
    const OpId maker = module_.value(value).op;
    if (roles_.of(maker) != FusionRole::kOther) return true;
    const OpView op(module_, maker);
    return own_cost(op).touched[op.operand_count() + module_.value(value).index] >= module_.type(value).byte_quantity();
  }

  // The gradient of an attention reads its scores. It computes them again, so that both are one group.
  void join_gradients(const OpView& op, FusionRole role, Id own) {
    const bool is_part = role == FusionRole::kElementwise || role == FusionRole::kRowReduction ||
                         (role == FusionRole::kProduct && roles_.has_batch(op.id()));
    for (size_t i = 0; is_part && i < op.operand_count(); ++i) {
      const ValueId read = roles_.viewed(op.operand(i)).value;
      const auto attention = group_of(op, read);
      if (!attention || *attention == sets_.find(own)) continue;
      const GroupFacts& facts = sets_.facts(*attention);
      if (!facts.is_attention() || !is_scores(read, facts)) continue;
      const int64_t scores = facts.scores;
      const auto [gradient, is_first] = gradients_.try_emplace(*attention, own);
      if (!is_first) sets_.merge(gradient->second, own, true);
      sets_.facts(own).scores = scores;
    }
  }

  const Module& module_;
  const FusionOptions& options_;
  const FusionRoles roles_;
  MergeableGroups sets_;
  std::vector<uint32_t> groups_;  // by op
  std::vector<bool> is_row_;      // by value: one number for each row, of a row reduction
  std::unordered_map<Id, Id> gradients_;
};

}  // namespace

Fusion fuse(const Module& module, const FusionOptions& options) { return Grouping(module, options).run(); }

}  // namespace shardwise
