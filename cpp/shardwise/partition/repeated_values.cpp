// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/repeated_values.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "shardwise/ir/rewrite/again.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/partition/late_copies.h"
#include "shardwise/partition/repeated_rows.h"

namespace shardwise {
namespace {

// The ops of chains other than the last one of each: no array holds their results.
std::unordered_set<OpId> inner_ops(const ElementwiseChains& chains) {
  std::unordered_set<OpId> inner;
  for (const auto& [root, chain] : chains.by_root) inner.insert(chain.ops.begin(), chain.ops.end() - 1);
  return inner;
}

// One region around the peak.
class LevelWriter {
 public:
  LevelWriter(Module& module, Rewrite& rewrite, const LiveSteps& steps, const PeakValues& peak, const Saved& saved,
              uint32_t level)
      : module_(module),
        rewrite_(rewrite),
        block_(steps.ranges.of(peak.levels[level].region)),
        here_(peak.levels[level]),
        inner_(inner_ops(steps.chains)),
        rows_{module, rewrite, block_, peak, saved, here_} {
    for (uint32_t v = 0; v < peak.nodes.size(); ++v) {
      const SavedNode& node = peak.nodes[v];
      if (node.level == level && node.kind == SavedKind::kStep && saved.is_repeated[v]) repeated_.insert(node.value);
    }
    for (size_t i = 0; i < block_.steps.size(); ++i) {
      place_[block_.steps[i].op] = i;
      if (block_.steps[i].chain == nullptr) continue;
      for (const OpId op : block_.steps[i].chain->ops) place_[op] = i;
    }
  }

  CopiedOps write() {
    gather_late_chains();
    LateCopies copies(module_, rewrite_, rewrite_.before(block_.steps[here_.at].op), [&](ValueId value) {
      return repeated_.contains(value) || inner_.contains(module_.value(value).op);
    });
    for (const ValueId value : in_order()) {
      if (has_late_use(value)) replace_late_uses(value, copies(value));
    }
    CopiedOps made = write_repeated_rows(rows_, repeated_, copies);
    copies.sink();
    made.insert(made.end(), copies.ops().begin(), copies.ops().end());
    return made;
  }

 private:
  std::vector<ValueId> in_order() const {
    std::vector<ValueId> values(repeated_.begin(), repeated_.end());
    std::ranges::sort(values);
    return values;
  }

  // A chain runs where its last op is, but its other ops may stand in front of the peak.
  void gather_late_chains() {
    for (size_t i = here_.at + 1; i < block_.steps.size(); ++i) {
      const LiveStep& step = block_.steps[i];
      if (step.chain == nullptr) continue;
      for (const OpId op : step.chain->ops) {
        if (op != step.op) rewrite_.move(op, rewrite_.before(step.op));
      }
    }
    rewrite_.commit(here_.region);
  }

  bool is_late(const Use& use) const {
    if (!use.op && use.region == here_.region) return true;
    OpId op = use.op ? use.op : module_.region(use.region).op;
    while (op && module_.op(op).parent != here_.region) op = module_.region(module_.op(op).parent).op;
    const auto place = place_.find(op);
    return op && place != place_.end() && place->second > here_.at;
  }

  bool has_late_use(ValueId value) {
    const UseRange uses = module_.uses(value);
    return std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return is_late(use); });
  }

  void replace_late_uses(ValueId value, ValueId by) {
    rewrite_.replace_if(value, by, [&](const Use& use) { return is_late(use); });
  }

  Module& module_;
  Rewrite& rewrite_;
  const LiveBlock& block_;
  const PeakLevel& here_;
  const std::unordered_set<OpId> inner_;
  const RepeatedRows rows_;
  std::unordered_set<ValueId> repeated_;    // values of this region that are computed again
  std::unordered_map<OpId, size_t> place_;  // of an op of a step: the number of the step
};

// A view of a value that is kept costs nothing to keep.
Saved without_needless_views(const PeakValues& peak, Saved saved) {
  for (uint32_t v = 0; v < peak.nodes.size(); ++v) {
    if (!peak.nodes[v].is_view || peak.nodes[v].kind != SavedKind::kStep || !saved.is_repeated[v]) continue;
    const bool is_there =
        std::ranges::all_of(peak.values[v].operands, [&](uint32_t u) { return !saved.is_repeated[u]; });
    if (!is_there) continue;
    saved.is_repeated[v] = false;
    saved.is_kept[v] = true;
  }
  return saved;
}

}  // namespace

void write_repeated_values(Module& local, const LiveSteps& steps, const PeakValues& peak, const Saved& saved) {
  const Saved decided = without_needless_views(peak, saved);
  CopiedOps copies;
  {
    Rewrite rewrite(local);
    for (uint32_t level = 0; level < peak.levels.size(); ++level) {
      const CopiedOps made = LevelWriter(local, rewrite, steps, peak, decided, level).write();
      copies.insert(copies.end(), made.begin(), made.end());
    }
  }
  dce(local, UnusedConstraints::kRemove);
  // A copy of an op that is gone has taken its place.
  for (const auto& [copy, original] : copies) {
    if (any_result(local, original, [&](ValueId value) { return !local.uses(value).empty(); })) mark_again(local, copy);
  }
}

}  // namespace shardwise
