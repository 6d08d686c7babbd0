// SPDX-License-Identifier: Apache-2.0
#include "shardwise/transforms/gradient/backward_split.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "shardwise/ir/op_def.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/transforms/gradient/node_cut.h"

namespace shardwise {
namespace {

class Splitter {
 public:
  Splitter(const Module& module, const BackwardRegion& joint)
      : module_(module), joint_(joint), ops_(module.region(joint.region).ops) {}

  BackwardSplit run() {
    find_unknown();
    find_demanded();
    find_candidates();
    choose_saved();
    find_computed_again();
    BackwardSplit split;
    for (const OpId op : ops_) {
      if (!unknown_ops_.contains(op)) split.forward.push_back(op);
      if (backward_.contains(op)) split.backward.push_back(op);
    }
    for (const ValueId value : candidates_) {
      if (saved_.contains(value)) split.saved.push_back(value);
    }
    // In the order of the program, so that the results of the op do not depend on how the candidates were found.
    std::ranges::sort(split.saved);
    return split;
  }

 private:
  bool is_local(ValueId value) const { return region_of(module_, value) == joint_.region; }
  // A checkpoint in the body hides its operands by a barrier. The ops that read it must not move to the forward part,
  // which would then save all that the checkpoint computes again.
  bool is_made_barrier(OpId op) const { return op.index >= joint_.first_made && module_.op(op).def->passes_through(); }

  bool is_cheap(OpId op) const {
    const OpDef& def = *module_.op(op).def;
    const Traits& traits = def.traits;
    // A node of the cut is one value: of several results, one could be saved and the op would still run for the others.
    if (module_.op(op).region_count != 0 || module_.op(op).result_count != 1) return false;
    // Some collectives are movements, too, but a second one would communicate again.
    if (traits.side_effect || traits.collective != CollectiveKind::kNone) return false;
    return traits.elementwise || traits.movement || traits.constant_like || traits.constraint;
  }

  // Whether the backward part can compute it again from its operands.
  bool is_computed_again(ValueId value) const {
    const OpId op = module_.value(value).op;
    return op && is_cheap(op);
  }

  // Values that depend on cotangents.
  void find_unknown() {
    unknown_.insert(joint_.cotangents.begin(), joint_.cotangents.end());
    for (const OpId op : ops_) {
      const auto is_unknown = [&](ValueId value) { return unknown_.contains(value); };
      if (!is_made_barrier(op) && !reads_any(module_, op, is_unknown)) continue;
      unknown_ops_.insert(op);
      for (const ValueId result : results_of(module_, op)) unknown_.insert(result);
    }
  }

  // Values of the forward part that the backward part reads.
  void find_demanded() {
    std::unordered_set<ValueId> read(joint_.wanted.begin(), joint_.wanted.end());
    std::vector<ValueId> in_order = joint_.wanted;
    const auto is_read = [&](ValueId value) { return read.contains(value); };
    for (const OpId op : ops_ | std::views::reverse) {
      if (!unknown_ops_.contains(op) || !any_result(module_, op, is_read)) continue;
      backward_.insert(op);
      // `in_order` beside the set, because the order of an unordered set is unspecified.
      visit_reads(module_, op, [&](ValueId value) {
        if (read.insert(value).second) in_order.push_back(value);
      });
    }
    for (const ValueId value : in_order) {
      if (is_local(value) && !unknown_.contains(value)) demanded_.push_back(value);
    }
  }

  // Demanded values, and those from which they can be computed again.
  void find_candidates() {
    candidates_ = demanded_;
    for (const ValueId value : candidates_) index_.emplace(value, index_.size());
    for (size_t next = 0; next < candidates_.size(); ++next) {
      if (!is_computed_again(candidates_[next])) continue;
      // The list grows while it is walked: operands of operands are candidates, too.
      for (const ValueId operand : module_.operands(module_.value(candidates_[next]).op)) {
        if (is_local(operand) && index_.emplace(operand, index_.size()).second) candidates_.push_back(operand);
      }
    }
  }

  bool is_available(ValueId value) const { return !module_.value(value).op && joint_.is_available(value); }

  void choose_saved() {
    NodeCut cut(candidates_.size());
    for (size_t i = 0; i < candidates_.size(); ++i) {
      const ValueId value = candidates_[i];
      // An available value has no edge from the source, so it is never cut. A value that cannot be computed again is a
      // source: each path from it to a demanded value must be cut somewhere.
      cut.set_cost(i, joint_.cost(value));
      if (is_available(value)) continue;
      if (!is_computed_again(value)) {
        cut.add_source(i);
        continue;
      }
      for (const ValueId operand : module_.operands(module_.value(value).op)) {
        if (is_local(operand)) cut.add_edge_between(index_.at(operand), i);
      }
    }
    for (const ValueId value : demanded_) cut.add_sink(index_.at(value));
    const std::vector<bool> is_cut = cut.run();
    for (size_t i = 0; i < candidates_.size(); ++i) {
      if (is_cut[i]) saved_.insert(candidates_[i]);
    }
  }

  void find_computed_again() {
    std::vector<ValueId> open = demanded_;
    while (!open.empty()) {
      const ValueId value = open.back();
      open.pop_back();
      // The walk ends at the cut: everything before it is known when the backward part runs.
      if (saved_.contains(value) || is_available(value) || !is_local(value)) continue;
      const OpId op = module_.value(value).op;
      if (!backward_.insert(op).second) continue;
      open.insert(open.end(), module_.operands(op).begin(), module_.operands(op).end());
    }
  }

  const Module& module_;
  const BackwardRegion& joint_;
  const std::vector<OpId>& ops_;
  std::unordered_set<ValueId> unknown_;
  std::unordered_set<OpId> unknown_ops_;
  std::unordered_set<OpId> backward_;
  std::vector<ValueId> demanded_;
  std::vector<ValueId> candidates_;            // demanded ones first
  std::unordered_map<ValueId, size_t> index_;  // of a candidate
  std::unordered_set<ValueId> saved_;
};

}  // namespace

int64_t bytes_of(const Module& module, ValueId value) {
  int64_t bytes = item_size(module.type(value).dtype);
  for (const int64_t size : module.type(value).shape) bytes *= size;
  // An empty tensor costs something, too, so that it is not saved where nothing needs it.
  return std::max<int64_t>(bytes, 1);
}

BackwardSplit split_backward(const Module& module, const BackwardRegion& joint) {
  return Splitter(module, joint).run();
}

}  // namespace shardwise
