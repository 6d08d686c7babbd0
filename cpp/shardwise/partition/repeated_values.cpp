// SPDX-License-Identifier: Apache-2.0
#include "shardwise/partition/repeated_values.h"

#include <algorithm>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "shardwise/ir/rewrite/again.h"
#include "shardwise/ir/rewrite/dce.h"
#include "shardwise/ir/rewrite/reads.h"
#include "shardwise/partition/late_copies.h"
#include "shardwise/partition/rebuilt_scan.h"

namespace shardwise {
namespace {

using Copies = std::vector<std::pair<OpId, OpId>>;  // a copy, and the op that it is one of

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
        peak_(peak),
        saved_(saved),
        here_(peak.levels[level]),
        inner_(inner_ops(steps.chains)) {
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

  Copies write() {
    gather_late_chains();
    LateCopies copies(module_, rewrite_, rewrite_.before(block_.steps[here_.at].op), [&](ValueId value) {
      return repeated_.contains(value) || inner_.contains(module_.value(value).op);
    });
    for (const ValueId value : in_order()) {
      if (has_late_use(value)) replace_late_uses(value, copies(value));
    }
    write_scans(copies);
    copies.sink();
    made_.insert(made_.end(), copies.ops().begin(), copies.ops().end());
    return std::move(made_);
  }

 private:
  // A reader, and which rows it gets otherwise.
  struct Reader {
    size_t step;
    std::vector<uint32_t> repeated = {};  // nodes that are copied in its body
    std::vector<uint32_t> read = {};      // nodes of rows that these copies read
  };

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

  // ---- scans

  OpId now(OpId scan) const {
    const auto rebuilt = rebuilt_.find(scan);
    return rebuilt == rebuilt_.end() ? scan : rebuilt->second;
  }
  LoopParts parts_of(OpId scan) const { return loop_parts(OpView(module_, now(scan))); }

  // The node of the rows that a scan reads, if a scan in front of the peak makes them.
  std::optional<uint32_t> node_of(const LoopParts::Input& input) const {
    const auto known = here_.stacks.find(input.stack);
    if (!is_aligned(input) || known == here_.stacks.end()) return std::nullopt;
    return known->second;
  }

  void write_scans(LateCopies& outside) {
    std::vector<Reader> readers;
    for (size_t i = here_.at; i < block_.steps.size(); ++i) {
      if (scan_rows(module_, block_.steps[i].op)) add_reader(i, readers);
    }
    if (readers.empty()) return;
    save_rows(readers);
    for (const Reader& reader : readers) write_reader(reader, outside);
    for (const auto& [scan, place] : makers_) drop_unread_stacks(scan);
  }

  void add_reader(size_t step, std::vector<Reader>& readers) {
    Reader reader{.step = step};
    for (const LoopParts::Input& input : parts_of(block_.steps[step].op).inputs) {
      const std::optional<uint32_t> node = node_of(input);
      if (node && saved_.is_repeated[*node]) reader.repeated.push_back(*node);
    }
    if (reader.repeated.empty()) return;
    std::vector<uint32_t> open = reader.repeated;
    std::unordered_set<uint32_t> known(open.begin(), open.end());
    while (!open.empty()) {
      const uint32_t v = open.back();
      open.pop_back();
      const SavedKind kind = peak_.nodes[v].kind;
      const bool is_row = kind == SavedKind::kRow || kind == SavedKind::kRowOfStack;
      if (kind == SavedKind::kRowOfStack || (is_row && saved_.is_kept[v])) {
        reader.read.push_back(v);
        continue;
      }
      if (saved_.is_kept[v]) continue;
      for (const uint32_t operand : peak_.values[v].operands) {
        if (known.insert(operand).second) open.push_back(operand);
      }
    }
    std::ranges::sort(reader.read);
    readers.push_back(std::move(reader));
  }

  // Every kept row gets a stack.
  void save_rows(const std::vector<Reader>& readers) {
    std::map<OpId, std::vector<uint32_t>> added;
    for (const Reader& reader : readers) {
      for (const uint32_t v : reader.read) {
        if (peak_.nodes[v].kind != SavedKind::kRow) continue;
        std::vector<uint32_t>& list = added[peak_.nodes[v].scan];
        if (std::ranges::find(list, v) == list.end()) list.push_back(v);
      }
    }
    for (size_t i = 0; i <= here_.at; ++i) {
      const OpId scan = block_.steps[i].op;
      if (scan_rows(module_, scan)) makers_.emplace(scan, i);
    }
    for (const auto& [scan, place] : makers_) {
      std::vector<ValueId> rows;
      std::vector<uint32_t> nodes;
      for (const uint32_t v : added[scan]) {
        if (has_stack(scan, v)) continue;
        rows.push_back(peak_.nodes[v].value);
        nodes.push_back(v);
      }
      note_stacks(scan);
      if (rows.empty()) continue;
      const RebuiltScan rebuilt = rebuild_scan(module_, rewrite_, now(scan), parts_of(scan).inputs, {}, rows);
      rebuilt_[scan] = rebuilt.op;
      note_stacks(scan);
      for (size_t i = 0; i < nodes.size(); ++i) stack_of_[nodes[i]] = rebuilt.stacks[i];
    }
  }

  bool has_stack(OpId scan, uint32_t node) const {
    return std::ranges::any_of(parts_of(scan).outputs, [&](const LoopParts::Output& output) {
      const auto row = here_.rows.find(output.row);
      return row != here_.rows.end() && row->second == node;
    });
  }

  // The stacks of a scan by the nodes of their rows: its results change when it is made anew.
  void note_stacks(OpId scan) {
    for (const LoopParts::Output& output : parts_of(scan).outputs) {
      const auto row = here_.rows.find(output.row);
      if (row != here_.rows.end()) stack_of_[row->second] = output.stack;
    }
  }

  // The node of rows, by the stack that a scan reads now.
  std::optional<uint32_t> node_now(const LoopParts::Input& input) const {
    if (!is_aligned(input)) return std::nullopt;
    const OpId maker = module_.value(input.stack).op;
    if (!maker || !scan_rows(module_, maker)) return std::nullopt;
    for (const LoopParts::Output& output : loop_parts(OpView(module_, maker)).outputs) {
      const auto row = here_.rows.find(output.row);
      if (output.stack == input.stack && row != here_.rows.end()) return row->second;
    }
    return std::nullopt;
  }

  void write_reader(const Reader& reader, LateCopies& outside) {
    const OpId scan = block_.steps[reader.step].op;
    const LoopParts parts = parts_of(scan);
    std::vector<LoopParts::Input> inputs;
    std::vector<std::pair<ValueId, uint32_t>> replaced;
    for (const LoopParts::Input& input : parts.inputs) {
      const std::optional<uint32_t> node = node_now(input);
      const bool is_repeated = node && std::ranges::find(reader.repeated, *node) != reader.repeated.end();
      if (is_repeated) replaced.emplace_back(input.row, *node);
      if (!is_repeated) inputs.push_back(input);
    }
    const auto is_of_makers = [&](ValueId value) {
      return std::ranges::any_of(
          makers_, [&](const auto& maker) { return is_inside(module_, value, parts_of(maker.first).body); });
    };
    LateCopies inside(module_, rewrite_, rewrite_.begin(parts.body),
                      [&](ValueId value) { return module_.value(value).op && is_of_makers(value); });
    for (const uint32_t v : reader.read) inside.use(peak_.nodes[v].value, row_of(v, parts.body, inputs, outside));
    use_copies_from_outside(reader, inside, outside);
    // A row that one scan reads of another has two names.
    for (const auto& [maker, place] : makers_) {
      for (const LoopParts::Input& input : parts_of(maker).inputs) {
        const auto node = here_.rows.find(input.row);
        if (node == here_.rows.end() || peak_.nodes[node->second].value == input.row) continue;
        if (is_reached(reader, node->second)) inside.use(input.row, inside(peak_.nodes[node->second].value));
      }
    }
    for (const auto& [row, node] : replaced) rewrite_.replace(row, inside(peak_.nodes[node].value));
    inside.sink();
    made_.insert(made_.end(), inside.ops().begin(), inside.ops().end());
    rebuilt_[scan] = rebuild_scan(module_, rewrite_, now(scan), inputs, {}, {}).op;
  }

  // Whether the copies of a reader need a row.
  bool is_reached(const Reader& reader, uint32_t node) const {
    std::vector<uint32_t> open = reader.repeated;
    std::unordered_set<uint32_t> known(open.begin(), open.end());
    while (!open.empty()) {
      const uint32_t v = open.back();
      open.pop_back();
      if (v == node) return true;
      if (!saved_.is_repeated[v]) continue;
      for (const uint32_t operand : peak_.values[v].operands) {
        if (known.insert(operand).second) open.push_back(operand);
      }
    }
    return false;
  }

  // The argument of a reader's body for the rows of a node: one that it has, or a new one.
  ValueId row_of(uint32_t v, RegionId body, std::vector<LoopParts::Input>& inputs, LateCopies& outside) {
    const SavedNode& node = peak_.nodes[v];
    LoopParts::Input wanted;
    if (node.kind == SavedKind::kRow) {
      wanted.stack = stack_of_.at(v);
    } else {
      wanted = node.input;
      wanted.stack = outside(node.input.stack);
      if (node.input.border) wanted.border = outside(node.input.border);
    }
    for (const LoopParts::Input& input : inputs) {
      const bool is_same =
          input.stack == wanted.stack && input.offset == wanted.offset && input.border == wanted.border;
      if (is_same) return input.row;
    }
    wanted.row = add_row_argument(module_, body, node.value);
    inputs.push_back(wanted);
    return wanted.row;
  }

  // What the copies in a body read of values that are themselves copied in front of the scan.
  void use_copies_from_outside(const Reader& reader, LateCopies& inside, LateCopies& outside) {
    for (uint32_t v = 0; v < peak_.nodes.size(); ++v) {
      const SavedNode& node = peak_.nodes[v];
      const bool is_outside = node.kind == SavedKind::kStep && repeated_.contains(node.value);
      if (is_outside && is_reached(reader, v)) inside.use(node.value, outside(node.value));
    }
  }

  void drop_unread_stacks(OpId scan) {
    std::vector<ValueId> unread;
    for (const LoopParts::Output& output : parts_of(scan).outputs) {
      if (module_.uses(output.stack).empty()) unread.push_back(output.stack);
    }
    if (unread.empty()) return;
    rebuilt_[scan] = rebuild_scan(module_, rewrite_, now(scan), parts_of(scan).inputs, unread, {}).op;
  }

  Module& module_;
  Rewrite& rewrite_;
  const LiveBlock& block_;
  const PeakValues& peak_;
  const Saved& saved_;
  const PeakLevel& here_;
  const std::unordered_set<OpId> inner_;
  std::unordered_set<ValueId> repeated_;            // values of this region that are computed again
  std::unordered_map<OpId, size_t> place_;          // of an op of a step: the number of the step
  std::map<OpId, size_t> makers_;                   // scans that make rows, with their places
  std::unordered_map<OpId, OpId> rebuilt_;          // the last scan that took the place of one
  std::unordered_map<uint32_t, ValueId> stack_of_;  // by node of a row
  Copies made_;
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
  Copies copies;
  {
    Rewrite rewrite(local);
    for (uint32_t level = 0; level < peak.levels.size(); ++level) {
      const Copies made = LevelWriter(local, rewrite, steps, peak, decided, level).write();
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
